"""Build kernels: turn a workload and a trace into object code.

`BACKENDS` names the back ends of each kind of target, the preferred one first.  A back end is
imported when it is first used, so compiling with one loads no other.

A schedule may have several traces, each for ranges of the named sizes.  The program of each trace
is made for its ranges only, and the programs are joined under conditions on the sizes.  If a range
is a single value, that size is a number in the program.  A trace that was tuned for this number may
be legal for no other; one that was tuned elsewhere may be illegal here, and is made to hold for all
sizes first, as where it was chosen.  Programs may read different packings of a constant; the joined
program has a parameter for each packing.

Source:  Zheng et al.: DietCode, MLSys 2022 (programs for ranges of a shape, chosen at run time).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tensorwright import base, expr, loop, runtime
from tensorwright.codegen import Backend, Signature, Source
from tensorwright.schedule import (
    OpenSchedule,
    PackConstant,
    Prefetch,
    PrefetchNext,
    Schedulable,
    Schedule,
    ScheduleState,
    SizedTrace,
    Trace,
    Workload,
    format_schedule,
    open_trace,
    parse_schedule,
    render,
    replay,
    state_of,
)

BACKENDS: base.ByKind[str] = {
    base.TargetKind.CPU: ("llvm", "c"),
    base.TargetKind.GPU: ("opencl", "cuda"),
}
"""Names of folders in `codegen/`.  The conformance tests check each that this machine can run."""

_Machine = TypeVar("_Machine", bound=base.Target)


def load_backend(name: str) -> Backend[Any]:
    """The back end of a folder in `codegen/`."""
    backend: Backend[Any] = importlib.import_module(f"tensorwright.codegen.{name}").BACKEND
    return backend


def backend_of(target: _Machine) -> Backend[_Machine]:
    """The back end that builds the kernels of a target: the first one that supports the target."""
    reasons: list[str] = []
    for name in base.of_kind(BACKENDS, target, "back ends"):
        backend = load_backend(name)
        reason = backend.supports(target)
        if not reason:
            return backend
        reasons.append(f"{name}: {reason}")
    cause = "; ".join(reasons) or f"there is none for the kind {target.kind} yet"
    raise base.MachineError(
        stage="codegen",
        where=f"target {target}",
        reason=f"no back end has code for it ({cause})",
        remedy="name another target; `tensorwright doctor` lists what this machine compiles for",
    )


def loop_program(
    workload: Schedulable, schedule: Schedule, target: base.Target, name: str = "kernel"
) -> loop.LoopProgram:
    """The program that a back end gets: scheduled, lowered, after all passes.

    If a workload with named sizes has a single trace, `open_trace` makes it hold for all sizes on a
    processor; on other targets it holds for all sizes as it is.
    Raises:  ScheduleError for an illegal trace, and for one that holds neither for its range nor
             for all sizes.
    """
    base.dump("schedule", "", lambda: _schedule_text(workload, schedule))
    if isinstance(schedule, OpenSchedule):
        return _joined_program(workload, schedule, target, name)
    return _single_program(workload, schedule, target, name)


def _schedule_text(workload: Schedulable, schedule: Schedule) -> str:
    """The primitives of a schedule, and the loops after them if all sizes are numbers."""
    text = format_schedule(schedule)
    if isinstance(schedule, OpenSchedule) or expr.sizes_of_tensors(workload.outputs):
        return text
    return f"{text}\n\n{render(replay(state_of(workload), schedule))}"


def _single_program(
    workload: Schedulable, trace: Trace, target: base.Target, name: str
) -> loop.LoopProgram:
    state = state_of(workload)
    if expr.sizes_of_tensors(workload.outputs) and isinstance(target, base.CpuTarget):
        state = _opened(state, trace, target)
    else:
        state = replay(state, trace)
    return loop.run_target_passes(loop.run_passes(loop.lower(state, name)), target)


def _opened(state: ScheduleState, trace: Trace, target: base.CpuTarget) -> ScheduleState:
    """The state after the trace of an instance, made to hold for all sizes.

    A constant is not packed if the shape of its packed form would depend on named sizes.  That is
    so if its reader stands in loops of other stages that have open extents.  A parameter has the
    caller's name of the constant, a step the name of what may be folded from it.
    """
    opened = open_trace(state, trace, target.vector_bytes).state
    packed = [
        parameter for parameter in loop.lower(opened).parameters if parameter.packing is not None
    ]
    is_open = {each.name for each in packed if expr.named_sizes_of(*each.buffer.shape)}
    if not is_open:
        return opened
    packing = (PackConstant, Prefetch, PrefetchNext)
    source = {each.tensor.name: each.source.name for each in opened.folded}
    closed = (
        step
        for step in trace
        if not (isinstance(step, packing) and source.get(step.tensor, step.tensor) in is_open)
    )
    return open_trace(state, tuple(closed), target.vector_bytes).state


@dataclass(frozen=True, slots=True)
class _Narrowed:
    """A workload whose named sizes are limited to ranges."""

    outputs: tuple[expr.Compute, ...]
    constants: frozenset[str]


def _joined_program(
    workload: Schedulable, schedule: OpenSchedule, target: base.Target, name: str
) -> loop.LoopProgram:
    """One program of all variants: the first variant whose ranges contain the sizes runs."""
    sizes = {size.name: size for size in expr.sizes_of_tensors(workload.outputs)}
    programs = [_program_in(workload, each, sizes, target, name) for each in schedule.variants]
    conditions = [_condition_of(each, sizes) for each in schedule.variants]
    parameters, bodies = _with_common_parameters(programs)
    first = loop.LoopProgram(name, parameters, bodies[0])
    namer = loop.Namer(first)
    parts: list[loop.Stmt] = []
    for number, body in enumerate(bodies):
        is_first = expr.all_of(conditions[number], *map(expr.negate, conditions[:number]))
        parts.append(loop.If(is_first, body if number == 0 else loop.freshen(body, namer)))
    return loop.LoopProgram(name, parameters, loop.block(*parts))


def _program_in(
    workload: Schedulable,
    variant: SizedTrace,
    sizes: Mapping[str, expr.NamedSize],
    target: base.Target,
    name: str,
) -> loop.LoopProgram:
    """The program of a variant, in terms of the named sizes of the whole workload."""
    narrow: dict[Any, expr.Index] = {}
    for each in variant.ranges:
        size = sizes[each.name]
        if each.least == each.most:
            narrow[size] = size.checked(each.least)
        else:
            least = max(each.least, size.bounds.least)
            whole = expr.named_size(size.name, least, _most_of(size, each.most), size.divisor)
            (narrow[size],) = expr.named_sizes_of(whole)
    if not narrow:
        return _single_program(workload, variant.trace, target, name)
    narrowed = _Narrowed(expr.bind_tensors(workload.outputs, narrow), workload.constants)
    try:
        program = _single_program(narrowed, variant.trace, target, name)
    except base.ScheduleError:
        if not isinstance(target, base.CpuTarget):
            raise
        opened = open_trace(state_of(workload), variant.trace, target.vector_bytes)
        program = _single_program(narrowed, opened.trace, target, name)
    wide: dict[Any, expr.Index] = {
        atom: size for size, atom in narrow.items() if isinstance(atom, expr.NamedSize)
    }
    return loop.with_symbols(program, wide)


def _most_of(size: expr.NamedSize, most: int | None) -> int | None:
    limits = [each for each in (size.bounds.most, most) if each is not None]
    return min(limits, default=None)


def _condition_of(variant: SizedTrace, sizes: Mapping[str, expr.NamedSize]) -> expr.Condition:
    """The condition that the sizes are in the ranges of a variant."""
    parts: list[expr.Condition] = []
    for each in variant.ranges:
        size = sizes[each.name]
        parts.append(expr.compare(expr.Relation.LE, expr.ceil_div(each.least, size.divisor), size))
        if each.most is not None:
            parts.append(expr.compare(expr.Relation.LE, size, each.most // size.divisor))
    return expr.all_of(*parts)


def _with_common_parameters(
    programs: Sequence[loop.LoopProgram],
) -> tuple[tuple[loop.Parameter, ...], tuple[loop.Stmt, ...]]:
    """The parameters of all programs, each once, and the bodies that read them.

    Two parameters are the same if their names and packings are.  A tensor of the caller has its
    shape in the last program, because that holds for all sizes.
    """
    shared: dict[object, loop.Parameter] = {_identity(p): p for p in programs[-1].parameters}
    taken = {p.buffer.name for p in shared.values()}
    bodies: list[loop.Stmt] = []
    for program in programs:
        renamed: dict[loop.Buffer, loop.Buffer] = {}
        for parameter in program.parameters:
            identity = _identity(parameter)
            if identity not in shared:
                shared[identity] = _renamed(parameter, taken)
                taken.add(shared[identity].buffer.name)
            name = shared[identity].buffer.name
            if name != parameter.buffer.name:
                renamed[parameter.buffer] = replace(parameter.buffer, name=name)
        bodies.append(
            loop.substitute_statement(program.body, {}, renamed) if renamed else program.body
        )
    return tuple(shared.values()), tuple(bodies)


def _identity(parameter: loop.Parameter) -> object:
    """What two parameters with the same content have in common.

    The names of a packing's axes are those of loops of its program, and do not count.
    """
    packing = parameter.packing
    if packing is None:
        return parameter.name, None
    axes = tuple((expr.Var(f"{n}"), extent) for n, (_, extent) in enumerate(packing.axes))
    old = (axis for axis, _ in packing.axes)
    numbers: dict[Any, expr.Index] = {axis: new for axis, (new, _) in zip(old, axes, strict=True)}
    indices = tuple(expr.substitute(index, numbers) for index in packing.indices)
    valid = expr.substitute_condition(packing.valid, numbers)
    return parameter.name, replace(packing, axes=axes, indices=indices, valid=valid)


def _renamed(parameter: loop.Parameter, taken: set[str]) -> loop.Parameter:
    """The parameter; its buffer gets another name if its own is taken."""
    base = parameter.buffer.name
    if base not in taken:
        return parameter
    numbers = range(2, len(taken) + 3)
    name = next(f"{base}_{n}" for n in numbers if f"{base}_{n}" not in taken)
    return replace(parameter, buffer=replace(parameter.buffer, name=name), source=parameter.name)


Machine = TypeVar("Machine", bound=base.Target)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A built kernel.

    seconds   how long the build took
    target    the machine for which it was built
    """

    object_code: bytes
    signature: Signature
    seconds: float
    target: base.Target

    @property
    def symbol(self) -> str:
        """The function that the object code defines."""
        return self.signature.symbol

    @property
    def parameters(self) -> tuple[loop.Parameter, ...]:
        """The arguments of a call, in order; `name` is the name in the workload."""
        return self.signature.parameters

    def with_sizes(self, values: Mapping[expr.NamedSize, expr.Index]) -> Kernel:
        """The kernel for calls that give it these numbers for its sizes."""

        def at(size: expr.Index) -> expr.Index:
            return expr.substitute(size, values)

        own = self.signature
        parameters = tuple(
            replace(each, buffer=replace(each.buffer, shape=tuple(map(at, each.buffer.shape))))
            for each in own.parameters
        )
        signature = replace(
            own,
            parameters=parameters,
            workspace_bytes=at(own.workspace_bytes),
            local_workspace_bytes=at(own.local_workspace_bytes),
            sizes=tuple(map(at, own.sizes)),
        )
        return replace(self, signature=signature)

    @property
    def spec(self) -> runtime.KernelSpec:
        """The description of this kernel in a plan."""
        return runtime.kernel_spec(self.signature)


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel on a device, and its functions there, in the order in which a call launches them."""

    device: runtime.Device
    code: runtime.LoadedCode
    functions: tuple[runtime.Function, ...]

    def launch(
        self, arguments: Sequence[runtime.Memory], workspace: runtime.Memory, threads: int = 1
    ) -> None:
        """Call the kernel once; the caller keeps the memory alive until `device.wait` returns."""
        for function, launch in self.functions:
            self.device.launch(function, launch, arguments, workspace, threads)


def load_kernel(kernel: Kernel) -> LoadedKernel:
    """Load a kernel on the device that runs its target."""
    runtime.check_device(kernel.target, "runtime", f"kernel {kernel.symbol}")
    device, symbols = runtime.device_of(kernel.target), kernel.spec.symbols
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
    tensors: tuple[expr.Tensor, ...]
    outputs: tuple[expr.Compute, ...]
    constants: frozenset[str]
    trace: str
    target: base.Target


def build_request(workload: Workload, trace: str, target: base.Target) -> BuildRequest:
    """The request to build a workload by a trace."""
    tensors = expr.topological_order(*workload.outputs)
    return BuildRequest("kernel", tensors, workload.outputs, workload.constants, trace, target)


def build(request: BuildRequest) -> Kernel:
    """As `build_kernel`, for a request.

    The kernel is one of many candidates of a search, so the knob `dump` does not show it.
    Raises:  as `build_kernel`, and UsageError for a trace that does not parse.
    """
    with base.override(dump=""):
        return build_kernel(
            request, parse_schedule(request.trace), request.target, name=request.name
        )


def build_kernel(
    workload: Schedulable,
    schedule: Schedule,
    target: Machine,
    name: str = "kernel",
) -> Kernel:
    """Build a kernel: replay the schedule, lower, run the passes, emit and compile."""
    start = time.perf_counter()
    with base.without_collection():
        kernel = build_program(loop_program(workload, schedule, target, name), target)
    return replace(kernel, seconds=time.perf_counter() - start)


def build_program(program: loop.LoopProgram, target: base.Target) -> Kernel:
    """Build a program on which all passes have run: emit and compile it."""
    start = time.perf_counter()
    backend = backend_of(target)
    source = emit_source(program, target, backend)
    code = backend.compile(source, target)
    return Kernel(code, source.signature, time.perf_counter() - start, target)


def emit_source(program: loop.LoopProgram, target: Machine, backend: Backend[Machine]) -> Source:
    """The text that a back end writes for a program; the knob `dump` shows it and the assembly."""
    source = backend.emit(program, target)
    base.dump("source", "", source.__str__, backend.suffix)
    base.dump("asm", "", lambda: backend.listing(source, target), "s")
    return source
