"""The time of a network against the trials of its tuning: never worse than untuned, and falling.

    python benchmarks/trials_curve.py [MODEL] [--trials N] [--target T] [--threads N] [--seed N]
                                      [--rounds N] [--processes N]
                                      [--out FOLDER] [--json FILE] [--png FILE]

One search is stopped at 16, 32, 64, ... trials.  At each of these marks a copy of its records is
ranked and compared inside the network, as `tensorwright optimize --no-rewrite --trials MARK` ends;
what was chosen at the mark before stands until it is beaten there.  The executable is kept; mark 0
is compiled without records.  Then all executables take turns, each in a process of its own, several
times in new processes, and their answers are compared with those of mark 0.  The table says how
much faster each is than untuned, and than the mark before.

Run again with the same folder to go on: marks that are there are not searched for again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lab.pictures import pyplot

from tensorwright import base
from tensorwright.cli.arguments.models import read_graph, short_name
from tensorwright.cli.printing import print_table
from tensorwright.compile_options import CompileOptions
from tensorwright.drivers.sized_network import sized_program, tasks_of
from tensorwright.drivers.tune import as_in_network, search, setting_of
from tensorwright.graph import Graph, Partition, random_inputs
from tensorwright.machine import detect_hardware
from tensorwright.peers.process import Arrays, Failure, PeerProcess, Timing, max_rel_error, rotate
from tensorwright.pipeline import finish, prepare
from tensorwright.records import (
    MemoryStore,
    NetworkChoice,
    RecordStore,
    load_last_choice,
    load_thread_limits,
    save_choice,
)
from tensorwright.schedule import format_trace
from tensorwright.tuning.session import Interrupt, Options, Progress, choose_callbacks
from tensorwright.tuning.session import tune as tune_tasks

MODEL = "zoo:resnet101"
FIRST = 16
ROUNDS = 15
PROCESSES = 5
NOISE = 0.02  # of a time in turns
_RECORDS = "records.sqlite"


def marks_of(trials: int) -> tuple[int, ...]:
    """0, 16, 32, 64, ... and the last one."""
    found = [0]
    while (mark := max(FIRST, 2 * found[-1])) < trials:
        found.append(mark)
    return (*found, trials)


class StopAt:
    """Interrupts a session that has spent so many trials, so that it can go on later."""

    def __init__(self, trials: int, interrupt: Interrupt) -> None:
        self._trials = trials
        self._interrupt = interrupt

    def on_progress(self, progress: Progress) -> None:
        """Look at the trials of all runs."""
        if progress.trials >= self._trials:
            self._interrupt.set()

    def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is tuned, and how.

    folder   of the records and the executables
    """

    model: str
    target: base.CpuTarget
    threads: int
    seed: int
    folder: Path

    def executable(self, mark: int) -> Path:
        """The file of a mark."""
        return self.folder / f"mark-{mark}.tw"

    def records(self, mark: int) -> Path:
        """The records as they were at a mark, with what came of its comparisons."""
        return self.folder / f"mark-{mark}.sqlite"


def make_executables(plan: Plan, parts: Partition, marks: Sequence[int]) -> tuple[int, ...]:
    """Search, and write the executable of every mark that has none.

    Returns:  the marks; fewer where there was nothing left to try.
    """
    plan.folder.mkdir(parents=True, exist_ok=True)
    done: list[int] = []
    for mark in marks:
        if not plan.executable(mark).exists():
            if mark == 0:
                with MemoryStore() as nothing:
                    finish(parts, plan.target, plan.threads, nothing).save(plan.executable(mark))
            elif go_on(plan, parts, mark):
                conclude(plan, parts, mark, done[-1])
            else:
                break
        done.append(mark)
    return tuple(done)


