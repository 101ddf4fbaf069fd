"""`tensorwright bench random`: default schedules of random workloads against random schedules."""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from tensorwright.base import CpuTarget, knobs, override, source_digest, write_atomically
from tensorwright.cli.arguments.machine import Workers, workers_options
from tensorwright.cli.arguments.output import ProgressLines, check_writable
from tensorwright.cli.printing import print_table
from tensorwright.farm import Farm
from tensorwright.machine import detect_hardware
from tensorwright.records import Setting
from tensorwright.schedule import format_trace
from tensorwright.tuning.measuring import MeasureOptions
from tensorwright.tuning.selection import Chooser
from tensorwright.tuning.time_model import pretrained_model
from tensorwright_lab.bench import plausible_workloads
from tensorwright_lab.bench.machine import threads_of
from tensorwright_lab.bench.plausible_workloads import RandomRow, append_row, read_rows
from tensorwright_lab.comparison import print_builds
from tensorwright_lab.judging import (
    LIMIT,
    Bench,
    Distribution,
    builder_of,
    compare_with_random,
    distribution_of,
    runner_of,
)
from tensorwright_lab.rows import machine_options
from tensorwright_lab.zoo.plausible import FAMILIES, JUDGING_FAMILIES

_COLD_BYTES = 64 << 20
_MEASURE = MeasureOptions(
    repeats=3, min_sample_s=0.001, most_s=0.1, limit_s=4.0, cold_bytes=_COLD_BYTES
)
_BUILD_LIMIT_S = 30.0
_PER_PROCESS = 100  # the workloads after which expected results are removed
_SHOWN = 10


