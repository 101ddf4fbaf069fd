"""Count what a program does, without running it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from tensorwright.expr import (
    And,
    Apply,
    Condition,
    Element,
    Fn,
    FromIndex,
    Index,
    Load,
    Select,
    Value,
    ValueExpr,
    Var,
    all_of,
    atoms_of,
    children,
    decisions_of,
    free_vars,
    negate,
)
from tensorwright.expr import condition_sides as sides_of
from tensorwright.loop.grids import evaluate_condition, open_grid
from tensorwright.loop.ir import (
    Allocate,
    Block,
    Call,
    For,
    If,
    LoopProgram,
    Prefetch,
    Stmt,
    Store,
)
from tensorwright.loop.traversal import buffers_of_index

__all__ = ["Work", "count_work"]

_BLOCK_POINTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Work:
    """How often each kind of operation is executed, as index expressions over unbound decisions.

    loads, stores   per buffer, in elements, sorted by name
    exact           False where a guard was symbolic or too large to enumerate: it is then counted
                    as always true
    """

    multiplies: Index
    additions: Index  # and subtractions
    other: Index  # every other function of values
    loads: tuple[tuple[str, Index], ...]
    stores: tuple[tuple[str, Index], ...]
    exact: bool

    def loads_of(self, name: str) -> Index:
        """How many elements of a buffer are loaded."""
        return dict(self.loads).get(name, 0)

    def stores_of(self, name: str) -> Index:
        """How many elements of a buffer are stored."""
        return dict(self.stores).get(name, 0)


def count_work(program: LoopProgram, max_points: int = 1 << 26) -> Work:
    """Count the executed operations of a program.

    Without guards the counts are products of extents, also symbolic ones.  A guard is counted by
    trying all values of the loop variables in it, and in the guards that share variables with it,
    up to `max_points` of them.
    """
    counter = _Counter(max_points)
    counter.statement(program.body, (), True)  # noqa: FBT003  # a condition that always holds
    totals = counter.totals
    return Work(
        multiplies=totals.get("multiplies", 0),
        additions=totals.get("additions", 0),
        other=totals.get("other", 0),
        loads=tuple(sorted((name[5:], n) for name, n in totals.items() if name[:5] == "load ")),
        stores=tuple(sorted((name[6:], n) for name, n in totals.items() if name[:6] == "store ")),
        exact=counter.exact,
    )


class _Counter:
    """Running totals; mutable, one per count."""

    def __init__(self, max_points: int) -> None:
        self.totals: dict[str, Index] = {}
        self.exact = True
        self._max_points = max_points
        self._known: dict[tuple[Condition, tuple[tuple[Var, Index], ...]], int | None] = {}

    def statement(self, statement: Stmt, loops: tuple[For, ...], path: Condition) -> None:
        """Count a statement that runs in all iterations of `loops` in which `path` holds."""
        match statement:
            case Block(statements):
                for part in statements:
                    self.statement(part, loops, path)
            case For(_, extent, _, body):
                self._elements(loops, path, extent)
                self.statement(body, (*loops, statement), path)
            case If(condition, then):
                self._elements(loops, path, *sides_of(condition))
                self.statement(then, loops, all_of(path, condition))
            case Allocate(_, body) | Call(_, _, body):
                self.statement(body, loops, path)
            case Store(buffer, indices, value):
                self._add(f"store {buffer.name}", loops, path)
                self._elements(loops, path, *indices)
                self.value(value, loops, path)
            case Prefetch():
                pass

    def value(self, value: Value, loops: tuple[For, ...], path: Condition) -> None:
        """Count the operations of a value."""
        match value:
            case Load(source, indices):
                self._add(f"load {source.name}", loops, path)
                self._elements(loops, path, *indices)
            case FromIndex(index, _):
                self._elements(loops, path, index)
            case Apply(fn, _):
                self._add(_class_of(fn), loops, path)
            case Select(condition, then, otherwise) if not isinstance(condition, ValueExpr):
                sides = tuple(sides_of(condition))
                self._elements(loops, path, *sides)
                self.value(then, loops, all_of(path, condition))
                self.value(otherwise, loops, all_of(path, negate(condition)))
                return
            case _:
                pass
        for child in children(value):
            self.value(child, loops, path)

    def _elements(self, loops: tuple[For, ...], path: Condition, *indices: Index) -> None:
        for buffer in buffers_of_index(*indices):
            self._add(f"load {buffer.name}", loops, path)

    def _add(self, name: str, loops: tuple[For, ...], path: Condition) -> None:
        times = self._times(loops, path)
        self.totals[name] = self.totals.get(name, 0) + times

    def _times(self, loops: tuple[For, ...], path: Condition) -> Index:
        """In how many iterations of the loops a condition holds."""
        if path is False:
            return 0
        times: Index = 1
        free = {loop.var: loop.extent for loop in loops}
        for group in _groups(path, tuple(free)):
            condition = all_of(*group)
            names = free_vars(*sides_of(condition))
            box = tuple((var, extent) for var, extent in free.items() if var in names)
            points = self._points(condition, box)
            if points is None:
                self.exact = False
                continue
            times = times * points
            for var, _ in box:
                del free[var]
        for extent in free.values():
            if free_vars(extent):
                self.exact = False
            times = times * extent
        return times

    def _points(self, condition: Condition, box: tuple[tuple[Var, Index], ...]) -> int | None:
        """How many points of a box satisfy a condition, or None where that is not known."""
        key = (condition, box)
        if key not in self._known:
            self._known[key] = _enumerate(condition, box, self._max_points)
        return self._known[key]


def _class_of(fn: Fn) -> str:
    if fn is Fn.MUL:
        return "multiplies"
    return "additions" if fn in (Fn.ADD, Fn.SUB) else "other"


def _groups(path: Condition, order: tuple[Var, ...]) -> Iterator[list[Condition]]:
    """The parts of a conjunction, those together that share loop variables."""
    parts = path.parts if isinstance(path, And) else (path,)
    groups: list[tuple[set[Var], list[Condition]]] = []
    for part in parts:
        if part is True:
            continue
        names = set(free_vars(*sides_of(part))) & set(order)
        joined: list[Condition] = [part]
        rest: list[tuple[set[Var], list[Condition]]] = []
        for other_names, others in groups:
            if names & other_names:
                names |= other_names
                joined = others + joined
            else:
                rest.append((other_names, others))
        groups = [*rest, (names, joined)]
    for _, group in groups:
        yield group


def _enumerate(
    condition: Condition, box: tuple[tuple[Var, Index], ...], max_points: int
) -> int | None:
    sides = tuple(sides_of(condition))
    if decisions_of(*sides) or any(isinstance(a, Element) for s in sides for a in atoms_of(s)):
        return None
    sizes = [(var, extent) for var, extent in box if isinstance(extent, int)]
    if len(sizes) < len(box) or prod(extent for _, extent in sizes) > max_points:
        return None
    if free_vars(*sides) - {var for var, _ in sizes}:
        return None
    shape = tuple(max(0, extent) for _, extent in sizes)
    if not shape or not prod(shape):
        return int(bool(evaluate_condition(condition, {}))) if not shape else 0
    rows = max(1, _BLOCK_POINTS // max(1, prod(shape[1:])))
    total = 0
    for start in range(0, shape[0], rows):
        block = range(start, min(start + rows, shape[0]))
        holds = evaluate_condition(condition, open_grid(sizes, block))
        total += int(np.broadcast_to(holds, (len(block), *shape[1:])).sum())
    return total