def go_on(plan: Plan, parts: Partition, trials: int) -> bool:
    """Search on until so many trials are spent, and leave the session unfinished; whether there
    were so many.
    """
    interrupt = Interrupt()
    callbacks = (StopAt(trials, interrupt), *choose_callbacks(is_quiet=False))
    how = Options(
        trials=trials,
        seed=plan.seed,
        callbacks=callbacks,
        interrupt=interrupt,
        keeps_model=True,
    )
    network, setting = sized_program(parts), setting_of(plan.target, plan.threads)
    with RecordStore(plan.folder / _RECORDS) as store:
        result = tune_tasks(
            tasks_of(network, setting),
            setting,
            store,
            how,
            name=parts.graph.name,
            measuring=as_in_network(network),
        )
    if result.is_interrupted and result.trials < trials:
        raise KeyboardInterrupt
    return result.is_interrupted


def conclude(plan: Plan, parts: Partition, mark: int, before: int) -> None:
    """End a copy of the search as one with so many trials ends, and write the executable.

    before   the mark whose choice stands
    """
    copied = plan.records(mark)
    copied.unlink(missing_ok=True)
    shutil.copyfile(plan.folder / _RECORDS, copied)
    setting = setting_of(plan.target, plan.threads)
    place = parts, setting
    with RecordStore(copied) as store:
        if before:
            with RecordStore(plan.records(before)) as earlier:
                known = load_last_choice(earlier, *place)
                limits = load_thread_limits(earlier, *place)
            traces = tuple((key, format_trace(trace)) for key, trace in known.items())
            if traces:
                last = NetworkChoice(traces, 0.0, 0.0, tuple(limits.items()))
                save_choice(store, *place, last)
        result = search(parts, setting, store, Options(trials=mark, seed=plan.seed))
        if result.is_interrupted:
            raise KeyboardInterrupt
        finish(parts, plan.target, plan.threads, store).save(plan.executable(mark))


@dataclass(frozen=True, slots=True)
class Point:
    """A mark: milliseconds in turns with the others, how far samples lie apart, and the largest
    difference of an answer from that of mark 0, over the largest number.

    time_ms, spread   of the medians of all processes
    """

    trials: int
    time_ms: float
    spread: float
    error: float


def measure(
    plan: Plan, graph: Graph, marks: Sequence[int], rounds: int, processes: int
) -> tuple[Point, ...]:
    """Time the executables of all marks in turns, several times in new processes: where memory
    lies differs from process to process, and with it the time.

    Marks with one executable are one competitor.
    Raises: PeerFailed where one does not run.
    """
    inputs = random_inputs(graph, plan.seed)
    files = {mark: digest(plan.executable(mark)) for mark in marks}
    firsts = {mark: next(m for m in marks if files[m] == files[mark]) for mark in marks}
    rivals = tuple(dict.fromkeys(firsts.values()))
    medians: dict[int, list[float]] = {mark: [] for mark in rivals}
    errors: dict[int, float] = {}
    for _ in range(processes):
        for mark, (time_ms, error) in zip(
            rivals, _in_turns(plan, inputs, rivals, rounds), strict=True
        ):
            medians[mark].append(time_ms)
            errors[mark] = max(error, errors.get(mark, 0.0))
    points: list[Point] = []
    for mark, first in firsts.items():
        found = medians[first]
        middle = median(found)
        points.append(Point(mark, middle, (max(found) - min(found)) / middle, errors[first]))
    return tuple(points)


