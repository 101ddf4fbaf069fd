"""Searches that share what is measured: what one has measured, the others need not.

A `Lab` measures each program once, without regard to who asks, so that searches that are compared
see the same landscape, and a run that was cut off goes on where it was.
"""

from __future__ import annotations

import json
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import Self

from tensorwright.artifacts import Kernel, build_request
from tensorwright.base import CpuTarget, detect_target
from tensorwright.processes import hold_turn
from tensorwright.records import Record, Status
from tensorwright.tuning import measuring
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.session.session import make_space
from tensorwright.tuning.space import Space, SpaceKind
from tensorwright.tuning.strategies import Strategy
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import TaskState
from tensorwright_lab.judging import Bench, build_all, measure_in_turns

ROUND = 16
THREADS = 2
MakeStrategy = Callable[[Task, Space, int], Strategy]
DROP_RATIO = 2.0  # so many times slower than the best known, a program is measured briefly
OPTIONS = measuring.MeasureOptions(drop_ratio=DROP_RATIO)
FIRST_TRIES = 3  # a slow moment would raise the first point of every curve
TURNS = 5


@dataclass(frozen=True, slots=True)
class Known:
    """What came of a program: its fastest sample in seconds, infinite where it failed.

    Foreign load only ever adds time.

    cost_s   seconds that building and measuring it took
    """

    status: Status
    time_s: float
    cost_s: float = 0.0


class Lab:
    """Builds and measures what nobody has measured yet. Keeps it in a file if one is named."""

    def __init__(self, threads: int, path: Path | None = None) -> None:
        self.target: CpuTarget = detect_target()
        self.threads = threads
        self.known: dict[tuple[str, str], Known] = {}
        self.measured = 0
        self._best: dict[str, float] = {}
        self.path = path
        self._stack = ExitStack()
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                self._read(line)

    def __enter__(self) -> Self:
        self._builder = self._stack.enter_context(measuring.PoolBuilder())
        self._runner = self._stack.enter_context(measuring.ChildRunner(OPTIONS))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def times(self, task: Task, traces: Sequence[str]) -> list[Known]:
        """What came of these programs, measured now or before."""
        key = task.workload.key
        fresh = [each for each in dict.fromkeys(traces) if (key, each) not in self.known]
        started = time.perf_counter()
        requests = [build_request(task.workload, each, self.target) for each in fresh]
        built = self._builder.build(requests) if fresh else []
        built_s = (time.perf_counter() - started) / max(len(fresh), 1)
        with hold_turn():
            for trace, result in zip(fresh, built, strict=True):
                started = time.perf_counter()
                found = self._measure(task, result)
                cost_s = built_s + time.perf_counter() - started
                self._keep(key, trace, replace(found, cost_s=cost_s))
        return [self.known[key, trace] for trace in traces]

    def times_in_turns(self, task: Task, traces: Sequence[str]) -> dict[str, float]:
        """Seconds of programs that ran before, measured again in turns: the median of `TURNS`.

        What was measured once was measured in a quiet moment or not, and a search ends with what
        was lucky.
        """
        bench = Bench(self._builder, self._runner, self.target, self.threads)
        built = build_all(task.workload, traces, bench)
        kernels = {trace: one for trace, one in built.items() if isinstance(one, Kernel)}
        measured = measure_in_turns(task.workload, kernels, bench, TURNS)
        return {trace: median(one.times_s) for trace, one in measured.items() if one.times_s}

    def _measure(self, task: Task, result: measuring.BuildResult) -> Known:
        if not isinstance(result, Kernel):
            status = (
                result.status if isinstance(result, measuring.BuildFailed) else Status.BUILD_ERROR
            )
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
                fields = [workload, trace, known.status.value, time_s, known.cost_s]
                print(json.dumps(fields), file=file)

    def _read(self, line: str) -> None:
        """Take in a line of the file; not one that was cut off, or lacks what it cost."""
        try:
            workload, trace, status, time_s, cost_s = json.loads(line)
        except ValueError:
            return
        self._note(workload, trace, Known(Status(status), time_s or math.inf, cost_s))

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
    at_s       the second at which each trial ended, of a search that has measured all its programs
               itself
    """

    subject: str
    variant: str
    seed: int
    best_s: tuple[float, ...]
    search_s: float
    at_s: tuple[float, ...] = ()

    def at(self, trials: int) -> float:
        """The best time after so many trials."""
        return self.best_s[min(trials, len(self.best_s)) - 1]

    def until(self, time_s: float) -> int | None:
        """After how many trials there was a program that takes no longer; None if never."""
        return next((n for n, best_s in enumerate(self.best_s, 1) if best_s <= time_s), None)

    def after(self, seconds: float) -> float:
        """The best time after so many seconds; infinite before the first trial ended."""
        trials = bisect_right(self.at_s, seconds)
        return self.best_s[trials - 1] if trials else math.inf


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
        self.measure_s = 0.0
        self.at_s: list[float] = []

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
            self.measure_s += known.cost_s
            self.at_s.append(self.search_s + self.measure_s)
            self.tried.append(candidate.trace)
        state.trials += len(candidates)
        state.history = (*state.history, state.best_s)
        started = time.perf_counter()
        self.strategy.observe(records)
        self.search_s += time.perf_counter() - started
