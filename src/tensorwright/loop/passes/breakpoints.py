"""Cut vector loops at the breakpoints of the indices that their lanes read: rows reflected,
clamped, joined.

An index such as min(i, 126 - i) or (i + 61) % 64 is piecewise linear in the loop's variable. Lanes
on both sides of a breakpoint are gathered one by one; on one side of it they are one run. Joined
rows have a breakpoint at each boundary: lanes beside it read two tensors, all others one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.expr import (
    Bounds,
    Compare,
    Index,
    Load,
    Max,
    Min,
    Mod,
    Poly,
    Range,
    Relation,
    Select,
    Value,
    ValueExpr,
    Var,
    children,
    compare,
    conjuncts,
    free_vars,
    gap_of,
    interval,
    loads_of,
)
from tensorwright.loop.ir import For, LoopProgram, Stmt, Store, block
from tensorwright.loop.passes.guards import affine_in
from tensorwright.loop.passes.simplify import simplify_loops, simplify_statement
from tensorwright.loop.traversal import (
    Namer,
    children_of,
    freshen,
    map_children,
    substitute_statement,
    total_size,
)
from tensorwright.schedule import ForKind

_MOST_WRAPS = 4  # of a remainder in one loop
_LEAST_PERIOD = 8  # of a remainder: where it begins anew more often, lanes share elements
_LEAST_RUN = 3  # lanes of a piece, on the average


def cut_at_breakpoints(program: LoopProgram, max_statements: int = 256) -> LoopProgram:
    """Cut vector loops, and serial ones around them, where an index turns a corner.

    Rewrite:  for v in 0..64 @vectorize: P[v] = X[min(v, 80 - v)]
                  ->  for v in 0..41 @vectorize: P[v] = X[v]
                      for v in 0..23 @vectorize: P[v + 41] = X[-v + 39]
    Requires: the index depends on the lane. A program grows to `max_statements` statements at most.
    """
    cutter = _Cutter(Namer(program), max_statements - total_size((program.body,)))
    body = cutter.cut(program.body, {})
    if body is program.body:
        return program
    return simplify_loops(LoopProgram(program.name, program.parameters, body))


class _Cutter:
    """The names and the statements that may still be added; mutable, one per run."""

    def __init__(self, namer: Namer, room: int) -> None:
        self._namer = namer
        self._room = room

    def cut(self, statement: Stmt, bounds: Bounds) -> Stmt:
        """Cut every loop inside, outer ones first."""
        inner = bounds
        if isinstance(statement, For) and isinstance(statement.extent, int):
            points = _cuts(statement, statement.extent, bounds)
            if points:
                return self._pieces(statement, points, bounds)
            inner = {**bounds, statement.var: Range.of_extent(statement.extent)}
        return map_children(lambda part: self.cut(part, inner), statement)

    def _pieces(self, loop: For, points: list[int], bounds: Bounds) -> Stmt:
        assert isinstance(loop.extent, int)
        growth = len(points) * total_size((loop,))
        if growth > self._room:
            return loop
        self._room -= growth
        done: list[Stmt] = []
        for start, stop in zip([0, *points], [*points, loop.extent], strict=True):
            body = substitute_statement(loop.body, {loop.var: loop.var + start})
            part = simplify_statement(For(loop.var, stop - start, loop.kind, body), bounds)
            done.append(self.cut(freshen(part, self._namer) if start else part, bounds))
        return block(*done)


def _cuts(loop: For, extent: int, bounds: Bounds) -> list[int]:
    """The positions at which a loop is cut, in order; none if the pieces would be too short."""
    if loop.kind not in (ForKind.VECTOR, ForKind.SERIAL):
        return []
    around = {**bounds, loop.var: Range.of_extent(extent)}
    lanes = frozenset((loop.var,)) if loop.kind is ForKind.VECTOR else frozenset()
    points: set[int] = set()
    for corner, inner in _corners(loop.body, around, lanes):
        points |= _changes(corner, loop.var, {v: r for v, r in inner.items() if v != loop.var})
    inside = sorted(point for point in points if 0 < point < extent)
    if loop.kind is ForKind.VECTOR and extent < _LEAST_RUN * (len(inside) + 1):
        return []
    return inside


def _corners(
    statement: Stmt, bounds: Bounds, lanes: frozenset[Var]
) -> Iterator[tuple[Compare, Bounds]]:
    """Conditions on which side of a corner an index is that depends on lanes, with all ranges."""
    match statement:
        case For(var, int() as extent, kind, body):
            own = lanes | {var} if kind is ForKind.VECTOR else lanes
            yield from _corners(body, {**bounds, var: Range.of_extent(extent)}, own)
        case Store(_, _, value):
            for boundary in _boundaries(value):
                if not lanes.isdisjoint(free_vars(boundary.left, boundary.right)):
                    yield boundary, bounds
            for load in loads_of(value):
                for index in load.indices:
                    if not lanes.isdisjoint(free_vars(index)):
                        for corner in _corners_of(index, bounds):
                            if not lanes.isdisjoint(free_vars(corner.left, corner.right)):
                                yield corner, bounds
        case _:
            for child in children_of(statement):
                yield from _corners(child, bounds, lanes)


def _boundaries(value: Value) -> Iterator[Compare]:
    """The positions where a value changes from reading one tensor to reading another."""
    match value:
        case Select(condition, Load() | Select(), Load() | Select()):
            if not isinstance(condition, ValueExpr):
                yield from (x for x in conjuncts(condition) if isinstance(x, Compare))
    for child in children(value):
        yield from _boundaries(child)


def _corners_of(index: Index, bounds: Bounds) -> Iterator[Compare]:
    parts: tuple[Index, ...] = ()
    match index:
        case Poly(terms):
            parts = tuple(atom for monomial, _ in terms for atom in monomial)
        case Min(a, b) | Max(a, b):
            parts = (a, b)
            corner = compare(Relation.LE, a, b)
            if isinstance(corner, Compare):
                yield corner
        case Mod(a, int() as divisor):
            parts = (a,)
            yield from _wraps(a, divisor, bounds)
    for part in parts:
        yield from _corners_of(part, bounds)


def _wraps(dividend: Index, divisor: int, bounds: Bounds) -> Iterator[Compare]:
    """The positions where a remainder begins anew, if they are few."""
    reach = interval(dividend, bounds) if divisor >= _LEAST_PERIOD else None
    if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
        return
    first, last = reach.low // divisor, reach.high // divisor
    if last - first <= _MOST_WRAPS:
        for quotient in range(first + 1, last + 1):
            corner = compare(Relation.LE, quotient * divisor, dividend)
            if isinstance(corner, Compare):
                yield corner


def _changes(corner: Compare, var: Var, inner: Bounds) -> set[int]:
    """The values of a variable from which on a condition may hold, and is sure (or no longer)."""
    gap = gap_of(corner)
    split = None if gap is None else affine_in(gap, var)
    if split is None:
        return set()
    scale, rest = split
    reach = interval(rest, inner)
    if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
        return set()
    if scale > 0:
        return {-(reach.low // scale), -(reach.high // scale)}
    return {reach.low // -scale + 1, reach.high // -scale + 1}
