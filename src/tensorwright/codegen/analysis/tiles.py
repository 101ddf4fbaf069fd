"""Which local buffers live in registers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple

from tensorwright.base import DType
from tensorwright.codegen.analysis.facts import Facts
from tensorwright.codegen.analysis.indices import flat_index
from tensorwright.expr import FromIndex, Index, Load, Var, condition_sides, loads_of, terms_of
from tensorwright.loop import (
    Allocate,
    Block,
    Buffer,
    Call,
    For,
    GroupStatement,
    If,
    Prefetch,
    Stmt,
    Store,
    children_of,
    walk,
)
from tensorwright.schedule import ForKind, Scope

_TILE_BYTES = 8 << 10  # the largest buffer kept in registers: four times their size
_MOST_FORCED = 512  # statements of a serial loop that is unrolled for a tile


class Access(NamedTuple):
    """So many elements from a multiple of `period`; with a loop variable, its whole loop's.

    is_part   they are read, and begin at a multiple of their width: if there are wider vectors, and
              these begin at multiples of theirs, they are a part of one
    """

    width: int
    period: int
    is_part: bool = False


_ONE = Access(1, 1)
_IN_MEMORY = Access(0, 0)  # an access that registers cannot have
_SERIAL = Access(0, 1)  # a variable of a serial loop
_Moves = Mapping[str, Access]  # by the names of variables; those from outside may be absent


def tile_width(
    allocate: Allocate, env: Mapping[str, object], lanes: int, facts: Facts
) -> int | None:
    """The vector width in which a small local buffer lives in registers, or None.

    None unless every access is at an offset that is constant after unrolling, and any two vectors
    accessed are the same or have no element in common. Serial loops that stand in the way are
    unrolled if the buffer fits in the registers. `env` holds an int for the variables around that
    are unrolled; each of the `lanes` around has a buffer of its own.
    """
    fixed = frozenset(name for name, value in env.items() if isinstance(value, int))
    key = id(allocate), lanes, fixed
    if key not in facts.tiles:
        facts.tiles[key] = _find_width(allocate, fixed, lanes, facts)
    return facts.tiles[key]


def _find_width(allocate: Allocate, fixed: frozenset[str], lanes: int, facts: Facts) -> int | None:
    buffer, target = allocate.buffer, facts.target
    size = buffer.dtype.size_bytes * lanes
    for extent in buffer.shape:
        size *= extent if isinstance(extent, int) else _TILE_BYTES + 1
    if buffer.scope is not Scope.LOCAL or size > _TILE_BYTES:
        return None
    search = _Search(buffer, lanes, facts)
    accesses = set(search.accesses(allocate.body, dict.fromkeys(fixed, _ONE)))
    forced = search.needed.values()
    fits = size <= target.vector_registers * target.vector_bytes
    if forced and not (fits and all(_is_short(loop, facts) for loop in forced)):
        return None
    width = _common_width(accesses)
    if width is not None:
        for loop in forced:
            facts.unroll(loop)
    return width


def _is_short(loop: For, facts: Facts) -> bool:
    """Whether a loop may be unrolled for a tile: it is short, with no open loop inside."""
    inside = (each for each in walk(loop.body) if isinstance(each, For))
    return facts.copies(loop) <= _MOST_FORCED and not any(map(facts.is_open, inside))


def _common_width(accesses: set[Access]) -> int | None:
    """The width of all vectors; single elements may be parts of them if there are no rests."""
    parts = {access._replace(is_part=False) for access in accesses if access.is_part}
    vectors = {access for access in accesses if not access.is_part} - {_ONE}
    if not vectors:
        vectors, parts = parts, set()
    if not vectors:
        return 1 if accesses else None
    if len(vectors) > 1 or _IN_MEMORY in vectors:
        return None
    width, period, _ = vector = next(iter(vectors))
    if any(part != vector and (width != period or part.width > width) for part in parts):
        return None
    return width if width == period or _ONE not in accesses else None


@dataclass(frozen=True, slots=True)
class _Search:
    """Finds the accesses of one buffer, and the serial loops that move them."""

    buffer: Buffer
    lanes: int
    facts: Facts
    serial: dict[str, For] = field(default_factory=dict)  # the loop around, by its variable
    needed: dict[int, For] = field(default_factory=dict)  # serial loops that index the buffer

    def accesses(self, statement: Stmt, moves: _Moves) -> Iterator[Access]:
        """Every access inside a statement."""
        match statement:
            case For():
                yield from self._in_loop(statement, moves)
            case Store(target, indices, value):
                if target.name == self.buffer.name:
                    yield self._access(indices, moves)
                yield from self._reads((*loads_of(value), *_elements(indices)), moves)
            case If(condition, then):
                yield from self._reads(_elements(condition_sides(condition)), moves)
                yield from self.accesses(then, moves)
            case Prefetch(target, _):
                if target.name == self.buffer.name:
                    yield _IN_MEMORY
            case Call(name, _, meaning):
                window_lanes = self.facts.intrinsics.get(name)
                if window_lanes is None or self.lanes > 1:
                    yield from self.accesses(meaning, moves)
                else:
                    yield from self._windows(statement, window_lanes, moves)
            case Block() | Allocate() | GroupStatement():
                for part in children_of(statement):
                    yield from self.accesses(part, moves)

    def _in_loop(self, loop: For, moves: _Moves) -> Iterator[Access]:
        name = loop.var.name
        inner = {**moves, name: _IN_MEMORY}
        kind, is_once = self.facts.kind(loop), self.facts.is_once(loop)
        if is_once or kind is ForKind.UNROLLED:
            inner[name] = _ONE
        elif kind is ForKind.SERIAL:
            self.serial[name] = loop
            inner[name] = _SERIAL
        elif kind is ForKind.VECTOR and self.lanes == 1:
            chunks = self.facts.chunks(loop)
            widths = {width for _, width, _ in chunks.rests}
            if chunks.count:
                widths.add(chunks.width)
            if chunks.is_unrolled and len(widths) == 1:
                width = widths.pop()
                inner[name] = Access(width, self.facts.extent(loop) if chunks.rests else width)
        for access in self.accesses(loop.body, inner):
            yield _IN_MEMORY if kind is ForKind.PARALLEL and not is_once else access

    def _reads(self, loads: Iterable[Load], moves: _Moves) -> Iterator[Access]:
        for load in loads:
            if load.source.name == self.buffer.name:
                yield self._access(load.indices, moves, is_read=True)

    def _windows(
        self, call: Call, window_lanes: tuple[int, ...], moves: _Moves
    ) -> Iterator[Access]:
        for window, width in zip(call.windows, window_lanes, strict=True):
            if window.buffer.name == self.buffer.name:
                first = self._access(window.indices, moves, width)
                yield Access(width, width) if first == _ONE else _IN_MEMORY

    def _access(
        self,
        indices: tuple[Index, ...],
        moves: _Moves,
        multiple: int = 1,
        *,
        is_read: bool = False,
    ) -> Access:
        """One access; without a vector variable its offset must be a multiple."""
        step = 0
        vector: Access | None = None
        for monomial, coefficient in terms_of(flat_index(self.buffer, indices)):
            if not monomial:
                step = gcd(step, coefficient)
                continue
            move = None
            if len(monomial) == 1 and isinstance(monomial[0], Var):
                name = monomial[0].name
                move = moves.get(name)
                if move == _SERIAL:
                    self.needed[id(self.serial[name])] = self.serial[name]
                    move = _ONE
            if move is None or move == _IN_MEMORY:
                return _IN_MEMORY
            if move == _ONE:
                step = gcd(step, coefficient)
            elif coefficient != 1 or vector is not None:
                return _IN_MEMORY
            else:
                vector = move
        if vector is None:
            return _IN_MEMORY if step % multiple else Access(self.lanes, self.lanes)
        is_whole = step % vector.period == 0
        if is_read and step % vector.width == 0:
            return Access(vector.width, vector.period if is_whole else 0, is_part=True)
        return vector if is_whole else _IN_MEMORY


def _elements(indices: Iterable[Index]) -> Iterator[Load]:
    for index in indices:
        yield from loads_of(FromIndex(index, DType.I64))
