"""Build a kernel: from a workload and the text of a trace to object code."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tensorwright.base import Target
from tensorwright.codegen.llvm import compile_module, emit
from tensorwright.expr import Compute, Tensor, topological_order
from tensorwright.loop import Parameter, lower, run_passes
from tensorwright.schedule import Workload, initial_state, parse_trace, replay


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
