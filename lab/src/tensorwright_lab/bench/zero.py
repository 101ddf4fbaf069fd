"""`tensorwright bench zero`: schedules chosen without a measurement against measured ones.

Curves are drawn with matplotlib, which is of the extra `bench`.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import itertools
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from tensorwright import base
from tensorwright.artifacts import Kernel
from tensorwright.cli.arguments.machine import check_before_measuring
from tensorwright.cli.arguments.models import check_model
from tensorwright.cli.arguments.output import ProgressLines, check_writable
from tensorwright.machine import detect_hardware
from tensorwright.records import Setting
from tensorwright.schedule import format_trace
from tensorwright.tuning.measuring import ChildRunner, MeasureOptions, PoolBuilder
from tensorwright.tuning.selection import Chooser
from tensorwright.tuning.time_model import load_time_model, pretrained_model
from tensorwright_lab import judging
from tensorwright_lab.bench import zero_rows
from tensorwright_lab.bench.machine import threads_of
from tensorwright_lab.bench.options import check_resume, of_builds, same_build_option
from tensorwright_lab.bench.zero_rows import NETWORKS, Case, Curve, Group, groups_of
from tensorwright_lab.comparison import this_build
from tensorwright_lab.rows import machine_options


def draw(curves: Mapping[str, Curve], path: str) -> None:
    """A panel for each group, as PNG.  Raises: OutputError, and ModuleNotFoundError where
    matplotlib is missing.
    """
    importlib.import_module("matplotlib").use("Agg")  # into a file, without a display
    plt: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = plt.subplots(
        1, len(curves), figsize=(4.2 * len(curves), 3.6), sharey=True, squeeze=False
    )
    for panel, (name, curve) in zip(axes[0], curves.items(), strict=True):
        places = range(len(curve.trials))
        panel.plot(places, curve.with_model, marker="o", label="with the time model")
        panel.plot(places, curve.without_model, marker="s", label="without")
        panel.set_xticks(list(places), [str(trials) for trials in curve.trials])
        panel.set_title(name, fontsize=9)
        panel.set_xlabel("trials")
        panel.set_ylim(0.0, 1.05)
        panel.grid(visible=True, alpha=0.3)
    axes[0][0].set_ylabel("share of the best speed")
    axes[0][0].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    plt.close(figure)
    base.write_atomically(path, buffer.getvalue())


FIRST_SEED = 21_000_000
"""Of the random networks: neither those that train, nor those of `bench random`."""
_MEASURE = MeasureOptions(
    repeats=4, min_sample_s=0.002, most_s=0.2, limit_s=5.0, cold_bytes=64 << 20
)
_BUILD_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured, for each workload: random schedules, and trials of two searches."""

    threads: int
    seed: int
    workloads: int
    candidates: int
    trials: tuple[int, ...]


@click.command("zero")
@click.option(
    "--model",
    "models",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A model trained --without something, which is then a group; may be repeated.",
)
@click.option(
    "--network",
    "networks",
    multiple=True,
    default=NETWORKS,
    metavar="MODEL",
    help="Where the workloads of suites are from; may be repeated.",
)
@click.option(
    "--workloads", type=click.IntRange(min=1), default=12, show_default=True, help="Of each group."
)
@click.option(
    "--candidates",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Random schedules of each workload.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=zero_rows.TRIALS[-1],
    show_default=True,
    help="Of each search.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=FIRST_SEED,
    show_default=True,
    help="Of the first random network, and of what is drawn.",
)
@machine_options
@click.option("--json", "json_path", metavar="FILE", help="Write everything to a file, too.")
@click.option("--resume", is_flag=True, help="Keep the finished workloads of that file.")
@same_build_option
@click.option(
    "--png", metavar="FILE", help="Where curves are drawn; beside the --json file if not given."
)
def command(
    models: tuple[Path, ...],
    networks: tuple[str, ...],
    workloads: int,
    candidates: int,
    trials: int,
    seed: int,
    target: base.CpuTarget,
    threads: int | None,
    json_path: str | None,
    resume: bool,
    same_build: bool,
    png: str | None,
) -> None:
    """Compare default schedules with the best of random ones and with tuned ones.

    On workloads that no model was trained on: of random networks, of networks of suites, and of the
    families and targets that were left out of the training of each --model. Two searches, one from
    the time model and one from the heuristic, say what it is worth after so many trials. A workload
    with a wrong answer, or another failure, is in no figure; exits with 1 where there is one.

    Example: tensorwright bench zero --model without_attention.npz --json zero.json
    """
    check_resume(resume, json_path)
    for network in networks:
        check_model(network)
    image = png or (None if json_path is None else str(Path(json_path).with_suffix(".png")))
    for path in filter(None, (json_path, image)):
        check_writable(path, *models, *networks)
    if image is not None and importlib.util.find_spec("matplotlib") is None:
        click.echo(f"no curves will be drawn: {_without_matplotlib().reason}", err=True)
    _check_has_model()
    counts = (*(count for count in zero_rows.TRIALS if count < trials), trials)
    plan = Plan(threads_of(threads), seed, workloads, candidates, counts)
    groups = groups_of(target, models, networks)
    head = _head(plan, target, groups)
    before = zero_rows.read_zero(json_path, head) if resume and json_path is not None else []
    rows = of_builds(before, same_build)
    check_before_measuring(target, plan.threads)
    with base.override(dump=""):
        _measure_all(groups, plan, rows, head, json_path)
    zero_rows.show_rows(rows)
    if json_path is not None:
        zero_rows.write_zero(json_path, head, rows)
    if image is not None:
        _draw(rows, image)
    if any(row.failure for row in rows):
        sys.exit(1)


