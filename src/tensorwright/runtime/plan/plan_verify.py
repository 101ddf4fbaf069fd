"""Check a plan before its addresses are used: every reference is inside its buffer.

Theorem:  if `verify_plan` does not raise, then
          - each kernel touches only the bytes that its `ArgumentSpec`s grant, aligned and inside
            live buffers, and the argument that a step writes overlaps no other one;
          - steps write only outputs and the arena, and read the arena only where an earlier step
            wrote, in the same memory, whichever branches were taken;
          - kernels use the memory of their target's kind, host steps the host's;
          - steps read the rows of a state in place when all new ones are written;
          - teams are in order, share no step, and have only native steps of one block, with all
            steps of the blocks inside.

Plans as plain data and back: see `base.to_data`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tensorwright import base
from tensorwright.runtime.buffers import ALIGNMENT
from tensorwright.runtime.plan.plan import (
    ArenaPiece,
    ArenaRef,
    ArgumentSpec,
    BranchStep,
    BufferRef,
    CollectStep,
    ConstantRef,
    CopyStep,
    DeviceRef,
    GrownState,
    HostStep,
    InputRef,
    KernelSpec,
    KernelStep,
    LoopStep,
    OutputRef,
    Plan,
    Step,
    Team,
    TensorSpec,
    TypedRef,
    WrittenState,
    blocks_of,
    inner_counts,
    native_steps,
)
from tensorwright.runtime.plan.plan_sizes import PlanSize

Use = tuple[BufferRef, int, bool]  # position, number of bytes, whether they are written
Span = tuple[str, int, int]  # buffer, first byte, byte after the last
Written = dict[str, list[tuple[int, int]]]
_ON_DEVICE = "device "
_WRITTEN = ("arena", "out", f"{_ON_DEVICE}arena", f"{_ON_DEVICE}out", f"{_ON_DEVICE}in")


def verify_plan(plan: Plan) -> None:
    """Check that a plan is sound; named sizes have their capacities.

    Raises:  InternalError with the first unsound step or team.
    """
    _check_teams(plan)
    plan = plan.at_capacity
    written = _check_steps(plan, 0, len(plan.steps), {})
    state = read_too_early(plan, plan.states)
    if state is not None:
        reason = "a step reads its rows before all new ones are written"
        raise base.InternalError(stage="runtime", where=f"state {state.input}", reason=reason)
    for index, spec in enumerate(plan.outputs):
        if spec.size_bytes and written.get(f"out{index}") != [(0, spec.size_bytes)]:
            raise base.InternalError(
                stage="runtime", where=f"output {spec.name}", reason="no step writes all of it"
            )


def read_too_early(
    plan: Plan, states: Sequence[GrownState | WrittenState]
) -> GrownState | WrittenState | None:
    """A state whose rows a step reads before all new ones are written; None if there is none.

    plan   one without named sizes

    Steps read a state of fixed length as the output; the input is there for the one that writes.
    """
    inputs, outputs = ([spec.name for spec in each] for each in (plan.inputs, plan.outputs))
    whole = {inputs.index(state.input): state for state in states}
    new = {outputs.index(state.output): state for state in states}
    is_read: set[str] = set()
    for step in plan.steps:
        reads: dict[str, GrownState | WrittenState] = {}
        writes: dict[str, GrownState | WrittenState] = {}
        for ref, _, is_written in uses_of_step(plan, step):
            if isinstance(ref, InputRef) and ref.index in whole:
                reads[whole[ref.index].input] = whole[ref.index]
            elif isinstance(ref, OutputRef) and is_written and ref.index in new:
                writes[new[ref.index].input] = new[ref.index]
        is_read |= reads.keys()
        fixed = {name for name, each in reads.items() if isinstance(each, WrittenState)}
        grown = {name for name, each in writes.items() if isinstance(each, GrownState)}
        wrong = [*(fixed - writes.keys()), *(grown & is_read)]
        if wrong:
            return (reads | writes)[wrong[0]]
    return None


def _check_steps(plan: Plan, begin: int, end: int, before: Written) -> Written:
    """Check the steps of a block, and return the bytes that are written after them."""
    written = dict(before)
    for position, inner in blocks_of(plan.steps, begin, end):
        step = plan.steps[position]
        try:
            if min(inner_counts(step), default=0) < 0 or any(last > end for _, last in inner):
                raise ValueError("it has steps that do not exist")
            _check_memory(plan, step)
            written_by_use = [use[2] for use in uses_of_step(plan, step)]
            spans = list(zip(spans_of_step(plan, step), written_by_use, strict=True))
            for span, is_written in spans:
                if not is_written:
                    _check_defined(span, written)
            _check_disjoint(spans)
        except (ValueError, IndexError) as error:
            raise base.InternalError(
                stage="runtime", where=f"step {position} ({step.label})", reason=str(error)
            ) from error
        for span, is_written in spans:
            if is_written:
                _note(written, span)
        after = [_check_steps(plan, first, last, written) for first, last in inner]
        if isinstance(step, BranchStep):
            written = _of_both(*after)
        for first, last in inner if isinstance(step, LoopStep) else ():
            for span in _collected(plan, first, last):
                _note(written, span)
    return written


def _note(written: Written, span: Span) -> None:
    name, begin, end = span
    if end > begin:
        written[name] = merged([*written.get(name, []), (begin, end)])


def _of_both(one: Written, other: Written) -> Written:
    """The bytes that are written in both of two cases."""
    return {
        name: [
            (max(begin, first), min(end, last))
            for begin, end in one[name]
            for first, last in other[name]
            if max(begin, first) < min(end, last)
        ]
        for name in one.keys() & other.keys()
    }


def _collected(plan: Plan, begin: int, end: int) -> Iterator[Span]:
    """The spans in which a loop collects rows; as many as it has iterations are written."""
    for position, _ in blocks_of(plan.steps, begin, end):
        step = plan.steps[position]
        if isinstance(step, CollectStep):
            yield spans_of_step(plan, step)[-1]


def _check_teams(plan: Plan) -> None:
    before = 0
    native = native_steps(plan.steps)
    for team in plan.teams:
        if not before <= team.begin < team.end <= len(plan.steps):
            reason = "it shares steps with another one, or is empty, or has steps that do not exist"
        elif not all(native[team.begin : team.end]):
            reason = "a step on the host is among its steps"
        elif not _is_whole(plan, team):
            reason = "its steps do not always run one after the other"
        else:
            before = team.end
            continue
        raise base.InternalError(
            stage="runtime", where=f"team {team.begin}..{team.end}", reason=reason
        )


def _is_whole(plan: Plan, team: Team) -> bool:
    """Whether a team begins and ends in the same block of steps."""
    for position in range(team.end):
        for block in next(blocks_of(plan.steps, position))[1]:
            if position >= team.begin:
                is_cut = block[1] > team.end
            else:
                is_cut = any(team.begin < border < team.end for border in block)
            if is_cut:
                return False
    return True


def _check_memory(plan: Plan, step: Step) -> None:
    """Kernels use the memory of their device, host steps that of the host."""
    if isinstance(step, CopyStep):
        return
    is_on_device = isinstance(step, KernelStep) and plan.target.kind is not base.TargetKind.CPU
    for ref, _, _ in uses_of_step(plan, step):
        if isinstance(ref, DeviceRef) is not is_on_device:
            raise ValueError(f"{ref} is in {'the host' if is_on_device else 'a device'}'s memory")


def uses_of_step(plan: Plan, step: Step) -> Iterator[Use]:
    """The reads and writes of a step, in the order of its arguments."""
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
                yield ref, base.number_in(argument.size_bytes), argument.role is base.Role.OUTPUT
        case CopyStep(source, destination, size):
            yield source, base.number_in(size), False
            yield destination, base.number_in(size), True
        case HostStep(_, _, inputs, outputs):
            for typed in inputs:
                yield typed.ref, typed.type.size_bytes, False
            for typed in outputs:
                yield typed.ref, typed.type.size_bytes, True
        case BranchStep(condition):
            yield _scalar(condition, base.DType.BOOL), 1, False
        case LoopStep(count, condition, iteration):
            yield _scalar(count, base.DType.I64), 8, False
            yield _scalar(condition, base.DType.BOOL), 1, False
            yield _scalar(iteration, base.DType.I64), 8, True
        case CollectStep(source, iteration, destination):
            if destination.type.extents[1:] != source.type.extents:
                raise ValueError(f"{source.type} is not a row of {destination.type}")
            yield source.ref, source.type.size_bytes, False
            yield _scalar(iteration, base.DType.I64), 8, False
            yield destination.ref, destination.type.size_bytes, True
        case _:
            raise ValueError(f"{step!r} is not a step")


def _scalar(typed: TypedRef, dtype: base.DType) -> BufferRef:
    """The position of a number.  Raises: ValueError for another type."""
    if typed.type.dtype is not dtype or any(extent != 1 for extent in typed.type.extents):
        raise ValueError(f"{typed.type} is not a single {dtype}")
    return typed.ref


def spans_of_step(plan: Plan, step: Step) -> tuple[Span, ...]:
    """The spans that a step reads and writes, in the order of its arguments."""
    uses = tuple(uses_of_step(plan, step))
    moves = isinstance(step, CopyStep) and any(isinstance(ref, DeviceRef) for ref, _, _ in uses)
    return tuple(_span(plan, use, 1 if moves else ALIGNMENT) for use in uses)


def _span(plan: Plan, use: Use, alignment: int = ALIGNMENT) -> Span:
    """The span of a use; a part that is copied between memories may begin at any byte."""
    ref, size_bytes, is_written = use
    if isinstance(ref, DeviceRef):
        is_upload = is_written and isinstance(ref.copy_of, InputRef)  # the device's is a copy
        copied = (ref.copy_of, size_bytes, is_written and not is_upload)
        name, begin, end = _span(plan, copied, alignment)
        return f"{_ON_DEVICE}{name}", begin, end
    match ref:
        case InputRef(index):
            name, limit = f"in{index}", _size(plan.inputs, index)
        case OutputRef(index):
            name, limit = f"out{index}", _size(plan.outputs, index)
        case ConstantRef(index):
            name, limit = f"const{index}", _size(plan.constants, index)
        case ArenaRef(offset_bytes, granted):
            name, limit = "arena", min(plan.arena_bytes, offset_bytes + base.number_in(granted))
    if ref.offset_bytes % alignment:
        raise ValueError(f"{ref} does not begin on a multiple of {alignment} bytes")
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


def _check_defined(span: Span, written: Written) -> None:
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


_KINDS = base.kinds_of(
    *(ArenaRef, ConstantRef, InputRef, OutputRef, DeviceRef, TypedRef),
    *(CopyStep, HostStep, KernelStep, BranchStep, LoopStep, CollectStep),
    *(ArgumentSpec, KernelSpec, TensorSpec, GrownState, WrittenState, Team, Plan),
    *(PlanSize, base.Formula, ArenaPiece),
    *(
        base.DType,
        base.Role,
        base.CpuTarget,
        base.GpuTarget,
        base.GpuApi,
        base.TensorType,
        base.Threads,
        base.Grid,
    ),
    Target=base.CpuTarget,  # its name in format version 1
)
_ON_THREADS = base.to_data(base.ON_THREADS)


def plan_to_data(plan: Plan) -> object:
    """The plan in the form that `json.dumps` takes, equal for equal plans.

    Launches on threads and empty lists of sizes are left out, so that earlier versions can read the
    plan.
    """
    data: Any = base.to_data(plan)
    for kernel in data["kernels"]:
        if kernel["launches"] == _ON_THREADS:
            del kernel["launches"]
    for part in (data, *data["kernels"]):
        if not part["sizes"]:
            del part["sizes"]
    for name in ("pieces", "states"):
        if not data[name]:
            del data[name]
    for spec in (*data["inputs"], *data["outputs"], *data["constants"]):
        if spec["room"] is None:
            del spec["room"]
    for step in data["steps"]:
        if step["_"] == HostStep.__name__ and not step["counted"]:
            del step["counted"]
    for size in data.get("sizes", ()):
        if size["bound"] is None:
            del size["bound"]
    return data


def plan_from_data(data: object) -> Plan:
    """The inverse of `plan_to_data`.

    Raises:  ValueError that names the wrong part.
    """
    plan = base.from_data(data, _KINDS)
    if not isinstance(plan, Plan):
        raise ValueError("not a plan")
    return plan
