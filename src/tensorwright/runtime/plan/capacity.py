"""Lay out the arena of a plan again, for a call that is larger than those before.

The memory planner: give every intermediate tensor an offset in one arena.

Two tensors may share bytes if no step needs both. Finding the smallest arena is NP-hard (it is
dynamic storage allocation); largest first, each into the tightest gap that fits, reaches the lower
bound on chains and residual networks and comes within a tenth of it on random lifetimes. Source:
Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020, "greedy by
size". If the result is above the bound, tensors in order of their first step are also tried.

Every tensor begins on a multiple of 64 bytes, a cache line. The planner ignores positions modulo
4096: for an addition of tensors of 16 KiB to 1 MiB, the position of the result relative to the
operands made no measurable difference.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from tensorwright import base
from tensorwright.runtime.buffers import ALIGNMENT
from tensorwright.runtime.plan.plan import ArenaPiece, ArenaRef, Plan, Step
from tensorwright.runtime.plan.plan_sizes import PlanSize


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A tensor that holds data from its first to its last step, both included.

    A step that reads one tensor and writes another needs both, so they never share memory.
    """

    name: str
    size_bytes: int
    first_step: int
    last_step: int

    @property
    def room_bytes(self) -> int:
        """Its bytes in the arena: whole cache lines."""
        return -(-self.size_bytes // ALIGNMENT) * ALIGNMENT

    def meets(self, other: Lifetime) -> bool:
        """Whether a step needs both tensors."""
        return self.first_step <= other.last_step and other.first_step <= self.last_step


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The offset of each tensor, sorted by name.

    peak_bytes   size of the arena
    live_bytes   the most bytes that one step needs: no arena can be smaller
    """

    offsets: tuple[tuple[str, int], ...]
    peak_bytes: int
    live_bytes: int


_Assigned = tuple[int, Lifetime]  # offset, tensor


def plan_memory(tensors: Sequence[Lifetime]) -> MemoryPlan:
    """Give all tensors offsets; deterministic.

    Raises:  InternalError for a repeated name, and a negative size or lifetime.
    """
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise _fault("tensors", "two of them have the same name")
    for tensor in tensors:
        if tensor.size_bytes < 0 or tensor.last_step < tensor.first_step:
            raise _fault(f"tensor {tensor.name}", "its size or its lifetime is negative")
    live_bytes = _live(tensors)
    best = _assign_offsets(tensors, lambda one: (-one.room_bytes, one.first_step, one.name))
    if _peak(best) > live_bytes:
        by_time = _assign_offsets(tensors, lambda one: (one.first_step, -one.room_bytes, one.name))
        best = min(best, by_time, key=_peak)
    offsets = sorted((tensor.name, offset) for offset, tensor in best)
    return MemoryPlan(tuple(offsets), _peak(best), live_bytes)


def _assign_offsets(
    tensors: Sequence[Lifetime], order: Callable[[Lifetime], tuple[object, ...]]
) -> list[_Assigned]:
    """Give one tensor after another the tightest gap between tensors that live at the same time."""
    assigned: list[_Assigned] = []  # sorted by offset
    for tensor in sorted(tensors, key=order):
        offset = _best_offset(tensor, assigned) if tensor.size_bytes else 0
        bisect.insort(assigned, (offset, tensor), key=lambda entry: entry[0])
    return assigned


def _best_offset(tensor: Lifetime, assigned: list[_Assigned]) -> int:
    best_offset, best_gap, end = -1, -1, 0
    for offset, other in assigned:
        if not tensor.meets(other):
            continue
        gap = offset - end
        if gap >= tensor.room_bytes and (best_gap < 0 or gap < best_gap):
            best_offset, best_gap = end, gap
        end = max(end, offset + other.room_bytes)
    return end if best_gap < 0 else best_offset


def _peak(assigned: list[_Assigned]) -> int:
    return max((offset + tensor.room_bytes for offset, tensor in assigned), default=0)


def _live(tensors: Sequence[Lifetime]) -> int:
    changes: Counter[int] = Counter()
    for tensor in tensors:
        changes[tensor.first_step] += tensor.room_bytes
        changes[tensor.last_step + 1] -= tensor.room_bytes
    return max(itertools.accumulate(changes[step] for step in sorted(changes)), default=0)


def _fault(where: str, reason: str) -> base.InternalError:
    return base.InternalError(stage="memory", where=where, reason=reason)


def with_room(plan: Plan, values: Mapping[str, int]) -> Plan:
    """The plan with room for these values of its sizes; the same plan if it has room.

    A capacity that grows at least doubles, so that an arena grows rarely.
    Raises:  MachineError if the machine has less memory.
    """
    sizes = tuple(_grown(size, values.get(size.name, size.capacity)) for size in plan.sizes)
    if sizes == plan.sizes:
        return plan
    memory = _laid_out(plan, {size.name: size.capacity for size in sizes})
    if memory.peak_bytes > base.physical_memory_bytes():  # without what is in store for later calls
        sizes = tuple(
            replace(size, capacity=max(size.capacity, values.get(size.name, 0)))
            for size in plan.sizes
        )
        memory = _laid_out(plan, {size.name: size.capacity for size in sizes})
        check_arena(plan, memory.peak_bytes, {size.name: size.capacity for size in sizes})
    offsets = dict(memory.offsets)
    pieces = tuple(
        replace(each, offset_bytes=offsets[str(number)]) for number, each in enumerate(plan.pieces)
    )
    steps = tuple(
        _moved(step, _Moves(plan, pieces, position)) for position, step in enumerate(plan.steps)
    )
    return replace(plan, steps=steps, arena_bytes=memory.peak_bytes, sizes=sizes, pieces=pieces)


def _laid_out(plan: Plan, capacity: Mapping[str, int]) -> MemoryPlan:
    lifetimes = [
        Lifetime(
            str(number), base.amount_at(each.size_bytes, capacity), each.first_step, each.last_step
        )
        for number, each in enumerate(plan.pieces)
    ]
    return plan_memory(lifetimes)


def check_arena(plan: Plan, arena_bytes: int, values: Mapping[str, int]) -> None:
    """Refuse an arena that is larger than the memory of the machine.

    values   the numbers of the sizes for which it is laid out
    Raises:  MachineError that names the largest tensor and the sizes.
    """
    if arena_bytes <= base.physical_memory_bytes():
        return
    numbers = ", ".join(f"{name} = {value}" for name, value in values.items())
    at = f" at {numbers}" if numbers else ""
    sizes = {
        f"{each.name or number} {_numbers(each.shape, values)}{at}": base.amount_at(
            each.size_bytes, values
        )
        for number, each in enumerate(plan.pieces)
    }
    base.check_fits(sizes or {f"memory{at}": arena_bytes}, arena_bytes)


def _numbers(shape: tuple[base.Amount, ...], values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(base.amount_at(extent, values) for extent in shape)


def _grown(size: PlanSize, value: int) -> PlanSize:
    if value <= size.capacity:
        return size
    doubled = 2 * size.capacity
    usual = doubled if size.most is None else min(doubled, size.most)
    return replace(size, capacity=max(value, usual))


class _Moves:
    """The new positions of the pieces that are live at a step."""

    def __init__(self, plan: Plan, pieces: tuple[ArenaPiece, ...], position: int) -> None:
        capacity = plan.capacity
        self._live = [
            (old.offset_bytes, base.amount_at(old.size_bytes, capacity), new.offset_bytes)
            for old, new in zip(plan.pieces, pieces, strict=True)
            if old.first_step <= position <= old.last_step
        ]

    def of(self, ref: ArenaRef) -> ArenaRef:
        """The reference in the new arena."""
        for old, size_bytes, new in self._live:
            if old <= ref.offset_bytes < old + max(1, size_bytes):
                return replace(ref, offset_bytes=ref.offset_bytes - old + new)
        raise AssertionError(f"{ref} is in no piece of the arena")


def _moved(step: Step, moves: _Moves) -> Step:
    changed: Any = _with_moves(step, moves)
    moved: Step = changed  # the same class, with other references
    return moved


def _with_moves(value: object, moves: _Moves) -> object:
    if isinstance(value, ArenaRef):
        return moves.of(value)
    if isinstance(value, tuple):
        return tuple([_with_moves(part, moves) for part in value])
    if not is_dataclass(value) or isinstance(value, type | Enum):
        return value
    parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return type(value)(**{name: _with_moves(part, moves) for name, part in parts.items()})
