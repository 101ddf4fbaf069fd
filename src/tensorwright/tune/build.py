"""Build one candidate: from a workload and the text of a trace to object code.

`build` is the whole way and runs anywhere; `Builder` does many at once, in worker processes,
because LLVM's binding holds one lock for all compiling of a process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

from tensorwright.base import Target, TensorwrightError, available_cores
from tensorwright.codegen.llvm import compile_module, emit
from tensorwright.expr import Compute, Tensor, topological_order
from tensorwright.loop import Parameter, lower, run_passes
from tensorwright.records import Status
from tensorwright.schedule import initial_state, parse_trace, replay
from tensorwright.tune.jobs import Died, Done, Job, Outcome, Raised, Stopped, TimedOut
from tensorwright.tune.pool import WorkerPool, never
from tensorwright.tune.task import Workload


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is to be built. `trace` is text, so that what is built is what a record says.

    tensors   the workload's tensors, inputs first: pickling them in this order needs no deep stack
    outputs   which of them the caller gets     constants  names of inputs that may be packed
    """

    name: str
    tensors: tuple[Tensor, ...]
    outputs: tuple[Compute, ...]
    constants: frozenset[str]
    trace: str
    target: Target


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel: its code, and what it takes to call it.

    arguments   names of the workload's inputs and outputs, in the order of the parameters
    workspace_bytes, local_workspace_bytes   scratch memory of a call, and of each of its threads
    """

    object_code: bytes
    symbol: str
    parameters: tuple[Parameter, ...]
    arguments: tuple[str, ...]
    workspace_bytes: int
    local_workspace_bytes: int
    seconds: float

    def total_workspace_bytes(self, threads: int) -> int:
        """The size of the workspace for so many threads."""
        return self.workspace_bytes + threads * self.local_workspace_bytes


@dataclass(frozen=True, slots=True)
class BuildFailed:
    """Why there is no kernel: BUILD_ERROR, BUILD_TIMEOUT or OUT_OF_MEMORY, and a text."""

    status: Status
    error: str


@dataclass(frozen=True, slots=True)
class BuildStopped:
    """Not built: the session was asked to stop."""


BuildResult: TypeAlias = Built | BuildFailed | BuildStopped


def build_request(workload: Workload, trace: str, target: Target) -> BuildRequest:
    """The request to build a workload by a trace."""
    tensors = topological_order(*workload.outputs)
    return BuildRequest("kernel", tensors, workload.outputs, workload.constants, trace, target)


def build(request: BuildRequest) -> Built:
    """Schedule, lower, emit and compile.

    Raises:  UsageError and ScheduleError for a trace that does not parse or is illegal, and what
             the later stages raise.
    """
    start = time.perf_counter()
    state = initial_state(request.outputs, request.constants)
    state = replay(state, parse_trace(request.trace))
    source = emit(run_passes(lower(state, request.name)), request.target)
    code = compile_module(source.ir_text, request.target)
    return Built(
        code,
        source.name,
        source.parameters,
        tuple(parameter.name for parameter in source.parameters),
        source.workspace_bytes,
        source.local_workspace_bytes,
        time.perf_counter() - start,
    )


def try_build(request: BuildRequest) -> Built | BuildFailed:
    """As `build`, with errors of ours as values."""
    try:
        return build(request)
    except TensorwrightError as error:
        return BuildFailed(Status.BUILD_ERROR, f"{type(error).__name__}: {error}")


class Builder(Protocol):
    """Builds candidates; `PoolBuilder` is the usual one."""

    def build(
        self, requests: Sequence[BuildRequest], should_stop: Callable[[], bool] = never
    ) -> list[BuildResult]:
        """One result for each request, in order. After `should_stop` turns true, it returns soon
        and the rest is `BuildStopped`.
        """

    def close(self) -> None:
        """Give back processes and memory."""


class PoolBuilder:
    """Builds in worker processes; one that crashes or hangs costs its candidate, no more.

    workers   how many; the cores of this machine where None
    limit_s   longest a build may take
    """

    def __init__(self, workers: int | None = None, limit_s: float = 20.0) -> None:
        self._pool = WorkerPool(workers or available_cores())
        self._limit_s = limit_s

    def build(
        self, requests: Sequence[BuildRequest], should_stop: Callable[[], bool] = never
    ) -> list[BuildResult]:
        """As `Builder.build`."""
        jobs = [Job(try_build, (request,)) for request in requests]
        return [_result(o) for o in self._pool.run(jobs, self._limit_s, should_stop)]

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
            result: Built | BuildFailed = value
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
