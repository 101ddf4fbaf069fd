"""Facts about loop programs that the code generator decides by, found before any text is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd

from tensorwright.base import DType, InternalError, Target, UnsupportedError
from tensorwright.codegen.llvm.indices import flat_index
from tensorwright.codegen.llvm.intrinsics import find_intrinsic
from tensorwright.expr import (
    Apply,
    Cast,
    Compare,
    Condition,
    And,
    FromIndex,
    Index,
    Load,
    Not,
    Or,
    Select,
    Value,
    Var,
    children,
    condition_sides,
    free_vars,
    loads_of,
    terms_of,
)
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
)

_MOST_CHUNKS = 8  # vectors of one loop that are written out; more become a loop
_MOST_COPIES = 1 << 14  # of a statement by unrolling; beyond, the loop stays a loop
_TILE_BYTES = 8 << 10  # the largest buffer kept in registers: twice what there are
_CPU_KINDS = (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTOR, ForKind.PARALLEL)


@dataclass(frozen=True, slots=True)
class Chunks:
    """How a vector loop is cut: `count` full vectors of `width`, then (start, width, active) rests."""

    width: int
    count: int
    rests: tuple[tuple[int, int, int], ...]

    @property
    def is_unrolled(self) -> bool:
        """Whether every vector is written out."""
        return self.count <= _MOST_CHUNKS


class Facts:
    """Facts about the statements of one program, remembered by identity."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._written: dict[int, frozenset[str]] = {}
        self._chunks: dict[int, Chunks] = {}
        self._copies: dict[int, int] = {}
        self._kinds: dict[int, ForKind] = {}

    def written(self, statement: Stmt) -> frozenset[str]:
        """The names of the buffers that a statement writes."""
        known = self._written.get(id(statement))
        if known is None:
            known = self._written[id(statement)] = self._find_written(statement)
        return known

    def _find_written(self, statement: Stmt) -> frozenset[str]:
        if isinstance(statement, Store):
            return frozenset((statement.buffer.name,))
        return frozenset().union(*(self.written(part) for part in parts_of(statement)))

    def extent(self, loop: For) -> int:
        """The extent of a loop of a bound program."""
        if not isinstance(loop.extent, int):
            raise InternalError(
                stage="codegen",
                where=f"loop {loop.var} in 0..{loop.extent}",
                reason="the extent is not an int",
                remedy="bind the decisions of the program first",
            )
        return loop.extent

    def kind(self, loop: For) -> ForKind:
        """How a loop is written: SERIAL, UNROLLED, VECTOR or PARALLEL.

        Of nested vector loops the innermost becomes vectors, the others are unrolled.
        """
        known = self._kinds.get(id(loop))
        if known is None:
            known = self._kinds[id(loop)] = self._find_kind(loop)
        return known

    def _find_kind(self, loop: For) -> ForKind:
        if loop.kind not in _CPU_KINDS:
            raise UnsupportedError(
                stage="codegen",
                where=f"loop {loop.var}",
                reason=f"{loop.kind.value} is for graphics processors",
                remedy="schedule the program for this target",
                operator=f"loop {loop.kind.value}",
            )
        kind = loop.kind
        if kind is ForKind.VECTOR and any(
            isinstance(part, For) and part.kind is ForKind.VECTOR and self.extent(part) > 1
            for part in statements_below(loop.body)
        ):
            kind = ForKind.UNROLLED
        if kind is ForKind.UNROLLED and self.extent(loop) * self._copied(loop.body) > _MOST_COPIES:
            kind = ForKind.SERIAL
        return kind

    def _copied(self, statement: Stmt) -> int:
        """How many statements one copy becomes."""
        known = self._copies.get(id(statement))
        if known is None:
            known = sum(self._copied(part) for part in parts_of(statement)) or 1
            if isinstance(statement, For):
                kind = self.kind(statement)
                if kind is ForKind.UNROLLED:
                    known *= self.extent(statement)
                elif kind is ForKind.VECTOR:
                    chunks = self.chunks(statement)
                    known *= max(1, min(chunks.count, _MOST_CHUNKS) + len(chunks.rests))
            self._copies[id(statement)] = known
        return known

    def chunks(self, loop: For) -> Chunks:
        """The vectors that a vector loop becomes.

        The width is that of a register of the widest float type in the body, or else of the widest
        type. What remains is one masked vector where masks are free or a power of two is near,
        else vectors of powers of two.
        """
        known = self._chunks.get(id(loop))
        if known is None:
            known = self._chunks[id(loop)] = self._find_chunks(loop)
        return known

    def _find_chunks(self, loop: For) -> Chunks:
        extent = self.extent(loop)
        dtypes = frozenset(dtypes_below(loop.body))
        floats = [dtype.size_bytes for dtype in dtypes if dtype.is_float]
        sizes = floats or [dtype.size_bytes for dtype in dtypes]
        if DType.F16 in dtypes or DType.BF16 in dtypes:
            sizes.append(DType.F32.size_bytes)  # computed so
        width = self.target.vector_bytes // max(sizes, default=4)
        count, rest = divmod(extent, width)
        start = extent - rest
        rests: list[tuple[int, int, int]] = []
        if rest and self.target.has_masks and rest & (rest - 1):
            rests.append((start, width, rest))
        else:
            for power in range(rest.bit_length() - 1, -1, -1):
                if rest >> power & 1:
                    rests.append((start, 1 << power, 1 << power))
                    start += 1 << power
        return Chunks(width, count, tuple(rests))

    def tile_width(self, allocate: Allocate, env: Mapping[Var, object], lanes: int) -> int | None:
        """The vector width in which a small local buffer is accessed everywhere, or None.

        None unless every access is at an offset that is constant after unrolling, and any two
        accesses touch the same elements or none in common: such a buffer lives in registers.
        `env` holds an int for the variables around that are unrolled; `lanes` of a vector loop
        around have an instance each.
        """
        buffer = allocate.buffer
        size = buffer.dtype.size_bytes * lanes
        for extent in buffer.shape:
            size *= extent if isinstance(extent, int) else _TILE_BYTES + 1
        if buffer.scope is not Scope.LOCAL or size > _TILE_BYTES:
            return None
        widths: dict[Var, tuple[int, int]] = {
            var: (1, 1) for var, value in env.items() if isinstance(value, int)
        }
        found = set(self._accesses(buffer, allocate.body, widths, lanes))
        return found.pop()[0] if len(found) == 1 and (0, 0) not in found else None

    def _accesses(
        self, buffer: Buffer, statement: Stmt, vars_: dict[Var, tuple[int, int]], lanes: int
    ) -> Iterator[tuple[int, int]]:
        """(width, period) of each access; (0, 0) for one that forbids registers.

        `vars_` holds (1, 1) for unrolled variables and (width, period) for those of vector loops;
        others are absent.
        """
        match statement:
            case For(var, _, _, body):
                yield from self._loop_accesses(buffer, statement, {**vars_}, lanes)
            case Store(target, indices, value):
                if target.name == buffer.name:
                    yield _access(buffer, indices, vars_, lanes)
                yield from _read_accesses(buffer, loads_of(value), vars_, lanes)
                yield from _read_accesses(buffer, _element_loads(indices), vars_, lanes)
            case If(condition, body):
                for side in condition_sides(condition):
                    yield from _read_accesses(buffer, _element_loads((side,)), vars_, lanes)
                yield from self._accesses(buffer, body, vars_, lanes)
            case Prefetch(target, _):
                if target.name == buffer.name:
                    yield 0, 0
            case Call(name, windows, meaning):
                intrinsic = find_intrinsic(name, self.target)
                if intrinsic is None:
                    yield from self._accesses(buffer, meaning, vars_, lanes)
                    return
                for window, width in zip(windows, intrinsic.window_lanes, strict=True):
                    if window.buffer.name == buffer.name:
                        moved = {**vars_}
                        found = _access(buffer, window.indices, moved, lanes)
                        yield _window_access(found, buffer, window.indices, vars_, width)
            case Block() | Allocate():
                for part in parts_of(statement):
                    yield from self._accesses(buffer, part, vars_, lanes)

    def _loop_accesses(
        self, buffer: Buffer, loop: For, vars_: dict[Var, tuple[int, int]], lanes: int
    ) -> Iterator[tuple[int, int]]:
        vars_.pop(loop.var, None)
        kind = self.kind(loop)
        if self.extent(loop) == 1 or kind is ForKind.UNROLLED:
            vars_[loop.var] = (1, 1)
        elif kind is ForKind.VECTOR and lanes == 1:
            chunks = self.chunks(loop)
            if chunks.is_unrolled:
                width = chunks.width if chunks.count else chunks.rests[0][1]
                period = self.extent(loop) if chunks.rests else width
                single = len(chunks.rests) + chunks.count == 1 or not chunks.rests
                if single or all(rest[1] == width for rest in chunks.rests):
                    vars_[loop.var] = (width, period)
        accesses = self._accesses(buffer, loop.body, vars_, lanes)
        if kind is ForKind.PARALLEL and self.extent(loop) > 1 and any(accesses):
            yield 0, 0
            return
        yield from self._accesses(buffer, loop.body, vars_, lanes)