def _check_has_model() -> None:
    if pretrained_model() is None:
        raise base.UsageError(
            stage="bench",
            where="time model",
            reason="there is none, and without it the heuristic chooses",
            remedy="name a file in the environment variable TENSORWRIGHT_TIME_MODEL",
        )


def _head(plan: Plan, target: base.CpuTarget, groups: Sequence[Group]) -> dict[str, object]:
    """The head of the file, which all rows share."""
    model = pretrained_model()
    return {
        "target": target.key,
        "hardware": detect_hardware().fingerprint,
        "threads": plan.threads,
        "seed": plan.seed,
        "workloads": plan.workloads,
        "candidates": plan.candidates,
        "trials": plan.trials,
        "model": "" if model is None else model.digest,
        "networks": [network for group in groups for network in group.networks],
        "models": {
            group.name: load_time_model(group.model).digest
            for group in groups
            if group.model is not None
        },
    }


def _measure_all(
    groups: Sequence[Group],
    plan: Plan,
    rows: list[zero_rows.ZeroRow],
    head: dict[str, object],
    json_path: str | None,
) -> None:
    """Add the rows that are missing, and keep the file up to date."""
    total, before = plan.workloads * len(groups), len(rows)
    progress = ProgressLines("workloads")
    progress.show(before, total, 0)
    done = {(row.group, row.key) for row in rows}
    for group in groups:
        if sum(row.group == group.name for row in rows) >= plan.workloads:
            continue
        model = {} if group.model is None else {"time_model": group.model}
        with base.override(**model), ExitStack() as owned:
            builder = owned.enter_context(PoolBuilder(limit_s=_BUILD_LIMIT_S))
            runner = owned.enter_context(ChildRunner(_MEASURE))
            bench = judging.Bench(builder, runner, group.target, plan.threads)
            for case in group.cases(plan.workloads, plan.threads, plan.seed):
                if (group.name, case.workload.key) in done:
                    continue
                rows.append(replace(_row(group, case, bench, plan), build=this_build()))
                if json_path is not None:
                    zero_rows.write_zero(json_path, head, rows)
                progress.show(len(rows), total, len(rows) - before)


def _row(group: Group, case: Case, bench: judging.Bench, plan: Plan) -> zero_rows.ZeroRow:
    """All measurements of one workload; a failure is part of the row."""
    workload = case.workload
    names = (group.name, case.network, workload.name, workload.key, group.target.name)
    try:
        return _measured(names, case, bench, plan)
    except base.TensorwrightError as error:
        return zero_rows.ZeroRow(*names, failure=f"{type(error).__name__}: {error}")


def _measured(
    names: tuple[str, str, str, str, str], case: Case, bench: judging.Bench, plan: Plan
) -> zero_rows.ZeroRow:
    workload = case.workload
    default, with_model = _searched(case, bench, plan)
    with base.override(default_schedule="rule"):
        _, without_model = _searched(case, bench, plan)
    random = judging.compare_with_random(workload, default, bench, plan.candidates, plan.seed)
    if random.failure or random.wrong:
        wrong = "; ".join(what for _, what in random.wrong)
        return zero_rows.ZeroRow(*names, failure=random.failure or f"wrong answers: {wrong}")
    traces = filter(None, (default, random.best, *with_model, *without_model))
    built = judging.build_all(workload, tuple(traces), bench)
    kernels = {trace: each for trace, each in built.items() if isinstance(each, Kernel)}
    times_s = judging.fastest_s(judging.measure_in_turns(workload, kernels, bench))
    if set(times_s) != set(built):
        return zero_rows.ZeroRow(*names, failure="a schedule that ran before did not run again")
    return zero_rows.ZeroRow(
        *names,
        times_s[default],
        times_s.get(random.best),
        plan.trials,
        _so_far([times_s[trace] for trace in with_model]),
        _so_far([times_s[trace] for trace in without_model]),
    )


def _so_far(times_s: Sequence[float]) -> tuple[float, ...]:
    """The least until each place: at its end, a session lets its best take turns, too."""
    return tuple(itertools.accumulate(times_s, min))


def _searched(case: Case, bench: judging.Bench, plan: Plan) -> tuple[str, tuple[str, ...]]:
    """The default schedule, and the best after each number of trials."""
    chosen = Chooser(Setting(bench.target, bench.threads), is_cold=True).unmeasured(case.workload)
    default = format_trace(chosen.trace)
    records = judging.search_trials(case.workload, bench, plan.trials[-1], plan.seed, _MEASURE)
    return default, judging.best_after(records, plan.trials, default)


def _draw(rows: Sequence[zero_rows.ZeroRow], path: str) -> None:
    by_name = {name: zero_rows.curve_of(each) for name, each in zero_rows.by_group(rows).items()}
    curves = {name: curve for name, curve in by_name.items() if curve is not None}
    if not curves:
        return
    try:
        draw(curves, path)
    except ModuleNotFoundError:
        raise _without_matplotlib() from None


def _without_matplotlib() -> base.MachineError:
    return base.MachineError(
        stage="bench",
        where="curves",
        reason="matplotlib is not installed",
        remedy="pip install 'tensorwright[bench]', and run the same command with --resume",
    )
