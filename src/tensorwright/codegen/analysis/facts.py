"""Facts about loop programs by which code generators decide, before any text is written.

The memory of a kernel's buffers that are not in registers: the call's workspace or the stack.

A workspace holds `shared` bytes for the whole call and then `own` bytes for each thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tensorwright import expr, loop
from tensorwright.base import DType, InternalError, UnsupportedError
from tensorwright.schedule import ForKind, Scope

MOST_ITERATIONS = 1 << 48  # of a loop: addresses are not longer
_MOST_CHUNKS = 8  # vectors of one loop that are written out; more become a loop
_INTERLEAVED = (4, 2)  # adjacent vectors if a loop runs inside, to hide latency
_MOST_COPIES = 1 << 12  # statements of an unrolled loop; with more, it stays a loop
_MANY = 1 << 30  # the assumed iterations of an open loop
_MASKED_BYTES = (4, 8)  # sizes of elements that masked loads have
_LONG = (
    *(
        expr.Fn.EXP,
        expr.Fn.EXPM1,
        expr.Fn.LOG,
        expr.Fn.LOG1P,
        expr.Fn.SIGMOID,
        expr.Fn.TANH,
        expr.Fn.ERF,
    ),
    *(expr.Fn.SIN, expr.Fn.COS, expr.Fn.ATAN),
)
_CPU_KINDS = (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTOR, ForKind.PARALLEL)


def refuse_groups(program: loop.LoopProgram) -> None:
    """Refuse statements that need groups of threads, for the back ends of processors.

    Raises:  UnsupportedError for a loop over blocks or threads, a barrier and a shared buffer.
    """
    for part in loop.walk(program.body):
        match part:
            case loop.For(var, _, kind, _) if kind not in _CPU_KINDS:
                where, what = f"loop {var}", f"{kind.note} is"
            case loop.GroupStatement():
                where, what = "barrier", "groups of threads that wait for each other are"
            case loop.Allocate(buffer, _) if buffer.scope is Scope.SHARED:
                where, what = f"buffer {buffer.name}", "memory that a group of threads shares is"
            case _:
                continue
        raise UnsupportedError(
            stage="codegen",
            where=where,
            reason=f"{what} for graphics processors",
            remedy="schedule the program for this target",
            operator=where if what[0] != "@" else f"loop {what.split()[0]}",
        )


@dataclass(frozen=True, slots=True)
class Chunks:
    """How a vector loop is cut: `count` vectors of `width`, then (start, width, active) rests."""

    width: int
    count: int
    rests: tuple[tuple[int, int, int], ...]

    @property
    def is_unrolled(self) -> bool:
        """Whether every vector is written out."""
        return self.count <= _MOST_CHUNKS


class VectorUnit(Protocol):
    """The vector instructions of a processor, or of a thread of a graphics processor."""

    @property
    def vector_bytes(self) -> int:
        """The bytes of a vector."""
        ...

    @property
    def vector_registers(self) -> int:
        """The number of vector registers."""
        ...

    @property
    def has_masks(self) -> bool:
        """Whether instructions can be restricted to some lanes of a vector."""
        ...

    @property
    def masks_loads(self) -> bool:
        """Whether loads and stores can be restricted so."""
        ...

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether a multiply-add takes any lane of a register as all lanes of an operand."""
        ...

    @property
    def computes_halves(self) -> bool:
        """Whether instructions add and multiply f16."""
        ...


