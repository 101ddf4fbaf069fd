"""Lay out the arena of a plan again, for a call that is larger than those before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from tensorwright.base import Amount, amount_at, check_fits, physical_memory_bytes
from tensorwright.runtime.plan.arena import Lifetime, MemoryPlan, plan_memory
from tensorwright.runtime.plan.plan import ArenaPiece, ArenaRef, Plan, Step
from tensorwright.runtime.plan.plan_sizes import PlanSize


def with_room(plan: Plan, values: Mapping[str, int]) -> Plan:
    """The plan with room for these values of its sizes; the same plan if it has room.

    A capacity that grows at least doubles, so that an arena grows rarely.
    Raises:  MachineError if the machine has less memory.
    """
    sizes = tuple(_grown(size, values.get(size.name, size.capacity)) for size in plan.sizes)
    if sizes == plan.sizes:
        return plan
    memory = _laid_out(plan, {size.name: size.capacity for size in sizes})
    if memory.peak_bytes > physical_memory_bytes():  # without what is in store for later calls
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
        Lifetime(str(number), amount_at(each.size_bytes, capacity), each.first_step, each.last_step)
        for number, each in enumerate(plan.pieces)
    ]
    return plan_memory(lifetimes)


def check_arena(plan: Plan, arena_bytes: int, values: Mapping[str, int]) -> None:
    """Refuse an arena that is larger than the memory of the machine.

    values   the numbers of the sizes for which it is laid out
    Raises:  MachineError that names the largest tensor and the sizes.
    """
    if arena_bytes <= physical_memory_bytes():
        return
    numbers = ", ".join(f"{name} = {value}" for name, value in values.items())
    at = f" at {numbers}" if numbers else ""
    sizes = {
        f"{each.name or number} {_numbers(each.shape, values)}{at}": amount_at(
            each.size_bytes, values
        )
        for number, each in enumerate(plan.pieces)
    }
    check_fits(sizes or {f"memory{at}": arena_bytes}, arena_bytes)


def _numbers(shape: tuple[Amount, ...], values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(amount_at(extent, values) for extent in shape)


def _grown(size: PlanSize, value: int) -> PlanSize:
    if value <= size.capacity:
        return size
    most = value if size.most is None else size.most
    return replace(size, capacity=max(value, min(2 * size.capacity, most)))


class _Moves:
    """The new positions of the pieces that are live at a step."""

    def __init__(self, plan: Plan, pieces: tuple[ArenaPiece, ...], position: int) -> None:
        capacity = plan.capacity
        self._live = [
            (old.offset_bytes, amount_at(old.size_bytes, capacity), new.offset_bytes)
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
