"""Measure candidates alone, in a child process that they may crash.

A crash, a hang, lack of memory, a wrong answer: each is a status of the measurement. The child is
replaced if it died, and also after a wrong answer, because the kernel may have written anywhere.

Build many candidates at once, in worker processes.

LLVM's binding holds one lock for all compiling of a process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

from tensorwright import processes
from tensorwright.artifacts import BuildRequest, Kernel, build
from tensorwright.base import TensorwrightError, available_cores
from tensorwright.records import Status
from tensorwright.schedule import Workload
from tensorwright.tuning.measuring import timing
from tensorwright.tuning.measuring.expected_results import ExpectedResults, make_expected_results


@dataclass(frozen=True, slots=True)
class BuildFailed:
    """Why there is no kernel: BUILD_ERROR, BUILD_TIMEOUT or OUT_OF_MEMORY, and a text."""

    status: Status
    error: str


@dataclass(frozen=True, slots=True)
class BuildStopped:
    """Not built: the session was asked to stop."""


BuildResult: TypeAlias = Kernel | BuildFailed | BuildStopped


def try_build(request: BuildRequest) -> Kernel | BuildFailed:
    """As `build`; errors of ours are returned."""
    try:
        return build(request)
    except TensorwrightError as error:
        return BuildFailed(Status.BUILD_ERROR, f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """Another job for the processes while they build, and the function that takes its value.

    The job may never run, and its errors are not reported. Code that needs the value computes it
    itself if it has not arrived.
    """

    job: processes.Job
    take: Callable[[Any], None]


class Builder(Protocol):
    """Builds candidates; `PoolBuilder` is the usual one."""

    def build(
        self,
        requests: Sequence[BuildRequest],
        should_stop: Callable[[], bool] = processes.never,
        background_jobs: Sequence[BackgroundJob] = (),
    ) -> list[BuildResult]:
        """One result for each request, in order. After `should_stop` turns true, it returns soon
        and the rest is `BuildStopped`.

        background_jobs   done beside
        """

    def close(self) -> None:
        """Give back processes and memory."""


class PoolBuilder:
    """Builds in worker processes; one that crashes or hangs costs only its candidate.

    workers   their number; None: the cores of this machine
    limit_s   longest a build may take
    """

    def __init__(self, workers: int | None = None, limit_s: float = 20.0) -> None:
        self._pool = processes.WorkerPool(workers or available_cores())
        self._limit_s = limit_s

    def build(
        self,
        requests: Sequence[BuildRequest],
        should_stop: Callable[[], bool] = processes.never,
        background_jobs: Sequence[BackgroundJob] = (),
    ) -> list[BuildResult]:
        """As `Builder.build`."""
        jobs = [background.job for background in background_jobs]
        jobs += [processes.Job(try_build, (request,)) for request in requests]
        outcomes = self._pool.run(jobs, self._limit_s, should_stop)
        for background, outcome in zip(background_jobs, outcomes, strict=False):
            if isinstance(outcome, processes.Done):
                background.take(outcome.value)
        return [_result(outcome) for outcome in outcomes[len(background_jobs) :]]

    def start(self) -> None:
        """Start the processes now, so that they are ready when first needed."""
        self._pool.start()

    def close(self) -> None:
        """End the processes."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _result(outcome: processes.Outcome) -> BuildResult:
    match outcome:
        case processes.Done(value):
            result: Kernel | BuildFailed = value
            return result
        case processes.Raised():
            status = Status.OUT_OF_MEMORY if outcome.is_memory else Status.BUILD_ERROR
            return BuildFailed(status, str(outcome))
        case processes.Died(cause, was_killed):
            status = Status.OUT_OF_MEMORY if was_killed else Status.BUILD_ERROR
            return BuildFailed(status, f"while building, {cause}")
        case processes.TimedOut(limit_s):
            return BuildFailed(Status.BUILD_TIMEOUT, f"not built within {limit_s:g} s")
        case processes.Stopped():
            return BuildStopped()


_PREPARE_S = 300.0
_BINDING = {"OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"}
# Measured beside one busy process on two cores: regions of two threads that should last 0.1 ms take
# 7 ms for seconds on end, because both threads are kept on one core; bound to cores, they do not.


@dataclass(frozen=True, slots=True)
class Trial:
    """A kernel that races against the best so far.

    index   the caller's number for it          best_s   seconds of the best; infinite for no race
    """

    index: int
    workload: Workload
    kernel: Kernel
    threads: int
    best_s: float