class Facts:
    """Facts about the statements of one program, remembered by identity.

    intrinsics     what the back end writes as one instruction: a name, the lanes of each window
    masked_rests   the back end has vectors of which only some lanes are written
    most_lanes     of a vector; 0 if its bytes are the only limit
    """

    def __init__(
        self,
        target: VectorUnit,
        intrinsics: Mapping[str, tuple[int, ...]] | None = None,
        *,
        masked_rests: bool = True,
        most_lanes: int = 0,
    ) -> None:
        self.target = target
        self.most_lanes = most_lanes
        self.masked_rests = masked_rests and target.has_masks
        self.padded_rests = masked_rests and target.masks_loads
        self.intrinsics = intrinsics or {}
        self._written: dict[int, frozenset[str]] = {}
        self._chunks: dict[int, Chunks] = {}
        self._copies: dict[int, int] = {}
        self._kinds: dict[int, ForKind] = {}
        self.tiles: dict[object, int | None] = {}  # results of `tile_width`

    def written(self, statement: loop.Stmt) -> frozenset[str]:
        """The names of the buffers that a statement writes."""
        names = self._written.get(id(statement))
        if names is None:
            names = self._written[id(statement)] = self._find_written(statement)
        return names

    def _find_written(self, statement: loop.Stmt) -> frozenset[str]:
        if isinstance(statement, loop.Store):
            return frozenset((statement.buffer.name,))
        return frozenset().union(*(self.written(part) for part in loop.children_of(statement)))

    def extent(self, nest: loop.For) -> int:
        """The extent of a loop that is not open.

        Raises:  InternalError for others.
        """
        if not isinstance(nest.extent, int):
            raise InternalError(
                stage="codegen",
                where=f"loop {nest.var} in 0..{nest.extent}",
                reason="the extent is not an int",
            )
        return nest.extent

    def is_open(self, nest: loop.For) -> bool:
        """Whether the extent depends on named sizes, or on loops around.

        Raises:  InternalError for an extent with a decision.
        """
        if isinstance(nest.extent, int):
            return False
        if expr.decisions_of(nest.extent):
            raise InternalError(
                stage="codegen",
                where=f"loop {nest.var} in 0..{nest.extent}",
                reason="the extent has a decision",
                remedy="bind the decisions of the program first",
            )
        return True

    def is_once(self, nest: loop.For) -> bool:
        """Whether a loop certainly has one iteration."""
        return not self.is_open(nest) and self.extent(nest) == 1

    def kind(self, nest: loop.For) -> ForKind:
        """How a loop is written: SERIAL, UNROLLED, VECTOR or PARALLEL.

        Of nested vector loops the innermost becomes vectors, the others are unrolled.  An open loop
        is never unrolled.
        """
        kind = self._kinds.get(id(nest))
        if kind is None:
            kind = self._kinds[id(nest)] = self._find_kind(nest)
        return kind

    def unroll(self, nest: loop.For) -> None:
        """Write a serial loop out, because a register tile needs it."""
        self._kinds[id(nest)] = ForKind.UNROLLED

    def copies(self, nest: loop.For) -> int:
        """The number of statements of an unrolled loop; large for an open loop."""
        extent = _MANY if self.is_open(nest) else self.extent(nest)
        return extent * self._copied(nest.body)

    def _find_kind(self, nest: loop.For) -> ForKind:
        kind = nest.kind
        if self.is_open(nest):
            return ForKind.PARALLEL if kind is ForKind.PARALLEL else ForKind.SERIAL
        if kind is ForKind.VECTOR and any(
            isinstance(part, loop.For)
            and self.kind(part) is ForKind.VECTOR
            and not self.is_once(part)
            for part in loop.walk(nest.body)
        ):
            kind = ForKind.UNROLLED
        if kind is ForKind.UNROLLED and self.copies(nest) > _MOST_COPIES:
            kind = ForKind.SERIAL
        return kind

    def _copied(self, statement: loop.Stmt) -> int:
        """The number of statements that one copy becomes."""
        copies = self._copies.get(id(statement))
        if copies is None:
            copies = sum(self._copied(part) for part in loop.children_of(statement)) or 1
            if isinstance(statement, loop.For):
                kind = self.kind(statement)
                if kind is ForKind.UNROLLED:
                    copies *= self.extent(statement)
                elif kind is ForKind.VECTOR:
                    chunks = self.chunks(statement)
                    copies *= max(1, min(chunks.count, _MOST_CHUNKS) + len(chunks.rests))
            self._copies[id(statement)] = copies
        return copies

    def chunks(self, nest: loop.For) -> Chunks:
        """The vectors that a vector loop becomes.

        The width is that of a register of the widest float type in the body, or else of the widest
        type; if loops run inside, it is several registers. A rest that is not a power of two
        becomes one masked vector if masks are free. Else it becomes one vector of which some lanes
        are not used, if that saves time, or several vectors of powers of two.
        """
        chunks = self._chunks.get(id(nest))
        if chunks is None:
            chunks = self._chunks[id(nest)] = self._find_chunks(nest)
        return chunks

    def _find_chunks(self, nest: loop.For) -> Chunks:
        extent = self.extent(nest)
        dtypes = frozenset(dtypes_below(nest.body))
        floats = [dtype.size_bytes for dtype in dtypes if dtype.is_float]
        sizes = floats or [dtype.size_bytes for dtype in dtypes]
        has_wide_halves = DType.F16 in dtypes and not self.target.computes_halves
        if has_wide_halves or DType.BF16 in dtypes:
            sizes.append(DType.F32.size_bytes)  # computed in f32
        width = self.target.vector_bytes // max(sizes, default=4)
        if self.most_lanes:
            width = min(width, self.most_lanes)
        elif any(self._is_serial(part) for part in loop.walk(nest.body)):
            width *= next((f for f in _INTERLEAVED if extent % (width * f) == 0), 1)
        count, rest = divmod(extent, width)
        start = extent - rest
        rests: list[tuple[int, int, int]] = []
        if rest and self.masked_rests and rest & (rest - 1):
            short = 1 << rest.bit_length()
            is_short = count == 0 and _fits_rows(nest.body, short)
            rests.append((start, short if is_short else width, rest))
        elif rest & (rest - 1) and self._pads_rest(nest.body, dtypes, is_short=count == 0):
            rests.append((start, width if count else 1 << rest.bit_length(), rest))
        else:
            for power in range(rest.bit_length() - 1, -1, -1):
                if rest >> power & 1:
                    rests.append((start, 1 << power, 1 << power))
                    start += 1 << power
        return Chunks(width, count, tuple(rests))

    def _pads_rest(self, body: loop.Stmt, dtypes: frozenset[DType], *, is_short: bool) -> bool:
        """Whether a rest is computed as one vector and written as several.

        A loop shorter than a vector then has one width, so that a tile can live in registers;
        after whole vectors it must save mathematical functions.
        """
        if not self.padded_rests or any(dtype.size_bytes not in _MASKED_BYTES for dtype in dtypes):
            return False
        if not all(_is_unguarded(part) for part in loop.walk(body)):
            return False
        values = (part.value for part in loop.walk(body) if isinstance(part, loop.Store))
        return is_short or any(
            isinstance(each, expr.Apply) and each.fn in _LONG
            for value in values
            for each in expr.values_below(value)
        )

    def _is_serial(self, statement: loop.Stmt) -> bool:
        if not isinstance(statement, loop.For):
            return False
        return self.kind(statement) is ForKind.SERIAL and not self.is_once(statement)


