"""Turn a workload and its schedule into the loop program that a back end gets.

A schedule may have several traces, each for ranges of the named sizes.  The program of each trace
is made for its ranges only, and the programs are joined under conditions on the sizes.  If a range
is a single value, that size is a number in the program.  A trace that was tuned for this number may
be legal for no other; one that was tuned elsewhere may be illegal here, and is made to hold for all
sizes first, as where it was chosen.  Programs may read different packings of a constant; the joined
program has a parameter for each packing.

Source:  Zheng et al.: DietCode, MLSys 2022 (programs for ranges of a shape, chosen at run time).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensorwright.base import CpuTarget, ScheduleError, Target, dump
from tensorwright.expr import (
    Compute,
    Condition,
    Index,
    NamedSize,
    Relation,
    Var,
    all_of,
    bind_tensors,
    ceil_div,
    compare,
    named_size,
    named_sizes_of,
    negate,
    sizes_of_tensors,
    substitute,
    substitute_condition,
)
from tensorwright.loop import (
    Buffer,
    If,
    LoopProgram,
    Namer,
    Parameter,
    Stmt,
    block,
    freshen,
    lower,
    run_passes,
    run_target_passes,
    substitute_statement,
    with_symbols,
)
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
    format_schedule,
    open_trace,
    render,
    replay,
    state_of,
)


def loop_program(
    workload: Schedulable, schedule: Schedule, target: Target, name: str = "kernel"
) -> LoopProgram:
    """The program that a back end gets: scheduled, lowered, after all passes.

    If a workload with named sizes has a single trace, `open_trace` makes it hold for all sizes on a
    processor; on other targets it holds for all sizes as it is.
    Raises:  ScheduleError for an illegal trace, and for one that holds neither for its range nor
             for all sizes.
    """
    dump("schedule", "", lambda: _schedule_text(workload, schedule))
    if isinstance(schedule, OpenSchedule):
        return _joined_program(workload, schedule, target, name)
    return _single_program(workload, schedule, target, name)


def _schedule_text(workload: Schedulable, schedule: Schedule) -> str:
    """The primitives of a schedule, and the loops after them if all sizes are numbers."""
    text = format_schedule(schedule)
    if isinstance(schedule, OpenSchedule) or sizes_of_tensors(workload.outputs):
        return text
    return f"{text}\n\n{render(replay(state_of(workload), schedule))}"


def _single_program(workload: Schedulable, trace: Trace, target: Target, name: str) -> LoopProgram:
    """The program of one trace."""
    state = state_of(workload)
    if sizes_of_tensors(workload.outputs) and isinstance(target, CpuTarget):
        state = _opened(state, trace, target)
    else:
        state = replay(state, trace)
    return run_target_passes(run_passes(lower(state, name)), target)


def _opened(state: ScheduleState, trace: Trace, target: CpuTarget) -> ScheduleState:
    """The state after the trace of an instance, made to hold for all sizes.

    A constant is not packed if the shape of its packed form would depend on named sizes.  That is
    so if its reader stands in loops of other stages that have open extents.  A parameter has the
    caller's name of the constant, a step the name of what may be folded from it.
    """
    opened = open_trace(state, trace, target.vector_bytes).state
    packed = [parameter for parameter in lower(opened).parameters if parameter.packing is not None]
    is_open = {each.name for each in packed if named_sizes_of(*each.buffer.shape)}
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

    outputs: tuple[Compute, ...]
    constants: frozenset[str]


def _joined_program(
    workload: Schedulable, schedule: OpenSchedule, target: Target, name: str
) -> LoopProgram:
    """One program of all variants: the first variant whose ranges contain the sizes runs."""
    sizes = {size.name: size for size in sizes_of_tensors(workload.outputs)}
    programs = [_program_in(workload, each, sizes, target, name) for each in schedule.variants]
    conditions = [_condition_of(each, sizes) for each in schedule.variants]
    parameters, bodies = _with_common_parameters(programs)
    first = LoopProgram(name, parameters, bodies[0])
    namer = Namer(first)
    parts: list[Stmt] = []
    for number, body in enumerate(bodies):
        is_first = all_of(conditions[number], *map(negate, conditions[:number]))
        parts.append(If(is_first, body if number == 0 else freshen(body, namer)))
    return LoopProgram(name, parameters, block(*parts))


def _program_in(
    workload: Schedulable,
    variant: SizedTrace,
    sizes: Mapping[str, NamedSize],
    target: Target,
    name: str,
) -> LoopProgram:
    """The program of a variant, in terms of the named sizes of the whole workload."""
    narrow: dict[Any, Index] = {}
    for each in variant.ranges:
        size = sizes[each.name]
        if each.least == each.most:
            narrow[size] = size.checked(each.least)
        else:
            least = max(each.least, size.least * size.divisor)
            whole = named_size(size.name, least, _most_of(size, each.most), size.divisor)
            (narrow[size],) = named_sizes_of(whole)
    if not narrow:
        return _single_program(workload, variant.trace, target, name)
    narrowed = _Narrowed(bind_tensors(workload.outputs, narrow), workload.constants)
    try:
        program = _single_program(narrowed, variant.trace, target, name)
    except ScheduleError:
        if not isinstance(target, CpuTarget):
            raise
        opened = open_trace(state_of(workload), variant.trace, target.vector_bytes)
        program = _single_program(narrowed, opened.trace, target, name)
    wide: dict[Any, Index] = {
        atom: size for size, atom in narrow.items() if isinstance(atom, NamedSize)
    }
    return with_symbols(program, wide)


def _most_of(size: NamedSize, most: int | None) -> int | None:
    own = None if size.most is None else size.most * size.divisor
    limits = [each for each in (own, most) if each is not None]
    return min(limits, default=None)


def _condition_of(variant: SizedTrace, sizes: Mapping[str, NamedSize]) -> Condition:
    """The condition that the sizes are in the ranges of a variant."""
    parts: list[Condition] = []
    for each in variant.ranges:
        size = sizes[each.name]
        parts.append(compare(Relation.LE, ceil_div(each.least, size.divisor), size))
        if each.most is not None:
            parts.append(compare(Relation.LE, size, each.most // size.divisor))
    return all_of(*parts)


def _with_common_parameters(
    programs: Sequence[LoopProgram],
) -> tuple[tuple[Parameter, ...], tuple[Stmt, ...]]:
    """The parameters of all programs, each once, and the bodies that read them.

    Two parameters are the same if their names and packings are.  A tensor of the caller has its
    shape in the last program, because that holds for all sizes.
    """
    shared: dict[object, Parameter] = {_identity(p): p for p in programs[-1].parameters}
    taken = {p.buffer.name for p in shared.values()}
    bodies: list[Stmt] = []
    for program in programs:
        renamed: dict[Buffer, Buffer] = {}
        for parameter in program.parameters:
            identity = _identity(parameter)
            if identity not in shared:
                shared[identity] = _renamed(parameter, taken)
                taken.add(shared[identity].buffer.name)
            name = shared[identity].buffer.name
            if name != parameter.buffer.name:
                renamed[parameter.buffer] = replace(parameter.buffer, name=name)
        bodies.append(substitute_statement(program.body, {}, renamed) if renamed else program.body)
    return tuple(shared.values()), tuple(bodies)


def _identity(parameter: Parameter) -> object:
    """What two parameters with the same content have in common.

    The names of a packing's axes are those of loops of its program, and do not count.
    """
    packing = parameter.packing
    if packing is None:
        return parameter.name, None
    axes = tuple((Var(f"{n}"), extent) for n, (_, extent) in enumerate(packing.axes))
    old = (axis for axis, _ in packing.axes)
    numbers: dict[Any, Index] = {axis: new for axis, (new, _) in zip(old, axes, strict=True)}
    indices = tuple(substitute(index, numbers) for index in packing.indices)
    valid = substitute_condition(packing.valid, numbers)
    return parameter.name, replace(packing, axes=axes, indices=indices, valid=valid)


def _renamed(parameter: Parameter, taken: set[str]) -> Parameter:
    """The parameter; its buffer gets another name if its own is taken."""
    base = parameter.buffer.name
    if base not in taken:
        return parameter
    numbers = range(2, len(taken) + 3)
    name = next(f"{base}_{n}" for n in numbers if f"{base}_{n}" not in taken)
    return replace(parameter, buffer=replace(parameter.buffer, name=name), source=parameter.name)
