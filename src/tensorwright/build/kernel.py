"""Build kernels: turn a workload and a trace into object code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tensorwright.base import Target, dump, override, without_collection
from tensorwright.build.backend import backend_of
from tensorwright.build.loop_program import loop_program
from tensorwright.codegen import Backend, Signature, Source
from tensorwright.expr import Compute, Tensor, topological_order
from tensorwright.loop import LoopProgram, Parameter
from tensorwright.runtime import (
    Device,
    Function,
    KernelSpec,
    LoadedCode,
    Memory,
    check_device,
    device_of,
    kernel_spec,
)
from tensorwright.schedule import Schedulable, Schedule, Workload, parse_schedule

Machine = TypeVar("Machine", bound=Target)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A built kernel.

    seconds   how long the build took
    target    the machine for which it was built
    """

    object_code: bytes
    signature: Signature
    seconds: float
    target: Target

    @property
    def symbol(self) -> str:
        """The function that the object code defines."""
        return self.signature.symbol

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments of a call, in order; `name` is the name in the workload."""
        return self.signature.parameters

    @property
    def spec(self) -> KernelSpec:
        """The description of this kernel in a plan."""
        return kernel_spec(self.signature)


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel on a device, and its functions there, in the order in which a call launches them."""

    device: Device
    code: LoadedCode
    functions: tuple[Function, ...]

    def launch(self, arguments: Sequence[Memory], workspace: Memory, threads: int = 1) -> None:
        """Call the kernel once; the caller keeps the memory alive until `device.wait` returns."""
        for function, launch in self.functions:
            self.device.launch(function, launch, arguments, workspace, threads)


def load_kernel(kernel: Kernel) -> LoadedKernel:
    """Load a kernel on the device that runs its target.

    Raises:  MachineError if the machine lacks instructions of the target.
    """
    check_device(kernel.target, "runtime", f"kernel {kernel.symbol}")
    device, symbols = device_of(kernel.target), kernel.spec.symbols
    code = device.load(kernel.object_code, symbols)
    addresses = map(code.address, symbols)
    functions = tuple(zip(addresses, kernel.signature.launches, strict=True))
    return LoadedKernel(device, code, functions)


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A workload and a trace, in the form in which a worker process gets them.

    tensors     the workload's tensors, inputs first: pickling in this order needs no deep stack
    outputs     the tensors that the caller gets
    constants   names of inputs that may be packed
    trace       text, as in a record, so that the kernel is the same as by the record
    """

    name: str
    tensors: tuple[Tensor, ...]
    outputs: tuple[Compute, ...]
    constants: frozenset[str]
    trace: str
    target: Target


def build_request(workload: Workload, trace: str, target: Target) -> BuildRequest:
    """The request to build a workload by a trace."""
    tensors = topological_order(*workload.outputs)
    return BuildRequest("kernel", tensors, workload.outputs, workload.constants, trace, target)


def build(request: BuildRequest) -> Kernel:
    """As `build_kernel`, for a request.

    The kernel is one of many candidates of a search, so the knob `dump` does not show it.
    Raises:  as `build_kernel`, and UsageError for a trace that does not parse.
    """
    with override(dump=""):
        return build_kernel(
            request, parse_schedule(request.trace), request.target, name=request.name
        )


def build_kernel(
    workload: Schedulable,
    schedule: Schedule,
    target: Machine,
    name: str = "kernel",
) -> Kernel:
    """Build a kernel: replay the schedule, lower, run the passes, emit and compile.

    Raises:  ScheduleError for an illegal trace; the errors of later stages.
    """
    start = time.perf_counter()
    with without_collection():
        kernel = build_program(loop_program(workload, schedule, target, name), target)
    return replace(kernel, seconds=time.perf_counter() - start)


def build_program(program: LoopProgram, target: Target) -> Kernel:
    """Build a program on which all passes have run: emit and compile it.

    Raises:  the errors of emitting and compiling.
    """
    start = time.perf_counter()
    backend = backend_of(target)
    source = emit_source(program, target, backend)
    code = backend.compile(source, target)
    return Kernel(code, source.signature, time.perf_counter() - start, target)


def emit_source(program: LoopProgram, target: Machine, backend: Backend[Machine]) -> Source:
    """The text that a back end writes for a program; the knob `dump` shows it and the assembly."""
    source = backend.emit(program, target)
    dump("source", "", source.__str__, backend.suffix)
    dump("asm", "", lambda: backend.listing(source, target), "s")
    return source
