"""Build many candidates at once, in worker processes.

LLVM's binding holds one lock for all compiling of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

from tensorwright.base import TensorwrightError, available_cores
from tensorwright.build import BuildRequest, Kernel, build
from tensorwright.processes import (
    Died,
    Done,
    Job,
    Outcome,
    Raised,
    Stopped,
    TimedOut,
    WorkerPool,
    never,
)
from tensorwright.records import Status


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

    job: Job
    take: Callable[[Any], None]


class Builder(Protocol):
    """Builds candidates; `PoolBuilder` is the usual one."""

    def build(
        self,
        requests: Sequence[BuildRequest],
        should_stop: Callable[[], bool] = never,
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
        self._pool = WorkerPool(workers or available_cores())
        self._limit_s = limit_s

    def build(
        self,
        requests: Sequence[BuildRequest],
        should_stop: Callable[[], bool] = never,
        background_jobs: Sequence[BackgroundJob] = (),
    ) -> list[BuildResult]:
        """As `Builder.build`."""
        jobs = [background.job for background in background_jobs]
        jobs += [Job(try_build, (request,)) for request in requests]
        outcomes = self._pool.run(jobs, self._limit_s, should_stop)
        for background, outcome in zip(background_jobs, outcomes, strict=False):
            if isinstance(outcome, Done):
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


def _result(outcome: Outcome) -> BuildResult:
    match outcome:
        case Done(value):
            result: Kernel | BuildFailed = value
            return result
        case Raised():
            status = Status.OUT_OF_MEMORY if outcome.is_memory else Status.BUILD_ERROR
            return BuildFailed(status, str(outcome))
        case Died(cause, was_killed):
            status = Status.OUT_OF_MEMORY if was_killed else Status.BUILD_ERROR
            return BuildFailed(status, f"while building, {cause}")
        case TimedOut(limit_s):
            return BuildFailed(Status.BUILD_TIMEOUT, f"not built within {limit_s:g} s")
        case Stopped():
            return BuildStopped()
