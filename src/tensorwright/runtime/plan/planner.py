"""From calls on named tensors to a plan: lifetimes, offsets in the arena, references.

    Network("net", target, 2, inputs, outputs, constants, kernels, types=(("t1", type), ...),
            calls=(KernelStep(0, ("x", "w", "t1"), "conv"), KernelStep(1, ("t1", "y"), "relu")),
            parts=(("t1", Inside("t3", 4096)),))

A tensor is an input, an output, a constant, or an intermediate one, which lives in the arena from
the call that first names it to the last. A tensor of `parts` is a part of another tensor, or all of
it in another shape (a reshape): its producer writes directly into the whole tensor, and its
consumers read it there. A tensor of which an output is another shape lies in the memory of that
output. An output that no step can write in place (it is an input, a constant, or a part of another
tensor) is copied at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from tensorwright import base
from tensorwright.runtime.buffers import ALIGNMENT
from tensorwright.runtime.plan.capacity import Lifetime, plan_memory
from tensorwright.runtime.plan.placement import use_device_memory
from tensorwright.runtime.plan.plan import (
    ArenaPiece,
    ArenaRef,
    ArgumentSpec,
    BranchStep,
    Call,
    CollectStep,
    ConstantRef,
    CopyStep,
    HostRef,
    HostStep,
    InputRef,
    KernelSpec,
    KernelStep,
    LoopStep,
    OutputRef,
    Plan,
    Step,
    TensorSpec,
    TypedRef,
    bytes_of_type,
)
from tensorwright.runtime.plan.plan_sizes import PlanSize
from tensorwright.runtime.plan.plan_verify import verify_plan

if TYPE_CHECKING:  # running a plan does not load the code generators
    from tensorwright.codegen import Signature


def kernel_spec(signature: Signature) -> KernelSpec:
    """The description of a kernel in a plan.

    Raises:  InternalError for a parameter with unbound extents.
    """
    arguments = tuple(
        ArgumentSpec(each.role, amount_of(prod(each.buffer.shape) * each.buffer.dtype.size_bytes))
        for each in signature.parameters
    )
    return KernelSpec(
        signature.symbol,
        arguments,
        amount_of(signature.workspace_bytes),
        amount_of(signature.local_workspace_bytes),
        tuple(map(_launch_of, signature.launches)),
        tuple(map(amount_of, signature.sizes)),
    )


def _launch_of(launch: base.Launch) -> base.Launch:
    """A launch with formulas of named sizes."""
    if not isinstance(launch, base.Grid):
        return launch
    x, y, z = map(amount_of, launch.grid)
    return replace(launch, grid=(x, y, z))


def amount_of(size: int | base.OpenSize) -> base.Amount:
    """A size of the compiler in a plan: a number, or the formula of an expression.

    Raises:  InternalError for an expression with loop variables or decisions.
    """
    if isinstance(size, int):
        return size
    if not size.is_size:
        raise base.InternalError(stage="plan", where=f"size {size}", reason="it is not bound")
    return base.Formula(str(size))


@dataclass(frozen=True, slots=True)
class Inside:
    """A tensor that is a part of another one: its memory begins at a byte of the parent's."""

    parent: str
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class CopyTensor:
    """Copy a whole tensor; it becomes no step if both are the same memory."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Network:
    """A program on named tensors.

    types     of intermediate tensors, in memory; inputs, outputs and constants have theirs
    parts     offsets are multiples of 64 bytes; a part of an input or of a constant is only read
    sizes     the named sizes in the formulas of the types, sorted by name
    rooms     upper bounds of bytes that grow with all sizes, for tensors whose own bytes do not
    """

    name: str
    target: base.Target
    threads: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    constants: tuple[TensorSpec, ...]
    kernels: tuple[KernelSpec, ...]
    calls: tuple[Call | CopyTensor, ...]
    types: tuple[tuple[str, base.TensorType], ...]
    parts: tuple[tuple[str, Inside], ...] = ()
    sizes: tuple[PlanSize, ...] = ()
    rooms: tuple[tuple[str, base.Amount], ...] = ()


def make_plan(network: Network) -> Plan:
    """Give every tensor its memory and turn the calls into steps.

    Offsets are chosen for the capacities of named sizes.

    Raises:  InternalError for a tensor without a type; the errors of `plan_memory` and
             `verify_plan`.
    """
    table = _Table(network)
    copied = [spec for spec in network.outputs if not table.is_written_in_place(spec.name)]
    used = [*map(list, map(_names, network.calls)), *([spec.name] for spec in copied)]
    for begin, end in _loops(network.calls):
        used[end - 1] += _names(network.calls[begin])  # the condition is read after each iteration
    lifetimes = table.lifetimes(used, _loops(network.calls))
    memory = plan_memory(lifetimes)
    table.arena.update(memory.offsets)
    may_grow = any(size.most is None or size.capacity < size.most for size in network.sizes)
    pieces = tuple(
        ArenaPiece(
            table.arena[one.name],
            table.room(one.name),
            one.first_step,
            one.last_step,
            one.name,
            tuple(map(amount_of, table.type(one.name).shape)),
        )
        for one in lifetimes
        if may_grow
    )
    steps = [_step(table, call) for call in network.calls]
    for spec in copied:
        destination = OutputRef(network.outputs.index(spec))
        source = table.ref(spec.name)
        size_bytes = table.size_bytes(spec.name)
        steps.append(CopyStep(source, destination, size_bytes, f"copy {spec.name}"))
    plan = Plan(
        network.name,
        network.target,
        network.threads,
        network.inputs,
        network.outputs,
        network.constants,
        network.kernels,
        tuple(steps),
        memory.peak_bytes,
        sizes=network.sizes,
        pieces=pieces,
    )
    if plan.target.kind is not base.TargetKind.CPU:
        plan = use_device_memory(plan)
    verify_plan(plan)
    return plan


class _Table:
    """The location of each tensor. A name is first an input, then a constant, then an output."""

    def __init__(self, network: Network) -> None:
        self.parts = dict(network.parts)
        self.arena: dict[str, int] = {}
        self._capacity = {size.name: size.capacity for size in network.sizes}
        self._types = dict(network.types)
        self._rooms = dict(network.rooms)
        self._borders: dict[str, HostRef] = {}
        for specs, kind in (
            (network.outputs, OutputRef),
            (network.constants, ConstantRef),
            (network.inputs, InputRef),
        ):
            for index, spec in enumerate(specs):
                self._types[spec.name] = spec.type
                self._borders[spec.name] = kind(index)
        for index, spec in enumerate(network.outputs):
            whole, offset = self.root(spec.name)
            is_all = offset == 0 and self.room(whole) == bytes_of_type(spec.roomy.type)
            if is_all and whole not in self._borders:
                self._borders[whole] = OutputRef(index)
        self._outputs = tuple(spec.name for spec in network.outputs)

    def is_written_in_place(self, output: str) -> bool:
        """Whether steps write an output directly; if not, it is copied at the end."""
        whole, offset = self.root(output)
        in_place = OutputRef(self._outputs.index(output))
        return offset == 0 and self._borders.get(whole) == in_place

    def type(self, name: str) -> base.TensorType:
        """The tensor's type.  Raises: InternalError if it has none."""
        if name not in self._types:
            raise _fault(name, "it has no type")
        return self._types[name]

    def size_bytes(self, name: str) -> base.Amount:
        """The bytes of a tensor."""
        return bytes_of_type(self.type(name))

    def capacity_bytes(self, name: str) -> int:
        """The bytes of a tensor when all sizes are at their capacities."""
        return base.amount_at(self.size_bytes(name), self._capacity)

    def room(self, name: str) -> base.Amount:
        """An upper bound of the bytes of a tensor, which grows with all sizes."""
        return self._rooms.get(name, self.size_bytes(name))

    def root(self, name: str) -> tuple[str, int]:
        """The outermost tensor of which this one is a part, and the offset in it."""
        offset = 0
        seen = {name}
        while name in self.parts:
            inside = self.parts[name]
            room_bytes = self.capacity_bytes(inside.parent) - self.capacity_bytes(name)
            if inside.parent in seen:
                raise _fault(name, "it lies inside itself")
            if inside.offset_bytes % ALIGNMENT:
                raise _fault(name, f"{inside.offset_bytes} is not a multiple of {ALIGNMENT} bytes")
            if not 0 <= inside.offset_bytes <= room_bytes:
                raise _fault(name, f"it does not fit into {inside.parent}")
            offset += inside.offset_bytes
            name = inside.parent
            seen.add(name)
        return name, offset

    def lifetimes(
        self, steps: Iterable[Sequence[str]], loops: Sequence[tuple[int, int]]
    ) -> tuple[Lifetime, ...]:
        """Lifetimes of arena tensors that are not parts; `steps` names the tensors of each step.

        loops   the steps of each, inner ones first.  Every iteration needs the tensors from before
                the loop, and must not overwrite rows that earlier iterations have collected
        """
        uses: dict[str, tuple[int, int]] = {}
        for step, names in enumerate(steps):
            for root in dict.fromkeys(self.root(name)[0] for name in names):
                first, _ = uses.get(root, (step, step))
                uses[root] = (first, step)
        for begin, end in loops:
            for root, (first, last) in uses.items():
                if first <= begin < last < end:
                    uses[root] = (first, end - 1)
                if begin < first < end <= last:
                    uses[root] = (begin, last)
        return tuple(
            Lifetime(name, base.amount_at(self.room(name), self._capacity), first, last)
            for name, (first, last) in uses.items()
            if name not in self._borders
        )

    def typed(self, name: str) -> TypedRef:
        """The reference to a tensor with its type."""
        return TypedRef(self.ref(name), self.type(name))

    def ref(self, name: str) -> HostRef:
        """The reference to a tensor, once the arena is planned."""
        root, offset = self.root(name)
        match self._borders.get(root):
            case InputRef(index):
                return InputRef(index, offset)
            case OutputRef(index):
                return OutputRef(index, offset)
            case ConstantRef(index):
                return ConstantRef(index, offset)
            case _:
                return ArenaRef(self.arena[root] + offset, self.size_bytes(name))


