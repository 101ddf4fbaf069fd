"""Choose the memory of each step, if kernels run on a device with a separate memory.

Kernels use the device's copies of buffers, host steps the host's.  A copy comes before a step that
reads bytes which only the other memory has; after the last step, outputs are copied to the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from tensorwright.base import Advice, Amount, UnsupportedError
from tensorwright.runtime.plan.plan import (
    BranchStep,
    BufferRef,
    CollectStep,
    ConstantRef,
    CopyStep,
    DeviceRef,
    HostRef,
    HostStep,
    InputRef,
    KernelStep,
    LoopStep,
    OutputRef,
    Plan,
    Step,
    bytes_of_type,
)
from tensorwright.runtime.plan.plan_verify import Span, merged, spans_of_step, uses_of_step

Interval: TypeAlias = tuple[int, int]


def use_device_memory(plan: Plan) -> Plan:
    """The plan whose kernels use the device's memory, with the necessary copies.

    The memory of a copy's source does the copy.
    plan   all of it in the host's memory, without teams
    """
    current = _CurrentBytes()
    numbers = plan.at_capacity
    for index, spec in enumerate(numbers.inputs):
        current.write(f"in{index}", (0, spec.size_bytes), is_on_device=False)
    steps: list[Step] = []
    ranges: list[tuple[int, int]] = []  # of each step: its first copy, and itself
    for step, numbered in zip(plan.steps, numbers.steps, strict=True):
        if isinstance(step, BranchStep | LoopStep | CollectStep):
            raise UnsupportedError(
                stage="plan",
                where=f"step {step.label}",
                reason="branches and loops whose choice is made at run time need a processor",
                remedy="compile for a processor, or export the model with the choice fixed",
                operator="If and Loop",
            )
        if isinstance(step, HostStep) and step.counted:
            raise UnsupportedError(
                stage="plan",
                where=f"step {step.label}",
                reason=f"values decide the size {step.counted}, which only a processor supports",
                remedy="compile for a processor, or give the size a number",
            )
        uses = tuple(uses_of_step(numbers, numbered))
        spans = spans_of_step(numbers, numbered)
        is_on_device = isinstance(step, KernelStep) or (
            isinstance(step, CopyStep) and current.is_only_on_device(*spans[0])
        )
        amounts = _amounts(plan, step)
        first = len(steps)
        for (ref, _, is_written), span, amount in zip(uses, spans, amounts, strict=True):
            if not is_written and not isinstance(ref, ConstantRef):
                steps += _copies(current, ref, span, amount, is_on_device=is_on_device)
        for (_, _, is_written), (name, begin, end) in zip(uses, spans, strict=True):
            if is_written:
                current.write(name, (begin, end), is_on_device=is_on_device)
        ranges.append((first, len(steps)))
        steps.append(_on_device(step) if is_on_device else step)
    for index, (spec, whole) in enumerate(zip(plan.outputs, numbers.outputs, strict=True)):
        span = f"out{index}", 0, whole.size_bytes
        amount = bytes_of_type(spec.type)
        steps += _copies(current, OutputRef(index), span, amount, is_on_device=False)
    pieces = tuple(
        replace(piece, first_step=ranges[piece.first_step][0], last_step=ranges[piece.last_step][1])
        for piece in plan.pieces
    )
    return replace(plan, steps=tuple(steps), pieces=pieces)


def _amounts(plan: Plan, step: Step) -> tuple[Amount, ...]:
    """The bytes of each use of a step, with formulas of named sizes."""
    match step:
        case KernelStep(kernel):
            return tuple(argument.size_bytes for argument in plan.kernels[kernel].arguments)
        case CopyStep(_, _, size_bytes):
            return size_bytes, size_bytes
        case HostStep(_, _, inputs, outputs):
            return tuple(bytes_of_type(typed.type) for typed in (*inputs, *outputs))
        case _:
            raise AssertionError("refused before")


class _CurrentBytes:
    """The bytes of each buffer that are current in each memory; mutable."""

    def __init__(self) -> None:
        self._intervals: dict[tuple[str, bool], list[Interval]] = {}

    def write(self, name: str, interval: Interval, *, is_on_device: bool) -> None:
        """Note that only one memory has these bytes now."""
        self.add(name, interval, is_on_device=is_on_device)
        other = (name, not is_on_device)
        self._intervals[other] = [
            part for each in self._intervals.get(other, ()) for part in _without(each, [interval])
        ]

    def add(self, name: str, interval: Interval, *, is_on_device: bool) -> None:
        """Note that one memory has these bytes now, too."""
        key = (name, is_on_device)
        self._intervals[key] = merged([*self._intervals.get(key, ()), interval])

    def is_only_on_device(self, name: str, begin: int, end: int) -> bool:
        """Whether the device has these bytes, and the host lacks a part of them."""
        interval = begin, end
        return bool(self.missing(name, interval, is_on_device=False)) and not self.missing(
            name, interval, is_on_device=True
        )

    def missing(self, name: str, interval: Interval, *, is_on_device: bool) -> list[Interval]:
        """The parts of an interval that a memory lacks."""
        return list(_without(interval, self._intervals.get((name, is_on_device), ())))


def _copies(
    current: _CurrentBytes, ref: BufferRef, span: Span, amount: Amount, *, is_on_device: bool
) -> Iterator[CopyStep]:
    """The copies of the bytes of a reference that a memory lacks.

    span   at the capacities of named sizes      amount   the bytes of the reference
    Raises:  UnsupportedError if a part of a tensor with named sizes is missing.
    """
    assert not isinstance(ref, DeviceRef)
    name, first, last = span
    for begin, end in current.missing(name, (first, last), is_on_device=is_on_device):
        if isinstance(amount, int):
            copied: Amount = end - begin
            host = _moved(ref, begin, end)
        elif (begin, end) == (first, last):
            host, copied = ref, amount
        else:
            raise UnsupportedError(
                stage="plan",
                where=f"buffer {ref}",
                reason="a part of a tensor with named sizes is computed on the host, but the "
                "device reads all of it",
                remedy=Advice(
                    "give numbers for its sizes where it is compiled: sizes=...",
                    "give numbers for its sizes: --sizes",
                ),
                operator="named sizes",
            )
        pair: tuple[BufferRef, BufferRef] = (host, DeviceRef(host))
        source, destination = pair if is_on_device else pair[::-1]
        way = "to" if is_on_device else "from"
        yield CopyStep(source, destination, copied, f"copy {way} the device")
        current.add(name, (begin, end), is_on_device=is_on_device)


def _moved(ref: HostRef, begin: int, end: int) -> HostRef:
    """A reference to other bytes of the same buffer."""
    if isinstance(ref, InputRef | OutputRef | ConstantRef):
        return replace(ref, offset_bytes=begin)
    return replace(ref, offset_bytes=begin, size_bytes=end - begin)


def _on_device(step: Step) -> Step:
    def copy_of(ref: BufferRef) -> BufferRef:
        return ref if isinstance(ref, DeviceRef) else DeviceRef(ref)

    if isinstance(step, CopyStep):
        return replace(step, source=copy_of(step.source), destination=copy_of(step.destination))
    assert isinstance(step, KernelStep), "others run on the host"
    return replace(step, arguments=tuple(map(copy_of, step.arguments)))


def _without(interval: Interval, others: Sequence[Interval]) -> Iterator[Interval]:
    """The parts of an interval outside of others, which are in order and disjoint."""
    begin, end = interval
    for first, last in others:
        if first >= end or last <= begin:
            continue
        if begin < first:
            yield begin, first
        begin = last
    if begin < end:
        yield begin, end