class Runner(Protocol):
    """Measures kernels; `ChildRunner` is the usual one."""

    def measure(
        self,
        workload: Workload,
        kernels: Sequence[Kernel],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool] = processes.never,
    ) -> list[timing.Measurement] | None:
        """One measurement for each kernel, in order; None if `should_stop` became true.

        One kernel races against `best_s`, seconds of the best so far. Several take turns, and none
        is dropped; if one of them ends the process, all of them have failed.
        """

    def measure_each(
        self,
        trials: Iterable[Trial],
        should_stop: Callable[[], bool] = processes.never,
        most: int = 1,
    ) -> Iterator[tuple[Trial, timing.Measurement]]:
        """Measure kernels that race, one after the other; ends if `should_stop` becomes true.

        Each trial is taken when it can begin, so its `best_s` includes those before it.

        most   the most trials, if they are shared among devices
        """
        for trial in trials:
            measured = self.measure(
                trial.workload, [trial.kernel], trial.threads, trial.best_s, should_stop
            )
            if not measured:
                return
            yield trial, measured[0]

    def turn(
        self, should_stop: Callable[[], bool] = processes.never
    ) -> AbstractContextManager[bool]:
        """Hold the machine while kernels are measured; gives False as `hold_turn` does."""
        return processes.hold_turn(should_stop)

    def close(self) -> None:
        """Give back processes and memory."""


class ChildRunner(Runner):
    """Measures in a spawned child process. Not for several threads."""

    def __init__(
        self,
        options: timing.MeasureOptions | None = None,
        seed: int = 0,
        *,
        bounds_addresses: bool = True,
    ) -> None:
        """Start nothing yet.

        bounds_addresses   whether the process has few addresses, so that a program that wants all
                           memory fails; drivers of cards ask for more of them than there is memory
        """
        self._options = options or timing.MeasureOptions()
        self._seed = seed
        first = processes.Job(
            timing.limit_process, (self._options.memory_bytes if bounds_addresses else None,)
        )
        variables = {name: os.environ.get(name, usual) for name, usual in _BINDING.items()}
        self._pool = processes.WorkerPool(1, first, variables)
        self._folder = tempfile.TemporaryDirectory(prefix="tensorwright-tune-")
        self._expected: dict[str, ExpectedResults | str] = {}
        self._prepared = ""

    def start(self) -> None:
        """Start the process now, so that it is ready when first needed."""
        self._pool.start()

    def measure(
        self,
        workload: Workload,
        kernels: Sequence[Kernel],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool] = processes.never,
    ) -> list[timing.Measurement] | None:
        """As `Runner.measure`."""
        expected = self._expected_of(workload)
        if isinstance(expected, str):
            return [timing.Measurement(Status.RUN_ERROR, error=expected) for _ in kernels]
        outcome = self._run(expected, tuple(kernels), threads, best_s, should_stop)
        if isinstance(outcome, processes.Stopped):
            return None
        measurements = measurements_of(outcome, len(kernels))
        if any(one.status is Status.WRONG_ANSWER for one in measurements):
            self._pool.replace()
            self._prepared = ""
        return measurements

    def close(self) -> None:
        """End the process. Closing twice does no harm."""
        self._pool.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(
        self,
        expected: ExpectedResults,
        kernels: tuple[Kernel, ...],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool],
    ) -> processes.Outcome:
        if self._prepared != expected.key:
            self._prepared = ""
            (outcome,) = self._pool.run(
                [processes.Job(timing.prepare, (expected,))], _PREPARE_S, should_stop
            )
            if not isinstance(outcome, processes.Done):
                return outcome
            self._prepared = expected.key
        job = processes.Job(
            timing.try_kernels, (expected.key, kernels, threads, best_s, self._options)
        )
        limit_s = self._options.limit_s * len(kernels)
        (outcome,) = self._pool.run([job], limit_s, should_stop)
        if not isinstance(outcome, processes.Done | processes.Raised):
            self._prepared = ""  # the next process is not prepared
        return outcome

    def _expected_of(self, workload: Workload) -> ExpectedResults | str:
        """The answer of the workload, or why there is none."""
        expected = self._expected.get(workload.key)
        if expected is None:
            try:
                expected = make_expected_results(workload, Path(self._folder.name), self._seed)
            except (TensorwrightError, MemoryError) as error:
                expected = f"no expected results: {type(error).__name__}: {error}"
            self._expected[workload.key] = expected
        return expected


def measurements_of(outcome: processes.Outcome, count: int) -> list[timing.Measurement]:
    """The measurements of kernels from the end of their job; [] if it was stopped."""
    match outcome:
        case processes.Done(value):
            return list(value)
        case processes.Raised():
            status = Status.OUT_OF_MEMORY if outcome.is_memory else Status.RUN_ERROR
            failure = timing.Measurement(status, error=str(outcome))
        case processes.Died(cause, was_killed):
            status = Status.OUT_OF_MEMORY if was_killed else Status.CRASHED
            failure = timing.Measurement(status, error=cause)
        case processes.TimedOut(limit_s):
            failure = timing.Measurement(Status.TIMED_OUT, error=f"not done within {limit_s:g} s")
        case processes.Stopped():
            return []
    return [failure] * count