def _access(
    buffer: Buffer, indices: tuple[Index, ...], vars_: dict[Var, tuple[int, int]], lanes: int
) -> tuple[int, int]:
    """(width, period) of one access, or (0, 0)."""
    width, period, common, vectors = lanes, lanes, 0, 0
    for monomial, coefficient in terms_of(flat_index(buffer, indices)):
        if len(monomial) != 1 or not isinstance(monomial[0], Var):
            if not monomial:
                common = gcd(common, coefficient)
                continue
            return 0, 0
        found = vars_.get(monomial[0])
        if found is None:
            return 0, 0
        if found == (1, 1):
            common = gcd(common, coefficient)
        elif coefficient != 1 or lanes > 1:
            return 0, 0
        else:
            width, period = found
            vectors += 1
    if vectors > 1 or (vectors and common % period):
        return 0, 0
    return width, period


def _window_access(
    found: tuple[int, int],
    buffer: Buffer,
    indices: tuple[Index, ...],
    vars_: dict[Var, tuple[int, int]],
    width: int,
) -> tuple[int, int]:
    if found != (1, 1):
        return 0, 0
    common = 0
    for _, coefficient in terms_of(flat_index(buffer, indices)):
        common = gcd(common, coefficient)
    return (0, 0) if common % width else (width, width)


