"""Searches that share what is measured: what one has measured, the others need not.

A `Lab` measures each program once, without regard to who asks, so that searches that are compared
see the same landscape, and a run that was cut off goes on where it was.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Self

from tensorwright.base import Target, detect_target
from tensorwright.build import Kernel, build_request
from tensorwright.processes import hold_turn
from tensorwright.records import Record, Status
from tensorwright.tuning.measuring import (
    BuildFailed,
    BuildResult,
    ChildRunner,
    MeasureOptions,
    PoolBuilder,
)
from tensorwright.tuning.session.session import make_space
from tensorwright.tuning.space import Space, SpaceKind
from tensorwright.tuning.strategies import Candidate, Strategy
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling.scheduler import TaskState

ROUND = 16
THREADS = 2
MakeStrategy = Callable[[Task, Space, int], Strategy]
DROP_RATIO = 2.0  # so many times slower than the best known, a program is measured briefly
OPTIONS = MeasureOptions(drop_ratio=DROP_RATIO)
FIRST_TRIES = 3  # a slow moment would raise the first point of every curve


@dataclass(frozen=True, slots=True)
class Known:
    """What came of a program: its fastest sample in seconds, infinite where it failed.

    Foreign load only ever adds time.
    """

    status: Status
    time_s: float


class Lab:
    """Builds and measures what nobody has measured yet. Keeps it in a file if one is named."""

    def __init__(self, threads: int, path: Path | None = None) -> None:
        self.target: Target = detect_target()
        self.threads = threads
        self.known: dict[tuple[str, str], Known] = {}
        self.measured = 0
        self._best: dict[str, float] = {}
        self.path = path
        self._stack = ExitStack()
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                workload, trace, status, time_s = json.loads(line)
                self._note(workload, trace, Known(Status(status), time_s or math.inf))

    def __enter__(self) -> Self:
        self._builder = self._stack.enter_context(PoolBuilder())
        self._runner = self._stack.enter_context(ChildRunner(OPTIONS))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def times(self, task: Task, traces: Sequence[str]) -> list[Known]:
        """What came of these programs, measured now or before."""
        key = task.workload.key
        fresh = [each for each in dict.fromkeys(traces) if (key, each) not in self.known]
        requests = [build_request(task.workload, each, self.target) for each in fresh]
        built = self._builder.build(requests) if fresh else []
        with hold_turn():
            for trace, result in zip(fresh, built, strict=True):
                self._keep(key, trace, self._measure(task, result))
        return [self.known[key, trace] for trace in traces]

    def _measure(self, task: Task, result: BuildResult) -> Known:
        if not isinstance(result, Kernel):
            status = result.status if isinstance(result, BuildFailed) else Status.BUILD_ERROR
            return Known(status, math.inf)
        best_s = self._best.get(task.workload.key, math.inf)
        tries = 1 if math.isfinite(best_s) else FIRST_TRIES
        return min((self._measure_once(task, result, best_s) for _ in range(tries)), key=_time)

    def _measure_once(self, task: Task, kernel: Kernel, best_s: float) -> Known:
        found = self._runner.measure(task.workload, [kernel], self.threads, best_s)
        assert found, "nothing stops the runner"
        one = found[0]
        return Known(one.status, min(one.times_s) if one.status.is_timed else math.inf)

    def _keep(self, workload: str, trace: str, known: Known) -> None:
        self.measured += 1
        self._note(workload, trace, known)
        if self.path is not None:
            time_s = known.time_s if math.isfinite(known.time_s) else 0.0
            with self.path.open("a") as file:
                print(json.dumps([workload, trace, known.status.value, time_s]), file=file)

    def _note(self, workload: str, trace: str, known: Known) -> None:
        self.known[workload, trace] = known
        if known.status is Status.OK:
            best_s = self._best.get(workload, math.inf)
            self._best[workload] = min(best_s, known.time_s)


def _time(known: Known) -> float:
    return known.time_s


def record_of(
    lab: Lab, task: Task, candidate: Candidate, known: Known, best_s: float, round_: int
) -> Record:
    """The record that a search gets: censored only where it is so beside the search's own best."""
    status = known.status
    if status.is_timed:
        status = Status.CENSORED if known.time_s > DROP_RATIO * best_s else Status.OK
    return Record(
        workload=task.workload.key,
        target=lab.target.key,
        hardware="here",
        threads=lab.threads,
        trace=candidate.trace,
        times_s=(known.time_s,) if status.is_timed else (),
        status=status,
        decisions=candidate.decisions,
        round=round_,
    )


@dataclass(frozen=True, slots=True)
class Curve:
    """The best time after each trial, in seconds; infinite before the first that ran.

    search_s   seconds of proposing and learning, all rounds together
    """

    subject: str
    variant: str
    seed: int
    best_s: tuple[float, ...]
    search_s: float

    def at(self, trials: int) -> float:
        """The best time after so many trials."""
        return self.best_s[min(trials, len(self.best_s)) - 1]


def mean_at(curves: Sequence[Curve], trials: int) -> float:
    """The geometric mean of the best times after so many trials."""
    times = [curve.at(trials) for curve in curves]
    return geometric_mean(times) if all(map(math.isfinite, times)) else math.inf


class Search:
    """One search of one task: rounds of a strategy in the lab."""

    def __init__(
        self,
        lab: Lab,
        task: Task,
        make: MakeStrategy,
        seed: int,
        kind: SpaceKind = SpaceKind.SKETCHES,
    ) -> None:
        self.lab = lab
        self.state = TaskState(task)
        self.strategy = make(task, make_space(task, lab.target, kind), seed)
        self.best_s: list[float] = []
        self.tried: list[str] = []
        self.search_s = 0.0

    def round(self, most: int = ROUND) -> None:
        """One round; the state says where there is nothing left."""
        started = time.perf_counter()
        candidates = self.strategy.propose(most)
        self.search_s += time.perf_counter() - started
        if not candidates:
            self.state.is_exhausted = True
            return
        task, state = self.state.task, self.state
        records = []
        found = self.lab.times(task, [one.trace for one in candidates])
        for candidate, known in zip(candidates, found, strict=True):
            records.append(
                record_of(self.lab, task, candidate, known, state.best_s, len(state.history))
            )
            state.best_s = min(state.best_s, known.time_s)
            if not self.best_s:
                state.default_s = known.time_s
            self.best_s.append(state.best_s)
            self.tried.append(candidate.trace)
        state.trials += len(candidates)
        state.history = (*state.history, state.best_s)
        started = time.perf_counter()
        self.strategy.observe(records)
        self.search_s += time.perf_counter() - started
