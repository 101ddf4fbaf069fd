"""The first minutes of tuning: the time of a network against the seconds spent, as a curve.

    python benchmarks/tuning_start.py [MODEL ...] [--seconds N] [--how model|rule] [--json FILE]

Each model is tuned afresh, with the pre-trained time model and without it, nothing on record.  The
time of a network is the weighted sum of its workloads' best so far; one that was not measured yet
counts with the first time that it gets, if need be after the session.  At the end of each line
stands where the seconds went: into the search, into building, into measuring; the rest are starting
the processes, and the ranking at the end.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensorwright.base import available_cores, override
from tensorwright.cli.arguments.models import read_proto, short_name
from tensorwright.cli.printing import print_table
from tensorwright.compile_options import CompileOptions
from tensorwright.drivers.sized_network import sized_program, tasks_of
from tensorwright.drivers.tune import as_in_network, setting_of
from tensorwright.graph import Partition
from tensorwright.pipeline import prepare
from tensorwright.records import MemoryStore, Setting
from tensorwright.tuning.session import Options, Progress, tune

MODELS = ("zoo:resnet50", "wild:unet_gn")
MARKS_S = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600)
_WORKLOAD_TRIALS = 1


@dataclass(frozen=True, slots=True)
class Point:
    """One moment: seconds, candidates tried, and each workload's best time; seconds spent on
    searching, building and measuring.
    """

    elapsed_s: float
    trials: int
    best_s: tuple[float, ...]
    spent_s: tuple[float, float, float]


@dataclass(slots=True)
class Recorder:
    """Keeps what a session tells."""

    points: list[Point] = field(default_factory=list)
    weights: tuple[float, ...] = ()

    def on_progress(self, progress: Progress) -> None:
        """One more point."""
        self.weights = tuple(row.weight for row in progress.rows)
        best_s = tuple(row.best_s for row in progress.rows)
        spent_s = progress.search_s, progress.build_s, progress.measure_s
        self.points.append(Point(progress.elapsed_here_s, progress.trials_here, best_s, spent_s))

    def close(self) -> None:
        """Nothing to close."""

    def first_times(self, later: Sequence[float]) -> tuple[float, ...]:
        """The first finite time of each workload; `later` where the session has none."""
        count = len(self.weights)
        return tuple(
            next((p.best_s[n] for p in self.points if math.isfinite(p.best_s[n])), later[n])
            for n in range(count)
        )

    def curve(self, later: Sequence[float]) -> list[tuple[float, int, float]]:
        """(seconds, trials, time of the network in ms) of each point."""
        first = self.first_times(later)
        return [
            (point.elapsed_s, point.trials, 1e3 * self._network_s(point.best_s, first))
            for point in self.points
        ]

    def _network_s(self, best_s: Sequence[float], first: Sequence[float]) -> float:
        times = [b if math.isfinite(b) else f for b, f in zip(best_s, first, strict=True)]
        return math.fsum(w * t for w, t in zip(self.weights, times, strict=True))


def record(parts: Partition, seconds: float, setting: Setting) -> Recorder:
    """Tune a network for so long, with no records."""
    recorder = Recorder()
    network, store = sized_program(parts), MemoryStore()
    search = Options(minutes=seconds / 60, seed=0, callbacks=(recorder,), should_rank=False)
    tune(tasks_of(network, setting), setting, store, search, measuring=as_in_network(network))
    return recorder


def measure_defaults(parts: Partition, setting: Setting, missing: Sequence[int]) -> list[float]:
    """The times of default schedules, in seconds, of some workloads; 0 for the others."""
    found, network = [0.0] * len(parts.workloads), sized_program(parts)
    for number in missing:
        task = tasks_of(network, setting)[number]
        search = Options(trials=_WORKLOAD_TRIALS, seed=0, callbacks=(), should_rank=False)
        result = tune([task], setting, MemoryStore(), search, measuring=as_in_network(network))
        best_s = result.tasks[0].best_s
        found[number] = best_s if math.isfinite(best_s) else 0.0
    return found


def at(curve: Sequence[tuple[float, int, float]], second: float) -> tuple[int, float]:
    """Trials and time of the network, as they were after so many seconds."""
    before = [point for point in curve if point[0] <= second] or [curve[0]]
    return before[-1][1], before[-1][2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--target")
    parser.add_argument("--how", choices=("model", "rule"), action="append")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    kept = []
    for model in asked.models:
        target = CompileOptions(target=asked.target).machine
        parts, setting = prepare(read_proto(model), target), setting_of(target, asked.threads)
        for how in asked.how or ("model", "rule"):
            with override(default_schedule=how):
                recorder = record(parts, asked.seconds, setting)
                last = recorder.points[-1]
                missing = [n for n, time_s in enumerate(last.best_s) if not math.isfinite(time_s)]
                curve = recorder.curve(measure_defaults(parts, setting, missing))
            name = f"{short_name(model)} by {how}"
            kept.append({"model": model, "how": how, "curve": curve, "spent_s": last.spent_s})
            marks = [mark for mark in MARKS_S if mark < asked.seconds] + [int(asked.seconds)]
            rows = [(f"{mark}", *_text(at(curve, mark), curve)) for mark in marks]
            print(f"\n{name}: {len(parts.workloads)} workloads, {len(missing)} never measured")
            print_table(("seconds", "trials", "network, ms", "of the last"), rows)
            words = zip(("search", "build", "measure"), last.spent_s, strict=True)
            print(f"of {last.elapsed_s:.0f} s:", *(f"{word} {s:.1f}" for word, s in words))
    if asked.json:
        asked.json.write_text(json.dumps(kept, indent=1))


def _text(point: tuple[int, float], curve: Sequence[tuple[float, int, float]]) -> tuple[str, ...]:
    trials, time_ms = point
    return f"{trials}", f"{time_ms:.2f}", f"{100 * curve[-1][2] / time_ms:.0f} %"


if __name__ == "__main__":
    main()