def _read_accesses(
    buffer: Buffer, loads: Iterator[Load], vars_: dict[Var, tuple[int, int]], lanes: int
) -> Iterator[tuple[int, int]]:
    for load in loads:
        if load.source.name == buffer.name:
            yield _access(buffer, load.indices, vars_, lanes)


def _element_loads(indices: tuple[Index, ...]) -> Iterator[Load]:
    for index in indices:
        yield from loads_of(FromIndex(index, DType.I64))


def parts_of(statement: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside; of a call, what it means."""
    match statement:
        case Block(statements):
            return statements
        case For(_, _, _, body) | Allocate(_, body) | If(_, body) | Call(_, _, body):
            return (body,)
        case _:
            return ()


def statements_below(statement: Stmt) -> Iterator[Stmt]:
    """A statement and all inside it."""
    yield statement
    for part in parts_of(statement):
        yield from statements_below(part)


def values_below(value: Value) -> Iterator[Value]:
    """A value and all its operands."""
    yield value
    for child in children(value):
        yield from values_below(child)


def dtypes_below(statement: Stmt) -> Iterator[DType]:
    """The types of what the statements compute, bools aside unless they are stored."""
    for part in statements_below(statement):
        if isinstance(part, Store):
            yield part.buffer.dtype
            for value in values_below(part.value):
                if isinstance(value, (Load, Apply, Cast)) and value.dtype is not DType.BOOL:
                    yield value.dtype


def conditions_below(value: Value) -> Iterator[Condition]:
    """The index conditions of selects."""
    for part in values_below(value):
        if isinstance(part, Select) and isinstance(part.condition, (bool, Compare, And, Or, Not)):
            yield part.condition


def variables_below(statement: Stmt) -> frozenset[Var]:
    """The loop variables that the statements mention."""
    found: set[Var] = set()
    for part in statements_below(statement):
        match part:
            case Store(_, indices, value):
                found |= free_vars(*indices)
                for inner in values_below(value):
                    if isinstance(inner, Load):
                        found |= free_vars(*inner.indices)
                    elif isinstance(inner, FromIndex):
                        found |= free_vars(inner.index)
                for condition in conditions_below(value):
                    found |= free_vars(*condition_sides(condition))
            case Prefetch(_, indices):
                found |= free_vars(*indices)
            case If(condition, _):
                found |= free_vars(*condition_sides(condition))
            case Call(_, windows, _):
                for window in windows:
                    found |= free_vars(*window.indices)
            case _:
                pass
    return frozenset(found)


def buffers_below(statement: Stmt) -> frozenset[str]:
    """The names of the buffers that the statements read or write."""
    found: set[str] = set()
    for part in statements_below(statement):
        match part:
            case Store(buffer, indices, value):
                found.add(buffer.name)
                found |= {load.source.name for load in loads_of(value)}
                found |= {load.source.name for load in _element_loads(indices)}
            case If(condition, _):
                sides = tuple(condition_sides(condition))
                found |= {load.source.name for load in _element_loads(sides)}
            case Prefetch(buffer, indices):
                found.add(buffer.name)
                found |= {load.source.name for load in _element_loads(indices)}
            case Call(_, windows, _):
                found |= {window.buffer.name for window in windows}
            case _:
                pass
    return frozenset(found)
