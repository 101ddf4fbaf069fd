"""Choose the memory of each step, if kernels run on a device with a separate memory.

Kernels use the device's copies of buffers, host steps the host's.  A copy comes before a step that
reads bytes which only the other memory has; after the last step, outputs are copied to the host.

Choose the number of threads of each step, and the steps that share a team, before a plan runs.

    plan = choose_teams(plan)                       by the work of each step
    plan = choose_teams(plan, seconds_of=predict)   by predicted seconds
    plan = choose_teams(plan, limits={3: 1})        kernel 3 on one thread, by measurement

A short step runs on as few threads as have enough work: handing a piece to another thread and
fetching its results takes a few tenths of a microsecond. All steps between two host steps are one
team, with all iterations of the loops among them, except long stretches on one thread, in which the
other threads would only wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from tensorwright import base
from tensorwright.machine import NOMINAL
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
    Team,
    blocks_of,
    bytes_of_type,
    native_steps,
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
            raise base.UnsupportedError(
                stage="plan",
                where=f"step {step.label}",
                reason="branches and loops whose choice is made at run time need a processor",
                remedy="compile for a processor, or export the model with the choice fixed",
                operator="If and Loop",
            )
        if isinstance(step, HostStep) and step.counted:
            raise base.UnsupportedError(
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


def _amounts(plan: Plan, step: Step) -> tuple[base.Amount, ...]:
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
    current: _CurrentBytes, ref: BufferRef, span: Span, amount: base.Amount, *, is_on_device: bool
) -> Iterator[CopyStep]:
    """The copies of the bytes of a reference that a memory lacks.

    span   at the capacities of named sizes      amount   the bytes of the reference
    Raises:  UnsupportedError if a part of a tensor with named sizes is missing.
    """
    assert not isinstance(ref, DeviceRef)
    name, first, last = span
    for begin, end in current.missing(name, (first, last), is_on_device=is_on_device):
        if isinstance(amount, int):
            copied: base.Amount = end - begin
            host = _moved(ref, begin, end)
        elif (begin, end) == (first, last):
            host, copied = ref, amount
        else:
            raise base.UnsupportedError(
                stage="plan",
                where=f"buffer {ref}",
                reason="a part of a tensor with named sizes is computed on the host, but the "
                "device reads all of it",
                remedy=base.Advice(
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


SecondsOf: TypeAlias = Callable[[KernelStep[BufferRef], base.Target], float]
"""Predicts the seconds of a step on one thread."""

Limits: TypeAlias = Mapping[int, int]
"""Number of a kernel -> the most threads on which it runs; 0 is all."""

_LONGEST_WAIT_S = 1e-3
_LEAST_VECTOR_BYTES = 16


def estimate_seconds(step: KernelStep[BufferRef], target: base.Target) -> float:
    """The estimated time of a step on one thread, if it reads from the second cache."""
    vector_bytes = max(base.cpu_target(target).vector_bytes, _LEAST_VECTOR_BYTES)
    computing_s = base.number_in(step.flops) / (NOMINAL.flops_per_s_and_byte * vector_bytes)
    return max(computing_s, base.number_in(step.bytes_moved) / NOMINAL.near_bytes_per_s)


def choose_teams(
    plan: Plan, seconds_of: SecondsOf = estimate_seconds, limits: Limits = MappingProxyType({})
) -> Plan:
    """The plan with a number of threads for each kernel, and with teams.

    limits   the most threads of some kernels, 0 for all; `seconds_of` decides for the others, with
             typical values of named sizes
    """
    numbers = plan.at({size.name: size.bounds.typical for size in plan.sizes})
    limited = tuple(_limited(step, plan, seconds_of, limits) for step in numbers.steps)
    teams = () if plan.threads == 1 else tuple(_teams(limited, plan, seconds_of))
    steps = tuple(map(_as_limited, plan.steps, limited))
    return replace(plan, steps=steps, teams=teams)


def without_teams(plan: Plan) -> Plan:
    """The plan in which each kernel leases as many threads as there are."""
    steps = tuple(
        replace(step, most_threads=0) if isinstance(step, KernelStep) else step
        for step in plan.steps
    )
    return replace(plan, steps=steps, teams=())


def _as_limited(step: Step, limited: Step) -> Step:
    """The step with the number of threads of the other."""
    if isinstance(step, KernelStep) and isinstance(limited, KernelStep):
        return replace(step, most_threads=limited.most_threads)
    return step


def _limited(step: Step, plan: Plan, seconds_of: SecondsOf, limits: Limits) -> Step:
    if not isinstance(step, KernelStep):
        return step
    if step.kernel in limits:
        return replace(step, most_threads=limits[step.kernel])
    count = max(1, math.floor(min(seconds_of(step, plan.target) / NOMINAL.share_s, 1e6)))
    return replace(step, most_threads=0 if count >= plan.threads else count)


def _teams(steps: Sequence[Step], plan: Plan, seconds_of: SecondsOf) -> Iterator[Team]:
    """The teams; each begins and ends with a step on several threads, or with a loop over such."""
    native = native_steps(steps)

    def in_block(begin: int, end: int) -> Iterator[Team]:
        shared: list[tuple[int, int]] = []
        waited_s = 0.0
        for position, blocks in blocks_of(steps, begin, end):
            last = blocks[-1][1] if blocks else position + 1
            kernels = [step for step in steps[position:last] if isinstance(step, KernelStep)]
            alone = [step for step in kernels if step.most_threads == 1]
            alone_s = sum(seconds_of(step, plan.target) for step in alone)
            joins = native[position] and len(alone) < len(kernels) and alone_s <= _LONGEST_WAIT_S
            waited_s += alone_s
            if (blocks and not joins) or not native[position] or waited_s > _LONGEST_WAIT_S:
                yield from _team(steps, shared)
                shared, waited_s = [], 0.0
            if joins:
                shared.append((position, last))
                waited_s = 0.0
            for first, stop in blocks if not native[position] else ():
                yield from in_block(first, stop)
        yield from _team(steps, shared)

    return in_block(0, len(steps))


def _team(steps: Sequence[Step], shared: Sequence[tuple[int, int]]) -> Iterator[Team]:
    """The team of some steps in order, unless one kernel is all of it."""
    if len(shared) > 1 or any(not isinstance(steps[first], KernelStep) for first, _ in shared):
        yield Team(shared[0][0], shared[-1][1])