@click.command("random")
@click.option(
    "--count", type=click.IntRange(min=1), default=2000, show_default=True, help="Workloads."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=plausible_workloads.FIRST_SEED,
    show_default=True,
    help="Of the first network, and of the random schedules.",
)
@click.option(
    "--candidates",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Random schedules of each workload.",
)
@click.option(
    "--family",
    "families",
    multiple=True,
    type=click.Choice((*FAMILIES, *JUDGING_FAMILIES)),
    help="Draw only from these families of networks.",
)
@machine_options
@workers_options
@click.option(
    "--rows",
    "rows_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where a line is kept for each workload; a file in the cache if not given.",
)
@click.option("--json", "json_path", metavar="FILE", help="Write the figures to a file, too.")
@click.option(
    "--check", is_flag=True, help=f"Exit with 1 if a default takes more than {LIMIT:g} times."
)
def command(
    count: int,
    seed: int,
    candidates: int,
    families: tuple[str, ...],
    target: CpuTarget,
    threads: int | None,
    workers: Workers,
    rows_path: Path | None,
    json_path: str | None,
    check: bool,
) -> None:
    """Compare default schedules with the best of some random ones, on random workloads.

    The workloads are two of each of many random plausible networks; one that the time model was
    trained on is passed over. Every answer is compared with that of NumPy, and the default and the
    best random schedule have as many turns in a last race. Measuring goes on where it was left.
    Exits with 1 if an answer is wrong or a default does not run.

    Example: tensorwright bench random --count 200 --check --json random.json
    """
    workers.check(target)
    check_writable(json_path)
    plan = _Plan(target, threads_of(threads), seed, count, candidates, families)
    head = _head(plan)
    path = rows_path or _usual_path(head)
    rows = read_rows(path, head)
    workers.warn_if_unfit(target, plan.threads)
    with override(dump=""), workers.opened() as farm:
        _compare(rows, path, plan, farm)
    _show(rows[:count], head)
    if json_path is not None:
        write_atomically(json_path, json.dumps(_to_json(rows[:count], head), indent=1))
    is_slow = check and any(row.ratio is not None and row.ratio > LIMIT for row in rows[:count])
    if is_slow or not all(row.is_sound for row in rows[:count]):
        sys.exit(1)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The numbers of workloads, and of random schedules of each, that are measured.

    families   from which networks are drawn; all that models learn from where empty
    """

    target: CpuTarget
    threads: int
    seed: int
    count: int
    candidates: int
    families: tuple[str, ...]


def _head(plan: _Plan) -> dict[str, object]:
    """The head of the file, which all rows share."""
    uses_rule = knobs.DEFAULT_SCHEDULE.get() == "rule"
    model = None if uses_rule else pretrained_model()
    return {
        "target": plan.target.key,
        "hardware": detect_hardware().fingerprint,
        "threads": plan.threads,
        "seed": plan.seed,
        "candidates": plan.candidates,
        "families": sorted(plan.families),
        "model": "" if model is None else model.digest,
    }


def _usual_path(head: dict[str, object]) -> Path:
    """In the folder of the knob `home`; other rows after a change of this package or the model."""
    text = json.dumps([source_digest("."), head])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return knobs.HOME.get() / "bench" / f"random-{digest}.jsonl"


def _compare(rows: list[RandomRow], path: Path, plan: _Plan, farm: Farm | None) -> None:
    """Add the rows that are missing."""
    first = rows[-1].seed if rows else plan.seed
    drawn = plausible_workloads.draw_workloads(
        first, plan.target, plan.threads, {row.key for row in rows}, plan.families
    )
    progress = ProgressLines("workloads")
    before = len(rows)
    progress.show(before, plan.count, 0)
    while len(rows) < plan.count:
        with ExitStack() as owned:
            builder = builder_of(farm, owned, _BUILD_LIMIT_S)
            runner = runner_of(farm, owned, plan.target, _MEASURE)
            bench = Bench(builder, runner, plan.target, plan.threads)
            for each in itertools.islice(drawn, min(_PER_PROCESS, plan.count - len(rows))):
                rows.append(_row(each, bench, plan))
                append_row(path, rows[-1])
                _tell(rows[-1])
                progress.show(len(rows), plan.count, len(rows) - before)


def _row(drawn: plausible_workloads.DrawnWorkload, bench: Bench, plan: _Plan) -> RandomRow:
    scheduled = Chooser(Setting(plan.target, plan.threads), is_cold=True).unmeasured(drawn.workload)
    chosen = format_trace(scheduled.trace)
    comparison = compare_with_random(drawn.workload, chosen, bench, plan.candidates, plan.seed)
    return RandomRow.of(drawn, scheduled.source.value, chosen, comparison)


def _tell(row: RandomRow) -> None:
    """Say at once what is wrong with a workload."""
    if row.failure:
        click.echo(f"network {row.seed}: {row.name}: the default failed, {row.failure}", err=True)
    for _, what in row.wrong:
        click.echo(f"network {row.seed}: {row.name}: a wrong answer, {what}", err=True)


# Showing

_COLUMNS = ("times the best", "workloads", "mean", "50 %", "90 %", "99 %", "most", f"> {LIMIT:g}")


def _show(rows: Sequence[RandomRow], head: dict[str, object]) -> None:
    measured = sum(row.measured for row in rows)
    click.echo(
        f"the time of the default over that of the best of {head['candidates']} random schedules, "
        f"{measured} in all: how much at most in so many of a hundred workloads"
    )
    kinds = [("all", distribution_of(_ratios(rows)))]
    kinds += [("by heuristic alone", distribution_of(_rule_ratios(rows)))]
    for family in sorted({row.family for row in rows}):
        of_family = [row for row in rows if row.family == family]
        kinds.append((family, distribution_of(_ratios(of_family))))
    print_table(_COLUMNS, [_cells(name, one) for name, one in kinds if one.count])
    alone = sum(row.ratio is None and not row.failure for row in rows)
    if alone:
        click.echo(f"{alone} more have no schedule but the default")
    click.echo("\nthe worst (bench random --seed SEED --count 2 measures one again)")
    cells = [
        (
            row.name,
            str(row.seed),
            row.key,
            f"{row.ratio:.2f}",
            *map(_us, (row.chosen_s, row.best_s)),
        )
        for row in _worst(rows)
    ]
    print_table(("workload", "seed", "key", "ratio", "default us", "best us"), cells)
    wrong = sum(len(row.wrong) for row in rows)
    failed = [row for row in rows if row.failure]
    click.echo(f"wrong answers: {wrong} of {measured}; defaults that failed: {len(failed)}")
    for row in rows:
        if not row.is_sound:
            _tell(row)
    click.echo(
        f"{len(_passed(rows))} drawn workloads were passed over, the time model was trained on "
        f"them; on {_overlap(rows)} of those above"
    )
    print_builds([row.build for row in rows], (), "a new file of --rows measures them again")


def _passed(rows: Sequence[RandomRow]) -> set[str]:
    return {key for row in rows for key in row.passed}


def _overlap(rows: Sequence[RandomRow]) -> int:
    """How many rows the time model in force was trained on."""
    trained = plausible_workloads.trained_keys()
    return sum(row.key in trained for row in rows)


def _cells(name: str, one: Distribution) -> tuple[str, ...]:
    numbers = (one.mean, one.half, one.p90, one.p99, one.most)
    return (name, str(one.count), *(f"{number:.2f}" for number in numbers), str(one.above))


def _us(time_s: float | None) -> str:
    return "-" if time_s is None else f"{time_s * 1e6:.1f}"


def _ratios(rows: Sequence[RandomRow]) -> list[float]:
    return [row.ratio for row in rows if row.ratio is not None]


def _rule_ratios(rows: Sequence[RandomRow]) -> list[float]:
    return [row.rule_s / row.best_s for row in rows if row.rule_s and row.best_s]


def _worst(rows: Sequence[RandomRow]) -> list[RandomRow]:
    return sorted((row for row in rows if row.ratio), key=lambda row: -(row.ratio or 0.0))[:_SHOWN]


def _to_json(rows: Sequence[RandomRow], head: dict[str, object]) -> dict[str, object]:
    families = sorted({row.family for row in rows})
    ratios = {name: _ratios([row for row in rows if row.family == name]) for name in families}
    return {
        **head,
        "workloads": len(rows),
        "measured": sum(row.measured for row in rows),
        "wrong": sum(len(row.wrong) for row in rows),
        "failed": sum(bool(row.failure) for row in rows),
        "passed": len(_passed(rows)),
        "trained_on": _overlap(rows),
        "ratio": distribution_of(_ratios(rows)).to_data(),
        "rule_ratio": distribution_of(_rule_ratios(rows)).to_data(),
        "families": {name: distribution_of(each).to_data() for name, each in ratios.items()},
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }
