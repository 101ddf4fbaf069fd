"""Which memory each step uses, where kernels run on a device that has a memory of its own.

Kernels use the device's copies of buffers, host steps the host's.  Before a step reads bytes that
only the other memory has, a copy brings them; after the last step, outputs are brought to the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from tensorwright.base import UnsupportedError
from tensorwright.runtime.plan.plan import (
    BranchStep,
    BufferRef,
    CollectStep,
    ConstantRef,
    CopyStep,
    DeviceRef,
    HostRef,
    InputRef,
    KernelStep,
    LoopStep,
    OutputRef,
    Plan,
    Step,
)
from tensorwright.runtime.plan.plan_verify import merged, spans_of_step, uses_of_step

Interval: TypeAlias = tuple[int, int]


def use_device_memory(plan: Plan) -> Plan:
    """The plan with kernels that use the device's memory, and the copies which that needs.

    plan   all of it in the host's memory, without teams
    """
    current = _CurrentBytes()
    for index, spec in enumerate(plan.inputs):
        current.write(f"in{index}", (0, spec.size_bytes), is_on_device=False)
    steps: list[Step] = []
    for step in plan.steps:
        if isinstance(step, BranchStep | LoopStep | CollectStep):
            raise UnsupportedError(
                stage="plan",
                where=f"step {step.label}",
                reason="branches and loops whose choice is made at run time need a processor",
                remedy="compile for a processor, or export the model with the choice fixed",
                operator="If and Loop",
            )
        is_on_device = isinstance(step, KernelStep)
        uses = tuple(uses_of_step(plan, step))
        spans = spans_of_step(plan, step)
        for (ref, _, is_written), (name, begin, end) in zip(uses, spans, strict=True):
            if not is_written and not isinstance(ref, ConstantRef):
                steps += _copies(current, ref, name, (begin, end), is_on_device=is_on_device)
        for (_, _, is_written), (name, begin, end) in zip(uses, spans, strict=True):
            if is_written:
                current.write(name, (begin, end), is_on_device=is_on_device)
        steps.append(_on_device(step) if isinstance(step, KernelStep) else step)
    for index, spec in enumerate(plan.outputs):
        whole = (0, spec.size_bytes)
        steps += _copies(current, OutputRef(index), f"out{index}", whole, is_on_device=False)
    return replace(plan, steps=tuple(steps))


class _CurrentBytes:
    """Which bytes of each buffer a memory has as the last step wrote them; mutable."""

    def __init__(self) -> None:
        self._intervals: dict[tuple[str, bool], list[Interval]] = {}

    def write(self, name: str, interval: Interval, *, is_on_device: bool) -> None:
        """One memory has them now, the other one no longer."""
        self.add(name, interval, is_on_device=is_on_device)
        other = (name, not is_on_device)
        self._intervals[other] = [
            part for each in self._intervals.get(other, ()) for part in _without(each, [interval])
        ]

    def add(self, name: str, interval: Interval, *, is_on_device: bool) -> None:
        """One memory has them now, too."""
        key = (name, is_on_device)
        self._intervals[key] = merged([*self._intervals.get(key, ()), interval])

    def missing(self, name: str, interval: Interval, *, is_on_device: bool) -> list[Interval]:
        """What of an interval a memory does not have."""
        return list(_without(interval, self._intervals.get((name, is_on_device), ())))


def _copies(
    current: _CurrentBytes, ref: BufferRef, name: str, interval: Interval, *, is_on_device: bool
) -> Iterator[CopyStep]:
    """What brings the bytes of a reference that a memory does not have."""
    assert not isinstance(ref, DeviceRef)
    for begin, end in current.missing(name, interval, is_on_device=is_on_device):
        host = _moved(ref, begin, end)
        pair: tuple[BufferRef, BufferRef] = (host, DeviceRef(host))
        source, destination = pair if is_on_device else pair[::-1]
        way = "to" if is_on_device else "from"
        yield CopyStep(source, destination, end - begin, f"copy {way} the device")
        current.add(name, (begin, end), is_on_device=is_on_device)


def _moved(ref: HostRef, begin: int, end: int) -> HostRef:
    """A reference to other bytes of the same buffer."""
    if isinstance(ref, InputRef | OutputRef | ConstantRef):
        return replace(ref, offset_bytes=begin)
    return replace(ref, offset_bytes=begin, size_bytes=end - begin)


def _on_device(step: KernelStep[BufferRef]) -> KernelStep[BufferRef]:
    copies = (ref if isinstance(ref, DeviceRef) else DeviceRef(ref) for ref in step.arguments)
    return replace(step, arguments=tuple(copies))


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
