"""Check a plan before its addresses are used: every reference is inside its buffer.

Theorem:  if `verify_plan` does not raise, each kernel touches only the bytes that its
          `ArgumentSpec`s grant, inside live buffers, aligned; what a step writes overlaps none of
          its other arguments; only outputs and the arena are written, and the arena is read only
          where an earlier step wrote, in the same memory; kernels use the memory of their
          target's kind, host steps the host's; teams are in order, share no step,
          and have no step on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorwright.base import InternalError, Role, TargetKind, number_in
from tensorwright.runtime.buffers import ALIGNMENT
from tensorwright.runtime.plan.plan import (
    ArenaRef,
    BufferRef,
    ConstantRef,
    CopyStep,
    DeviceRef,
    HostStep,
    InputRef,
    KernelStep,
    OutputRef,
    Plan,
    Step,
    TensorSpec,
)

Use = tuple[BufferRef, int, bool]  # where, how many bytes, whether they are written
Span = tuple[str, int, int]  # buffer, first byte, byte after the last
_ON_DEVICE = "device "
_WRITTEN = ("arena", "out", f"{_ON_DEVICE}arena", f"{_ON_DEVICE}out", f"{_ON_DEVICE}in")


def verify_plan(plan: Plan) -> None:
    """Do nothing if the plan is sound; one of named sizes at their capacities.

    Raises:  InternalError with the first unsound step or team.
    """
    _check_teams(plan)
    plan = plan.at_capacity
    written: dict[str, list[tuple[int, int]]] = {}
    for position, step in enumerate(plan.steps):
        try:
            _check_memory(plan, step)
            spans = [(_span(plan, use), use[2]) for use in uses_of_step(plan, step)]
            for span, is_written in spans:
                if not is_written:
                    _check_defined(span, written)
            _check_disjoint(spans)
        except (ValueError, IndexError) as error:
            raise InternalError(
                stage="runtime", where=f"step {position} ({step.label})", reason=str(error)
            ) from error
        for (name, begin, end), is_written in spans:
            if is_written and end > begin:
                written[name] = merged([*written.get(name, []), (begin, end)])
    for index, spec in enumerate(plan.outputs):
        if spec.size_bytes and written.get(f"out{index}") != [(0, spec.size_bytes)]:
            raise InternalError(
                stage="runtime", where=f"output {spec.name}", reason="no step writes all of it"
            )


def _check_teams(plan: Plan) -> None:
    before = 0
    for team in plan.teams:
        steps = plan.steps[team.begin : team.end]
        if not before <= team.begin < team.end <= len(plan.steps):
            reason = "it shares steps with another one, or is empty, or has steps that do not exist"
        elif any(isinstance(step, HostStep) for step in steps):
            reason = "a step on the host is among its steps"
        else:
            before = team.end
            continue
        raise InternalError(stage="runtime", where=f"team {team.begin}..{team.end}", reason=reason)


def _check_memory(plan: Plan, step: Step) -> None:
    """Kernels use the memory of their device, host steps that of the host."""
    if isinstance(step, CopyStep):
        return
    is_on_device = isinstance(step, KernelStep) and plan.target.kind is not TargetKind.CPU
    for ref, _, _ in uses_of_step(plan, step):
        if isinstance(ref, DeviceRef) is not is_on_device:
            raise ValueError(f"{ref} is in {'the host' if is_on_device else 'a device'}'s memory")


def uses_of_step(plan: Plan, step: Step) -> Iterator[Use]:
    """What a step reads and writes, in the order of its arguments."""
    match step:
        case KernelStep(kernel, arguments):
            spec = plan.kernels[_index(kernel, plan.kernels)]
            if step.most_threads < 0:
                raise ValueError(f"it may run on {step.most_threads} threads")
            if len(arguments) != len(spec.arguments):
                raise ValueError(
                    f"{spec.symbol} takes {len(spec.arguments)} arguments, not {len(arguments)}"
                )
            for ref, argument in zip(arguments, spec.arguments, strict=True):
                yield ref, number_in(argument.size_bytes), argument.role is Role.OUTPUT
        case CopyStep(source, destination, size):
            yield source, number_in(size), False
            yield destination, number_in(size), True
        case HostStep(_, _, inputs, outputs):
            for typed in inputs:
                yield typed.ref, typed.type.size_bytes, False
            for typed in outputs:
                yield typed.ref, typed.type.size_bytes, True


def spans_of_step(plan: Plan, step: Step) -> tuple[Span, ...]:
    """The spans that a step reads and writes, in the order of its arguments."""
    return tuple(_span(plan, use) for use in uses_of_step(plan, step))


def _span(plan: Plan, use: Use) -> Span:
    ref, size_bytes, is_written = use
    if isinstance(ref, DeviceRef):
        is_upload = is_written and isinstance(ref.copy_of, InputRef)  # the device's is a copy
        name, begin, end = _span(plan, (ref.copy_of, size_bytes, is_written and not is_upload))
        return f"{_ON_DEVICE}{name}", begin, end
    match ref:
        case InputRef(index):
            name, limit = f"in{index}", _size(plan.inputs, index)
        case OutputRef(index):
            name, limit = f"out{index}", _size(plan.outputs, index)
        case ConstantRef(index):
            name, limit = f"const{index}", _size(plan.constants, index)
        case ArenaRef(offset_bytes, granted):
            name, limit = "arena", min(plan.arena_bytes, offset_bytes + number_in(granted))
    if ref.offset_bytes % ALIGNMENT:
        raise ValueError(f"{ref} does not begin on a multiple of {ALIGNMENT} bytes")
    if size_bytes < 0 or not 0 <= ref.offset_bytes <= limit - size_bytes:
        raise ValueError(f"{size_bytes} bytes at {ref} exceed the buffer")
    if is_written and isinstance(ref, InputRef | ConstantRef):
        raise ValueError(f"{ref} is written")
    return name, ref.offset_bytes, ref.offset_bytes + size_bytes


def _index(index: int, table: Sequence[object]) -> int:
    if not 0 <= index < len(table):
        raise ValueError(f"there is no number {index} among {len(table)}")
    return index


def _size(specs: tuple[TensorSpec, ...], index: int) -> int:
    return specs[_index(index, specs)].size_bytes


def _check_defined(span: Span, written: dict[str, list[tuple[int, int]]]) -> None:
    name, begin, end = span
    if begin == end or not name.startswith(_WRITTEN):
        return
    if not any(first <= begin and end <= last for first, last in written.get(name, ())):
        raise ValueError(f"reads {name}[{begin}:{end}], which no earlier step wrote")


def _check_disjoint(spans: list[tuple[Span, bool]]) -> None:
    for i, ((name, begin, end), is_written) in enumerate(spans):
        for (other, first, last), is_other_written in spans[:i]:
            if (
                (is_written or is_other_written)
                and name == other
                and max(begin, first) < min(end, last)
            ):
                raise ValueError(f"two arguments overlap in {name}[{begin}:{end}]")


def merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as disjoint spans that do not touch."""
    result: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return result
