"""Cut loops where their guards change, so that the largest part runs without them.

Cut vector loops at the breakpoints of the indices that their lanes read: rows reflected,
clamped, joined.

An index such as min(i, 126 - i) or (i + 61) % 64 is piecewise linear in the loop's variable. Lanes
on both sides of a breakpoint are gathered one by one; on one side of it they are one run. Joined
rows have a breakpoint at each boundary: lanes beside it read two tensors, all others one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorwright import expr
from tensorwright.loop.ir import For, If, LoopProgram, Stmt, Store, block
from tensorwright.loop.passes.simplify import (
    affine_in,
    guards_of,
    simplify_loops,
    simplify_statement,
)
from tensorwright.loop.traversal import (
    Namer,
    children_of,
    freshen,
    is_empty,
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

    def cut(self, statement: Stmt, bounds: expr.Bounds) -> Stmt:
        """Cut every loop inside, outer ones first."""
        inner = bounds
        if isinstance(statement, For) and isinstance(statement.extent, int):
            points = _cuts(statement, statement.extent, bounds)
            if points:
                return self._pieces(statement, points, bounds)
            inner = {**bounds, statement.var: expr.Range.of_extent(statement.extent)}
        return map_children(lambda part: self.cut(part, inner), statement)

    def _pieces(self, loop: For, points: list[int], bounds: expr.Bounds) -> Stmt:
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


def _cuts(loop: For, extent: int, bounds: expr.Bounds) -> list[int]:
    """The positions at which a loop is cut, in order; none if the pieces would be too short."""
    if loop.kind not in (ForKind.VECTOR, ForKind.SERIAL):
        return []
    around = {**bounds, loop.var: expr.Range.of_extent(extent)}
    lanes = frozenset((loop.var,)) if loop.kind is ForKind.VECTOR else frozenset()
    points: set[int] = set()
    for corner, inner in _corners(loop.body, around, lanes):
        points |= _changes(corner, loop.var, {v: r for v, r in inner.items() if v != loop.var})
    inside = sorted(point for point in points if 0 < point < extent)
    if loop.kind is ForKind.VECTOR and extent < _LEAST_RUN * (len(inside) + 1):
        return []
    return inside


def _corners(
    statement: Stmt, bounds: expr.Bounds, lanes: frozenset[expr.Var]
) -> Iterator[tuple[expr.Compare, expr.Bounds]]:
    """Conditions on which side of a corner an index is that depends on lanes, with all ranges."""
    match statement:
        case For(var, int() as extent, kind, body):
            own = lanes | {var} if kind is ForKind.VECTOR else lanes
            yield from _corners(body, {**bounds, var: expr.Range.of_extent(extent)}, own)
        case Store(_, _, value):
            for boundary in _boundaries(value):
                if not lanes.isdisjoint(expr.free_vars(boundary.left, boundary.right)):
                    yield boundary, bounds
            for load in expr.loads_of(value):
                for index in load.indices:
                    if not lanes.isdisjoint(expr.free_vars(index)):
                        for corner in _corners_of(index, bounds):
                            if not lanes.isdisjoint(expr.free_vars(corner.left, corner.right)):
                                yield corner, bounds
        case _:
            for child in children_of(statement):
                yield from _corners(child, bounds, lanes)


def _boundaries(value: expr.Value) -> Iterator[expr.Compare]:
    """The positions where a value changes from reading one tensor to reading another."""
    match value:
        case expr.Select(condition, expr.Load() | expr.Select(), expr.Load() | expr.Select()):
            if not isinstance(condition, expr.ValueExpr):
                yield from (x for x in expr.conjuncts(condition) if isinstance(x, expr.Compare))
    for child in expr.children(value):
        yield from _boundaries(child)


def _corners_of(index: expr.Index, bounds: expr.Bounds) -> Iterator[expr.Compare]:
    parts: tuple[expr.Index, ...] = ()
    match index:
        case expr.Poly(terms):
            parts = tuple(atom for monomial, _ in terms for atom in monomial)
        case expr.Min(a, b) | expr.Max(a, b):
            parts = (a, b)
            corner = expr.compare(expr.Relation.LE, a, b)
            if isinstance(corner, expr.Compare):
                yield corner
        case expr.Mod(a, int() as divisor):
            parts = (a,)
            yield from _wraps(a, divisor, bounds)
    for part in parts:
        yield from _corners_of(part, bounds)


def _wraps(dividend: expr.Index, divisor: int, bounds: expr.Bounds) -> Iterator[expr.Compare]:
    """The positions where a remainder begins anew, if they are few."""
    reach = expr.interval(dividend, bounds) if divisor >= _LEAST_PERIOD else None
    if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
        return
    first, last = reach.low // divisor, reach.high // divisor
    if last - first <= _MOST_WRAPS:
        for quotient in range(first + 1, last + 1):
            corner = expr.compare(expr.Relation.LE, quotient * divisor, dividend)
            if isinstance(corner, expr.Compare):
                yield corner


def _changes(corner: expr.Compare, var: expr.Var, inner: expr.Bounds) -> set[int]:
    """The values of a variable from which on a condition may hold, and is sure (or no longer)."""
    gap = expr.gap_of(corner)
    split = None if gap is None else affine_in(gap, var)
    if split is None:
        return set()
    scale, rest = split
    reach = expr.interval(rest, inner)
    if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
        return set()
    if scale > 0:
        return {-(reach.low // scale), -(reach.high // scale)}
    return {reach.low // -scale + 1, reach.high // -scale + 1}


_CUT_KINDS = frozenset((ForKind.SERIAL, ForKind.UNROLLED, ForKind.PARALLEL, ForKind.VECTOR))


def partition_loops(
    program: LoopProgram, depth: int = 2, max_body: int = 12, max_statements: int = 512
) -> LoopProgram:
    """Split loops where comparisons with their variable become true and where they cease to be.

    Rewrite:  for i in 0..63: for j in 0..16: if i*16 + j < 1000: S
                  ->  for i in 0..62: for j in 0..16: S
                      for j_1 in 0..8: S[i := 62]
              for i in 0..58: P[i] = select(0 <= i - 1 and i - 1 < 56, X[i - 1], 0)
                  ->  P[0] = 0;  for i in 0..56: P[i + 1] = X[i];  P[57] = 0
              for i in 0..n @parallel: S
                  ->  for i in 0..n @parallel: if i < m: S1;  if m <= i: S2
    A parallel loop stays one loop, so that its threads meet once; a vector loop is only made
    shorter, since masks are cheaper there than a second loop.  Loops of more than `max_body`
    statements are only made shorter too.  `depth` says how many cut loops may be nested: a body
    grows at most to 3**depth copies, and the program not beyond `max_statements` statements.
    Theorem:  take a guard a*v + r >= 0 with r in low..high over the variables bound inside.  For
              a > 0 it holds for all v >= ceil(-low/a), for a < 0 for all v <= floor(low/-a).  The
              middle part is where all guards hold.
    """
    room = max_statements - total_size((program.body,))
    pass_ = _Partition(Namer(program), max_body, room)
    body = pass_.cut(program.body, {}, depth)
    return simplify_loops(LoopProgram(program.name, program.parameters, body))


@dataclass(frozen=True, slots=True)
class _Piece:
    """The iterations start..stop-1 of a loop."""

    start: int
    stop: int


class _Partition:
    """The names and the statements that may still be added; mutable, one per run."""

    def __init__(self, namer: Namer, max_body: int, room: int) -> None:
        self._namer = namer
        self._max_body = max_body
        self._room = room

    def cut(self, statement: Stmt, bounds: expr.Bounds, depth: int) -> Stmt:
        """Partition every loop inside, outer ones first."""
        match statement:
            case For(var, int() as extent, kind, body) if kind in _CUT_KINDS:
                inside: dict[expr.Var, expr.Range] = {**bounds, var: expr.Range.of_extent(extent)}
                pieces = _pieces(statement, extent)
                if len(pieces) > 1:
                    done = self._apply(statement, pieces, bounds, depth)
                    if done is not None:
                        return done
                return For(var, extent, kind, self.cut(body, inside, depth))
            case _:
                return self._inside(statement, bounds, depth)

    def _apply(
        self, loop: For, pieces: tuple[_Piece, ...], bounds: expr.Bounds, depth: int
    ) -> Stmt | None:
        """The loop in pieces, or None if that gains nothing or adds too many statements."""
        only_shorter = (
            loop.kind is ForKind.VECTOR or depth == 0 or total_size((loop,)) > self._max_body
        )
        if only_shorter:
            alive = [p for p in pieces if not _is_dead(loop.body, _and_range(bounds, loop.var, p))]
            if len(alive) > 1:
                return None
        parts: list[Stmt] = []
        for piece in pieces:
            moved = substitute_statement(loop.body, {loop.var: loop.var + piece.start})
            shifted = For(loop.var, piece.stop - piece.start, loop.kind, moved)
            parts.append(simplify_statement(shifted, bounds))
        full = [n for n, part in enumerate(parts) if not is_empty(part)]
        if len(full) > 1 and only_shorter:
            return None
        stays = loop.kind is ForKind.PARALLEL and len(full) > 1
        if stays:
            parts = [_narrowed(loop, piece, bounds) for piece in pieces]
        growth = total_size(parts) - total_size((loop,))
        if growth > self._room:
            return None
        self._room -= growth
        main = max(full, key=lambda n: pieces[n].stop - pieces[n].start, default=0)
        done: list[Stmt] = []
        for n in full:
            old = parts[n]
            part = old if n == main else freshen(old, self._namer)
            below = depth - 1 if len(full) > 1 else depth
            if not stays and isinstance(old, For) and old.var == loop.var:
                inner = self._inside(part, bounds, below)
            else:
                inner = self.cut(part, _and_range(bounds, loop.var, pieces[n]), below)
            if stays:
                inner = _within(loop.var, pieces[n], pieces[-1].stop, inner)
            done.append(inner)
        body = block(*done)
        if stays:
            return For(loop.var, loop.extent, loop.kind, body)
        return body

    def _inside(self, part: Stmt, bounds: expr.Bounds, depth: int) -> Stmt:
        """Partition what is directly inside a statement."""
        return map_children(lambda child: self.cut(child, bounds, depth), part)


def _is_dead(statement: Stmt, bounds: expr.Bounds) -> bool:
    """Whether the conditions around all stores are certainly false."""
    match statement:
        case If(condition, then):
            return expr.simplify_condition(condition, bounds) is False or _is_dead(then, bounds)
        case For(var, extent, _, body):
            return _is_dead(body, {**bounds, var: expr.Range.of_extent(extent)})
        case Store():
            return False
        case _:
            return all(_is_dead(child, bounds) for child in children_of(statement))


def _and_range(bounds: expr.Bounds, var: expr.Var, piece: _Piece) -> expr.Bounds:
    return {**bounds, var: expr.Range(piece.start, piece.stop - 1)}


def _narrowed(loop: For, piece: _Piece, bounds: expr.Bounds) -> Stmt:
    """The body of a parallel loop, simplified for the iterations of a piece."""
    if piece.stop - piece.start == 1:
        return simplify_statement(substitute_statement(loop.body, {loop.var: piece.start}), bounds)
    return simplify_statement(loop.body, _and_range(bounds, loop.var, piece))


def _within(var: expr.Var, piece: _Piece, extent: int, body: Stmt) -> Stmt:
    low = piece.start == 0 or expr.compare(expr.Relation.LE, piece.start, var)
    high = piece.stop == extent or expr.compare(expr.Relation.LT, var, piece.stop)
    condition = expr.all_of(low, high)
    return body if condition is True else If(condition, body)


def _pieces(loop: For, extent: int) -> tuple[_Piece, ...]:
    """The loop's iterations cut before and after the part where all guards hold."""
    start, stop = 0, extent
    for guard, inner in guards_of(loop.body, {}):
        decided = _holds(guard, loop.var, inner, extent)
        if decided is not None and max(start, decided.start) < min(stop, decided.stop):
            start, stop = max(start, decided.start), min(stop, decided.stop)
    cuts = (_Piece(0, start), _Piece(start, stop), _Piece(stop, extent))
    return tuple(piece for piece in cuts if piece.start < piece.stop)