def _fits_rows(body: loop.Stmt, lanes: int) -> bool:
    """Whether vectors of `lanes` are whole rows, or read parts, of all local buffers."""
    for store in (part for part in loop.walk(body) if isinstance(part, loop.Store)):
        if store.buffer.scope is Scope.LOCAL and store.buffer.shape[-1:] != (lanes,):
            return False
        for load in expr.loads_of(store.value):
            source = load.source
            if isinstance(source, loop.Buffer) and source.scope is Scope.LOCAL and source.shape:
                row = source.shape[-1]
                if not isinstance(row, int) or row % lanes:
                    return False
    return True


def _is_unguarded(statement: loop.Stmt) -> bool:
    """Whether all lanes of a statement run and load, so that the lanes of a rest are the first
    ones.

    A choice by value reads both sides.
    """
    if isinstance(statement, loop.Store):
        return not any(
            (isinstance(each, expr.Select) and not isinstance(each.condition, expr.ValueExpr))
            for each in expr.values_below(statement.value)
        )
    return not isinstance(statement, (loop.If, loop.Call))


def dtypes_below(statement: loop.Stmt) -> Iterator[DType]:
    """The types that the statements compute; bools only if they are stored."""
    for part in loop.walk(statement):
        if isinstance(part, loop.Store):
            yield part.buffer.dtype
            for value in expr.values_below(part.value):
                if (
                    isinstance(value, (expr.Load, expr.Apply, expr.Cast))
                    and value.dtype is not DType.BOOL
                ):
                    yield value.dtype


BUFFER_ALIGN = 64
_STACK_BYTES = 32 << 10  # the largest local buffer on the stack
_FRAME_BYTES = 256 << 10  # of all of them in one function


class Arena:
    """Offsets in a workspace; the memory of a buffer is free again after its statement."""

    def __init__(self) -> None:
        self.top: expr.Index = 0
        self.size: expr.Index = 0

    def take(self, count_bytes: expr.Index) -> expr.Index:
        """The offset of new memory; give it back by setting `top` to what it was before."""
        offset = self.top
        room_bytes = expr.room_for(count_bytes)  # the memory must hold all sizes up to the greatest
        self.top = -(-(offset + room_bytes) // BUFFER_ALIGN) * BUFFER_ALIGN
        self.size = expr.maximum(self.size, self.top)
        return offset


class MemoryKind(Enum):
    """The memory that holds a buffer."""

    SHARED = "shared"  # one piece per call
    OWN = "own"  # one piece per thread
    STACK = "stack"


@dataclass(slots=True)
class Workspace:
    """The memory of one kernel while it is written."""

    shared: Arena = field(default_factory=Arena)  # one per call
    own: Arena = field(default_factory=Arena)  # one per thread

    def reserve(
        self, buffer: loop.Buffer, count_bytes: expr.Index, frame_bytes: int
    ) -> tuple[MemoryKind, expr.Index]:
        """The memory for a buffer and its offset there; the stack holds `frame_bytes` already."""
        if buffer.scope is not Scope.LOCAL:
            return MemoryKind.SHARED, self.shared.take(count_bytes)
        is_short = isinstance(count_bytes, int) and count_bytes <= _STACK_BYTES
        if is_short and frame_bytes + count_bytes <= _FRAME_BYTES:
            return MemoryKind.STACK, frame_bytes
        return MemoryKind.OWN, self.own.take(count_bytes)

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Free memory that is reserved inside, afterwards."""
        tops = self.shared.top, self.own.top
        yield
        self.shared.top, self.own.top = tops


def element_count(buffer: loop.Buffer) -> expr.Index:
    """The number of elements that a buffer takes: a number, or an expression of named sizes."""
    count = loop.room_of(buffer)
    if expr.decisions_of(count):
        raise InternalError(
            stage="codegen",
            where=f"buffer {buffer}",
            reason="an extent has a decision",
            remedy="bind the decisions of the program first",
        )
    return count
