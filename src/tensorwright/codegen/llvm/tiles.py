"""Which local buffers live in registers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

from tensorwright.base import DType
from tensorwright.codegen.llvm.facts import Facts
from tensorwright.codegen.llvm.indices import flat_index
from tensorwright.codegen.llvm.intrinsics import Intrinsic, find_intrinsic
from tensorwright.expr import FromIndex, Index, Load, Var, condition_sides, loads_of, terms_of
from tensorwright.loop import (
    Allocate,
    Block,
    Buffer,
    Call,
    For,
    ForKind,
    If,
    Prefetch,
    Scope,
    Stmt,
    Store,
    children_of,
)

_TILE_BYTES = 8 << 10  # the largest buffer kept in registers: twice what there are


class Access(NamedTuple):
    """So many elements from a multiple of `period`; with a loop variable, its whole loop's."""

    width: int
    period: int


_ONE = Access(1, 1)
_IN_MEMORY = Access(0, 0)  # an access that registers cannot have
_Moves = Mapping[str, Access]  # _ONE for unrolled variables; those of other loops are absent


def tile_width(
    allocate: Allocate, env: Mapping[str, object], lanes: int, facts: Facts
) -> int | None:
    """The vector width in which a small local buffer is accessed everywhere, or None.

    None unless every access is at an offset that is constant after unrolling, and any two accesses
    touch the same elements or none in common: such a buffer lives in registers. `env` holds an int
    for the variables around that are unrolled; each of the `lanes` around has a buffer of its own.
    """
    buffer = allocate.buffer
    size = buffer.dtype.size_bytes * lanes
    for extent in buffer.shape:
        size *= extent if isinstance(extent, int) else _TILE_BYTES + 1
    if buffer.scope is not Scope.LOCAL or size > _TILE_BYTES:
        return None
    moves = {name: _ONE for name, value in env.items() if isinstance(value, int)}
    found = set(_Search(buffer, lanes, facts).accesses(allocate.body, moves))
    if len(found) != 1 or _IN_MEMORY in found:
        return None
    return found.pop().width


@dataclass(frozen=True, slots=True)
class _Search:
    """Finds the accesses of one buffer."""

    buffer: Buffer
    lanes: int
    facts: Facts

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
                intrinsic = find_intrinsic(name, self.facts.target)
                if intrinsic is None or self.lanes > 1:
                    yield from self.accesses(meaning, moves)
                else:
                    yield from self._windows(statement, intrinsic, moves)
            case Block() | Allocate():
                for part in children_of(statement):
                    yield from self.accesses(part, moves)

    def _in_loop(self, loop: For, moves: _Moves) -> Iterator[Access]:
        inner = {name: access for name, access in moves.items() if name != loop.var.name}
        kind, extent = self.facts.kind(loop), self.facts.extent(loop)
        if extent == 1 or kind is ForKind.UNROLLED:
            inner[loop.var.name] = _ONE
        elif kind is ForKind.VECTOR and self.lanes == 1:
            chunks = self.facts.chunks(loop)
            widths = {width for _, width, _ in chunks.rests}
            if chunks.count:
                widths.add(chunks.width)
            if chunks.is_unrolled and len(widths) == 1:
                width = widths.pop()
                inner[loop.var.name] = Access(width, extent if chunks.rests else width)
        for access in self.accesses(loop.body, inner):
            yield _IN_MEMORY if kind is ForKind.PARALLEL and extent > 1 else access

    def _reads(self, loads: Iterable[Load], moves: _Moves) -> Iterator[Access]:
        for load in loads:
            if load.source.name == self.buffer.name:
                yield self._access(load.indices, moves)

    def _windows(self, call: Call, intrinsic: Intrinsic, moves: _Moves) -> Iterator[Access]:
        for window, width in zip(call.windows, intrinsic.window_lanes, strict=True):
            if window.buffer.name == self.buffer.name:
                first = self._access(window.indices, moves, width)
                yield Access(width, width) if first == _ONE else _IN_MEMORY

    def _access(self, indices: tuple[Index, ...], moves: _Moves, multiple: int = 1) -> Access:
        """One access; without a vector variable its offset must be a multiple."""
        step = 0
        vector: Access | None = None
        for monomial, coefficient in terms_of(flat_index(self.buffer, indices)):
            if not monomial:
                step = gcd(step, coefficient)
                continue
            move = None
            if len(monomial) == 1 and isinstance(monomial[0], Var):
                move = moves.get(monomial[0].name)
            if move is None:
                return _IN_MEMORY
            if move == _ONE:
                step = gcd(step, coefficient)
            elif coefficient != 1 or vector is not None:
                return _IN_MEMORY
            else:
                vector = move
        if vector is None:
            return _IN_MEMORY if step % multiple else Access(self.lanes, self.lanes)
        return _IN_MEMORY if step % vector.period else vector


def _elements(indices: Iterable[Index]) -> Iterator[Load]:
    for index in indices:
        yield from loads_of(FromIndex(index, DType.I64))