def _holds(guard: expr.Compare, var: expr.Var, inner: expr.Bounds, extent: int) -> _Piece | None:
    """The iterations in which an inequality, or the rarer outcome of an equation, is decided."""
    gap = expr.gap_of(guard)
    if gap is None:
        return _unequal(guard.left - guard.right, var, extent)
    split = affine_in(gap, var)
    if split is None:
        return None
    scale, rest = split
    reach = expr.interval(rest, inner)
    if reach is None or not isinstance(reach.low, int):
        return None
    sure = _decided(scale, reach.low, extent)
    if sure is None and isinstance(reach.high, int):  # where it is possible
        return _decided(scale, reach.high, extent)
    return sure


def _decided(scale: int, rest: int, extent: int) -> _Piece | None:
    """The iterations v with scale*v + rest >= 0, or None if there are none."""
    if scale > 0:
        piece = _Piece(max(0, -(rest // scale)), extent)
    else:
        piece = _Piece(0, min(extent, rest // -scale + 1))
    return piece if piece.start < piece.stop else None


def _unequal(gap: expr.Index, var: expr.Var, extent: int) -> _Piece | None:
    """For v == c at the first or the last iteration: all other iterations."""
    split = affine_in(gap, var)
    if split is None or not isinstance(split[1], int) or split[1] % split[0]:
        return None
    equal_at = -split[1] // split[0]
    if equal_at == 0 and extent > 1:
        return _Piece(1, extent)
    return _Piece(0, equal_at) if equal_at == extent - 1 and equal_at > 0 else None
