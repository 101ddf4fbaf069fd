"""`tensorwright bench models`: networks in this and in other runtimes, side by side."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from tensorwright.base import CpuTarget
from tensorwright.cli.arguments import options
from tensorwright.cli.arguments.models import TOLERANCE, TOLERANCE_STEPS, check_model
from tensorwright.cli.arguments.output import check_writable
from tensorwright.cli.printing import shorten
from tensorwright.compile_options import Shapes, Sizes
from tensorwright.graph import SizesAt
from tensorwright.peers.process import describe_error
from tensorwright.records import MemoryStore, opened
from tensorwright_lab.bench.machine import Ceiling, describe_machine, measure_ceiling, threads_of
from tensorwright_lab.bench.network_runs import Case, Plan, bench_model, read_cases
from tensorwright_lab.bench.options import (
    check_resume,
    check_same_run,
    of_builds,
    peers_option,
    same_build_option,
)
from tensorwright_lab.comparison import BenchRow, print_rows, read_rows, write_rows
from tensorwright_lab.rows import machine_options, row_name
from tensorwright_lab.suites import PAPER, SUITES, suite

DEFAULT_PEERS = ("onnxruntime",)
_LONGEST = 36  # of a name or a failure on a line of progress; the table below has all of it
PAPER_PEERS = ("onnxruntime", "openvino", "inductor")
_SAME_RUN = (
    *("target", "threads", "fingerprint", "peers", "rounds", "seed", "tuned", "minutes"),
    "sizes",
)


@click.command("models")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--suite", "suites", type=click.Choice(SUITES), multiple=True, help="A whole suite.")
@click.option(
    "--check",
    is_flag=True,
    help=f"Exit with 1 if a model fails or is off by more than {TOLERANCE:g}.",
)
@click.option("--tuned/--untuned", default=True, help="Use what is on record, or nothing of it.")
@click.option(
    "--minutes", type=options.Minutes(), help="Tune each model first, so long in all runs."
)
@options.records_option
@machine_options
@options.seed_option
@options.shapes_option
@options.sizes_option
@options.points_option
@click.option(
    "--rounds", type=click.IntRange(min=0), default=11, help="Turns of each; 0 only checks."
)
@peers_option("onnxruntime if not given, for the suite paper also openvino and inductor")
@click.option("--json", "json_path", metavar="FILE", help="Write the rows to a file, too.")
@click.option("--resume", is_flag=True, help="Keep the finished models of that file.")
@same_build_option
def command(
    models: tuple[str, ...],
    suites: tuple[str, ...],
    check: bool,
    tuned: bool,
    minutes: float | None,
    records: Path | None,
    target: CpuTarget,
    threads: int | None,
    seed: int,
    input_shapes: Shapes | None,
    sizes: Sizes | None,
    at: SizesAt | None,
    rounds: int,
    peers: tuple[str, ...],
    json_path: str | None,
    resume: bool,
    same_build: bool,
) -> None:
    """Compile networks, check their answers against a peer's, and time all in turn.

    The error is that of the worst output, the tensor before the last softmax among them, over the
    largest number of that output. The ratio is the time of the fastest peer over ours; where there
    are schedules on record, our time without them has columns, too. With --minutes a model that has
    not been tuned so long is tuned first; the same command goes on where it stopped, with --resume
    after the models that are done. A model with open sizes is compiled once, and compared at each
    point of --at, a row for each; rows of other builds are marked. Exits with 1 where an answer of
    ours is wrong: it has no time then, no more than a peer that is wrong.

    Example: tensorwright bench models --suite light --suite wild --json rows.json
    """
    names = tuple(dict.fromkeys((*models, *(each for name in suites for each in suite(name)))))
    if not names:
        raise click.UsageError("name models, or a suite: --suite light")
    if minutes and not tuned:
        raise click.UsageError("--minutes tunes, --untuned uses nothing of it: leave one out")
    if not tuned:
        options.refuse_given(("records",), because="--untuned uses nothing of what is on record")
    check_resume(resume, json_path)
    for name in names:
        check_model(name)
    cases = read_cases(names, input_shapes, sizes, at)
    check_writable(json_path, *names, records)
    count = threads_of(threads)
    ceiling = measure_ceiling(target, count) if rounds else Ceiling(count, 0.0, 0.0)
    chosen = peers or (PAPER_PEERS if PAPER in suites else DEFAULT_PEERS)
    plan = Plan(target, count, seed, rounds, chosen, input_shapes, minutes, ceiling.peak, sizes, at)
    head = {
        "suites": list(suites),
        **describe_machine(target, ceiling),
        "peers": list(chosen),
        "rounds": rounds,
        "seed": plan.seed,
        "tuned": tuned,
        "minutes": minutes,
        "sizes": sizes,
    }
    rows = _kept_rows(json_path, head, same_build) if resume and json_path is not None else []
    todo = _without(cases, rows)
    left = sum(len(case.points) for case in todo)
    start, first = time.monotonic(), len(rows)
    with MemoryStore() if not tuned else opened(records, create=bool(minutes)) as store:
        for case in todo:
            for row in bench_model(case, plan, store):
                rows.append(row)
                number = len(rows) - first
                _note(row, left - number, (time.monotonic() - start) / number)
                _write(json_path, rows, head, plan)
            if rounds:
                rows, plan = _measure_peak_again(rows, plan)
                _write(json_path, rows, head, plan)
    print_rows(rows, target=target.name)
    has_failed = all(row.failure for row in rows) or any(row.is_wrong for row in rows)
    if has_failed or (check and not all(passes(row) for row in rows)):
        sys.exit(1)


def _write(
    path: str | None, rows: Sequence[BenchRow], head: Mapping[str, object], plan: Plan
) -> None:
    if path is not None:
        write_rows(path, rows, {**head, "peak_gflops": plan.peak / 1e9})


def _kept_rows(path: str, head: Mapping[str, object], same_build: bool) -> list[BenchRow]:
    """The rows of an earlier run without a failure, of this build alone if so asked.

    Raises:  UsageError if that was not this machine, target and way of measuring.
    """
    before, rows = read_rows(path)
    check_same_run(path, before, head, _SAME_RUN)
    return of_builds([row for row in rows if not row.failure and not row.is_wrong], same_build)


def _without(cases: Sequence[Case], rows: Sequence[BenchRow]) -> tuple[Case, ...]:
    """The cases with the points that have no row yet."""
    done = {(row.model, row.at) for row in rows}
    left = []
    for case in cases:
        name = row_name(case.model)
        points = tuple(point for point in case.points if (name, str(point)) not in done)
        left.append(Case(case.model, points))
    return tuple(case for case in left if case.points)


def _measure_peak_again(rows: list[BenchRow], plan: Plan) -> tuple[list[BenchRow], Plan]:
    """Shares of the highest peak that was seen: others on the machine only ever lower it."""
    peak = measure_ceiling(plan.target, plan.threads).peak
    if peak <= plan.peak:
        return rows, plan
    scale = plan.peak / peak
    scaled = [
        row if row.peak_share is None else replace(row, peak_share=row.peak_share * scale)
        for row in rows
    ]
    return scaled, replace(plan, peak=peak)


def passes(row: BenchRow) -> bool:
    """Whether the model ran, with the right answers."""
    is_near = row.max_rel_error is not None and row.max_rel_error <= TOLERANCE
    return not row.failure and is_near and (row.max_steps or 0.0) <= TOLERANCE_STEPS


def _note(row: BenchRow, left: int, each_s: float) -> None:
    """Say at once how a model did, and how long the rest takes if it is like those before it."""
    error = describe_error(row.max_rel_error, row.max_steps)
    ratio = ""
    if row.ratio is not None:
        ratio = f", {row.ours_ms:.2f} ms, ratio {row.ratio:.2f} to {row.peer}"
    if row.untuned_share is not None:
        ratio += f", untuned {row.untuned_ratio:.2f}"
    failure = f", {shorten(row.failure.splitlines()[0], _LONGEST)}" if row.failure else ""
    rest = f"; {left} left, {left * each_s / 60:.0f} minutes" if left else ""
    click.echo(f"{shorten(row.label, _LONGEST)}: error {error}{ratio}{failure}{rest}", err=True)