def digest(path: Path) -> str:
    """What tells a file from others."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _in_turns(
    plan: Plan, inputs: Arrays, marks: Sequence[int], rounds: int
) -> Iterator[tuple[float, float]]:
    """(milliseconds, difference of the answer from that of the first) of each mark, each in a
    process of its own.
    """
    with ExitStack() as stack:
        rivals: list[PeerProcess] = []
        errors: list[float] = []
        first: Arrays | None = None
        for mark in marks:
            process = stack.enter_context(PeerProcess(f"{mark}", "ours", target=plan.target))
            process.load(str(plan.executable(mark)), plan.threads)
            outputs = process.check(inputs)
            first = outputs if first is None else first
            errors.append(max_rel_error(outputs, first))
            rivals.append(process)
        results = rotate(rivals, rounds)
    for result, error in zip(results, errors, strict=True):
        match result:
            case Timing(median_s=median_s):
                yield 1e3 * median_s, error
            case Failure(name=name, reason=reason):
                raise SystemExit(f"mark {name} failed: {reason}")


def rises(points: Sequence[Point], noise: float = NOISE) -> tuple[int, ...]:
    """The marks that are slower than an earlier one by more than the noise."""
    found: list[int] = []
    for place, point in enumerate(points):
        least_ms = min((each.time_ms for each in points[:place]), default=point.time_ms)
        if point.time_ms > (1 + noise) * least_ms:
            found.append(point.trials)
    return tuple(found)


def rows_of(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """A row of the table for each mark."""
    rows: list[tuple[str, ...]] = []
    for before, point in zip((points[0], *points), points, strict=False):
        rows.append(
            (
                f"{point.trials}",
                f"{point.time_ms:.3f}",
                f"{points[0].time_ms / point.time_ms:.3f}",
                f"{before.time_ms / point.time_ms:.3f}",
                f"{100 * point.spread:.1f} %",
                f"{point.error:.0e}",
            )
        )
    return rows


def to_data(plan: Plan, points: Sequence[Point]) -> dict[str, Any]:
    """For JSON: where it was measured, and the points."""
    return {
        "model": plan.model,
        "target": plan.target.name,
        "threads": plan.threads,
        "seed": plan.seed,
        "hardware": detect_hardware().fingerprint,
        "when": base.now_utc(),
        "noise": NOISE,
        "rises": rises(points),
        "points": [asdict(point) for point in points],
    }


def draw(plan: Plan, points: Sequence[Point], path: Path) -> None:
    """Draw the curve as PNG."""
    plt = pyplot()
    figure, panel = plt.subplots(figsize=(5.2, 3.6))
    places = range(len(points))
    panel.plot(places, [point.time_ms for point in points], marker="o")
    panel.axhline(points[0].time_ms, linestyle="--", linewidth=0.8, label="untuned")
    panel.set_xticks(list(places), [str(point.trials) for point in points])
    panel.set_ylim(bottom=0)
    panel.set_xlabel("trials")
    panel.set_ylabel("ms")
    panel.set_title(f"{short_name(plan.model)}, {plan.target.name}, {plan.threads} threads")
    panel.grid(visible=True, alpha=0.3)
    panel.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Search, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=MODEL)
    parser.add_argument("--trials", type=int, default=1024)
    parser.add_argument("--target")
    parser.add_argument("--threads", type=int, default=base.available_cores())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--out", type=Path, default=Path("build/trials_curve"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--png", type=Path)
    asked = parser.parse_args()
    target = CompileOptions(target=asked.target).machine
    folder = asked.out / f"{short_name(asked.model)}-{target.name}-{asked.threads}t-{asked.seed}"
    plan = Plan(asked.model, target, asked.threads, asked.seed, folder)
    if asked.png:
        pyplot()
    graph = read_graph(plan.model, None, plan.seed)
    parts = prepare(graph, target, threads=plan.threads)
    marks = make_executables(plan, parts, marks_of(asked.trials))
    points = measure(plan, graph, marks, asked.rounds, asked.processes)
    print_table(
        ("trials", "ms", "times untuned", "times before", "spread", "error"), rows_of(points)
    )
    slower = rises(points)
    print(f"slower than an earlier mark by more than {NOISE:.0%}: {slower or 'none'}")
    if asked.json:
        base.write_atomically(asked.json, json.dumps(to_data(plan, points), indent=1))
    if asked.png:
        draw(plan, points, asked.png)


if __name__ == "__main__":
    try:
        main()
    except base.TensorwrightError as error:
        sys.exit(str(error))