def _loops(calls: Sequence[Call | CopyTensor]) -> tuple[tuple[int, int], ...]:
    """The positions of loops and of the ends of their bodies, inner loops first."""
    loops = (
        (at, at + 1 + call.body) for at, call in enumerate(calls) if isinstance(call, LoopStep)
    )
    return tuple(sorted(loops, reverse=True))


def _fault(tensor: str, reason: str) -> base.InternalError:
    return base.InternalError(stage="runtime", where=f"tensor {tensor}", reason=reason)


def _names(call: Call | CopyTensor) -> tuple[str, ...]:
    match call:
        case CopyTensor(source, destination):
            return source, destination
        case BranchStep(condition):
            return (condition,)
        case LoopStep(count, condition, iteration):
            return count, condition, iteration
        case CollectStep(source, iteration, destination):
            return source, iteration, destination
        case KernelStep(_, arguments):
            return arguments
        case HostStep(_, _, inputs, outputs):
            return (*inputs, *outputs)


def _step(table: _Table, call: Call | CopyTensor) -> Step:
    match call:
        case CopyTensor(source, destination):
            size_bytes = table.size_bytes(destination)
            return CopyStep(table.ref(source), table.ref(destination), size_bytes)
        case BranchStep(condition, then, otherwise, label):
            return BranchStep(table.typed(condition), then, otherwise, label)
        case LoopStep(count, condition, iteration, body, label, counted):
            most, holds, number = map(table.typed, (count, condition, iteration))
            return LoopStep(most, holds, number, body, label, counted)
        case CollectStep(source, iteration, destination, label):
            row, number, rows = map(table.typed, (source, iteration, destination))
            return CollectStep(row, number, rows, label)
        case KernelStep(kernel, arguments, label, flops, bytes_moved):
            refs = tuple(table.ref(name) for name in arguments)
            return KernelStep(kernel, refs, label, flops, bytes_moved)
        case HostStep(operator, attributes, inputs, outputs, label, counted):
            typed = [tuple(map(table.typed, names)) for names in (inputs, outputs)]
            return HostStep(operator, attributes, typed[0], typed[1], label, counted)
