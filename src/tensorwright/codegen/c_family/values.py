"""Value expressions and accesses to buffers as C expressions, of one lane or of a vector.

A vector loop is written with vectors. Gathers and conditions that differ by lane are written lane
by lane: the loop's variable is then one number after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tensorwright import expr
from tensorwright.base import DType, InternalError
from tensorwright.codegen.analysis import Linear, combine, scaled
from tensorwright.codegen.c_family.dialect import Lines, Names, Val, held, mask_dtype
from tensorwright.codegen.c_family.helpers import Helpers, Indices, VariesByLane
from tensorwright.codegen.c_family.operations import Operations
from tensorwright.loop import Buffer


@dataclass(frozen=True, slots=True)
class Piece:
    """A buffer in memory; `private` lanes are interleaved if a vector loop allocates it.

    space       the qualifier of its memory, with a space behind it
    is_single   it is one variable, not an array
    swizzle     the layout of its elements, as `MemoryLayout.swizzle` says; None for plain ones
    """

    pointer: str
    dtype: DType
    is_input: bool = False
    private: int = 1
    space: str = ""
    is_single: bool = False
    swizzle: tuple[int, int, int] | None = None


@dataclass(slots=True)
class Tile:
    """A buffer in registers: a variable of `width` lanes for each offset that is accessed."""

    name: str
    dtype: DType
    width: int
    private: int
    variables: dict[int, str] = field(default_factory=dict)


class VectorLoop(NamedTuple):
    """The vector loop around, from a first iteration; `lane` is the one written, -1 for all."""

    variable: str
    start: Linear
    width: int
    lane: int = -1


class Values(Indices):
    """Evaluate value expressions in one function."""

    def __init__(self, helpers: Helpers, names: Names) -> None:
        super().__init__(helpers)
        self.dialect = helpers.dialect
        self.names = names
        self.out = Lines()
        self.operations = Operations(helpers, self.bind)
        self.storages: dict[str, Piece | Tile] = {}
        self.vector: VectorLoop | None = None
        self._computed: dict[tuple[int, int], Val] = {}
        self._shared: frozenset[int] = frozenset()

    def bind(self, value: Val) -> Val:
        """The value under a name, so that it is computed once."""
        if value.is_simple:
            return value
        kind = self.dialect.value(value.dtype)
        if value.lanes > 1:
            kind = self.helpers.vector(value.dtype, value.lanes)
        name = self.names.fresh("v")
        self.out.add(f"const {kind} {name} = {value.text};")
        return value._replace(text=name)

    @contextmanager
    def lane(self, lane: int) -> Iterator[None]:
        """Write one lane of the vector loop around."""
        loop, lanes = self.vector, self.lanes
        assert loop is not None, "only a vector loop has lanes"
        kept = self.env[loop.variable], self._computed
        self.env[loop.variable] = combine(loop.start, Linear(lane))
        self.vector, self.lanes, self._computed = loop._replace(lane=lane), 1, {}
        yield
        self.vector, self.lanes = loop, lanes
        self.env[loop.variable], self._computed = kept

    # accesses

    def element_offset(self, buffer: Buffer, indices: tuple[expr.Index, ...]) -> Linear:
        """The offset of an element, or of the lanes' elements."""
        storage = self.storage(buffer)
        offset = self.offset(buffer, indices)
        if storage.private == 1 or self.vector is None:
            return offset
        own = Linear(0, (), 1) if self.lanes > 1 else Linear(self.vector.lane)
        return combine(scaled(offset, storage.private), own)

    def storage(self, buffer: Buffer) -> Piece | Tile:
        """The memory or the registers of a buffer."""
        storage = self.storages.get(buffer.name)
        if storage is None:
            raise InternalError(
                stage="codegen", where=f"buffer {buffer.name}", reason="nothing allocates it"
            )
        return storage

    def element_at(self, storage: Piece | Tile, offset: Linear) -> str:
        """One element, as something that can be assigned."""
        if isinstance(storage, Piece):
            return self._element_in(storage, offset)
        lane = offset.const % storage.width
        name = self.tile_variable(storage, offset.const - lane)
        return name if storage.width == 1 else self.dialect.vectors.lane_of(name, lane)

    def _element_in(self, piece: Piece, offset: Linear) -> str:
        """An element in memory, at the position that its layout gives it."""
        if piece.is_single:
            return piece.pointer
        at = self.sum(offset)
        if piece.swizzle is not None:
            at = f"{self.helpers.swizzle(*piece.swizzle)}({at})"
        return f"{piece.pointer}[{at}]"

    def tile_variable(self, tile: Tile, offset: int) -> str:
        """The variable that holds the elements of a tile from an offset."""
        if offset not in tile.variables:
            tile.variables[offset] = self.names.fresh(f"{tile.name}_{offset}")
        return tile.variables[offset]

    def _of_tile(self, tile: Tile, offset: int) -> str:
        """The lanes of a tile from an offset: a whole variable, or a part of one."""
        if self.lanes == tile.width:
            return self.tile_variable(tile, offset)
        lane = offset % tile.width
        name = self.tile_variable(tile, offset - lane)
        kind = self.helpers.vector_in_memory(held(tile.dtype), self.lanes)
        return f"(*(const {kind} *)((const {self.dialect.value(tile.dtype)} *)&{name} + {lane}))"

    def vector_at(self, piece: Piece, offset: Linear) -> str | None:
        """Adjacent elements in memory, as something that can be assigned.

        None if the language can assign only whole vectors, and this may not be one.
        """
        vectors, lanes = self.dialect.vectors, self.lanes
        if not vectors.has_types_anywhere and not _is_multiple(offset, lanes):
            return None
        kind = self.helpers.vector_in_memory(piece.dtype, lanes)
        const = "const " if piece.is_input else ""
        at = self._element_in(piece, offset._replace(step=0))
        return vectors.in_memory.format(const=const, space=piece.space, kind=kind, at=at)

    def _is_vector_in_memory(self, dtype: DType) -> bool:
        """Whether adjacent elements in memory are a vector in the form in which it is computed."""
        most = self.dialect.vectors.most_lanes
        return self.dialect.is_held_as_stored(dtype) and not (most and self.lanes > most)

    def is_converted(self, dtype: DType) -> bool:
        """Whether adjacent elements in memory are a vector whose lanes are converted one by one."""
        vectors = self.dialect.vectors
        is_short = not vectors.most_lanes or self.lanes <= vectors.most_lanes
        return not vectors.has_operators and is_short and not self.dialect.is_held_as_stored(dtype)

    def address_of(self, piece: Piece, offset: Linear) -> str | None:
        """The address of the lanes' elements; None if they may not be a whole vector."""
        if piece.is_single or (self.lanes > 1 and not _is_multiple(offset, self.lanes)):
            return None
        return f"&{self._element_in(piece, offset._replace(step=0))}"

    def load_vector(self, piece: Piece, offset: Linear) -> Val:
        """Adjacent elements.  Raises: VariesByLane if the language cannot load them."""
        vectors, dtype = self.dialect.vectors, piece.dtype
        at = self.vector_at(piece, offset)
        if at is not None:
            return Val(f"({at})", dtype, self.lanes)
        if not vectors.load or piece.swizzle is not None:
            raise VariesByLane
        first = f"{piece.pointer}[{self.sum(offset._replace(step=0))}]"
        return Val(vectors.load.format(lanes=self.lanes, at=first), dtype, self.lanes)

    def store_vector(self, piece: Piece, offset: Linear, value: Val) -> bool:
        """Write adjacent elements; False if the language cannot."""
        at = self.vector_at(piece, offset)
        if at is not None:
            self.out.add(f"{at} = {value.text};")
            return True
        store = self.dialect.vectors.store
        if not store or piece.swizzle is not None:
            return False
        first = f"{piece.pointer}[{self.sum(offset._replace(step=0))}]"
        self.out.add(store.format(lanes=self.lanes, at=first, value=value.text) + ";")
        return True

    def element(self, buffer: Buffer, indices: tuple[expr.Index, ...]) -> Linear:
        """An element of an integer buffer, as a number that all lanes share."""
        storage, offset = self.storage(buffer), self.element_offset(buffer, indices)
        if offset.step:
            raise VariesByLane
        return self._named(f"({self.helpers.index}){self.element_at(storage, offset)}")

    def _load(self, buffer: Buffer, indices: tuple[expr.Index, ...]) -> Val:
        storage, offset = self.storage(buffer), self.element_offset(buffer, indices)
        dtype = buffer.dtype
        if not offset.step:
            text = self.element_at(storage, offset)
            return Val(text if isinstance(storage, Tile) else self._read(text, dtype), dtype)
        if isinstance(storage, Tile):
            return Val(self._of_tile(storage, offset.const), dtype, self.lanes)
        if offset.step == 1 and self._is_vector_in_memory(dtype):
            return self.load_vector(storage, offset)
        if offset.step == 1 and self.is_converted(dtype):
            stored = self.load_vector(replace(storage, dtype=stored_as(dtype)), offset)
            return self.operations.by_lane(
                lambda part: Val(self._read(part.text, dtype), dtype), dtype, (stored,)
            )
        raise VariesByLane

    def _read(self, text: str, dtype: DType) -> str:
        return self.operations.load(text, dtype)

    # values

    def value(self, value: expr.Value) -> Val:
        """The value of an expression, for one statement."""
        self._computed = {}
        self._shared = _shared(value)
        return self._value(value)

    def _value(self, value: expr.Value) -> Val:
        if isinstance(value, expr.Const):
            return Val(self.dialect.literal(value.value, value.type), value.type)
        key = id(value), -1 if self.vector is None else self.vector.lane
        computed = self._computed.get(key)
        if computed is not None:
            return computed
        try:
            result = self._of(value)
        except VariesByLane:
            if self.lanes == 1:
                raise
            result = self._lane_by_lane(value)
        if id(value) in self._shared:
            result = self._computed[key] = self.bind(result)
        return result

    def _of(self, value: expr.Value) -> Val:
        match value:
            case expr.Load(source, indices):
                return self._load(source, indices)
            case expr.Cast(operand, dtype):
                return self.operations.convert(self._value(operand), dtype)
            case expr.FromIndex(index, dtype):
                number = Val(f"({self.sum(self.evaluate(index))})", DType.I64)
                return self.operations.convert(number, dtype)
            case expr.Select():
                return self._selected(value)
            case expr.Apply(fn, args):
                return self.operations.apply(fn, tuple(self._value(arg) for arg in args))
        raise InternalError(stage="codegen", where=f"value {value}", reason="not a value")

    def _lane_by_lane(self, value: expr.Value) -> Val:
        """A vector made of lanes that are computed one by one."""
        lanes = self.lanes
        self.helpers.vector(value.dtype, lanes)
        parts: list[str] = []
        for lane in range(lanes):
            with self.lane(lane):
                parts.append(self._value(value).text)
        return self.operations.vector_of(parts, value.dtype)

    def _selected(self, value: expr.Select) -> Val:
        condition = value.condition
        if not isinstance(condition, (bool, expr.Compare, expr.And, expr.Or, expr.Not)):
            return self._chosen_by_value(condition, value.then, value.otherwise)
        decided = self.condition(condition)
        if isinstance(decided, bool):
            return self._value(value.then if decided else value.otherwise)
        before = len(self.out.lines)
        kept = dict(self._computed)
        then = self._value(value.then)
        otherwise = self._value(value.otherwise)
        if len(self.out.lines) == before and then.lanes == otherwise.lanes == 1:
            return Val(f"({decided} ? {then.text} : {otherwise.text})", value.dtype)
        del self.out.lines[before:]
        return self._branched(decided, value, kept, max(then.lanes, otherwise.lanes))

    def _branched(
        self, condition: str, value: expr.Select, computed: dict[tuple[int, int], Val], lanes: int
    ) -> Val:
        """Compute only the side that the condition chooses."""
        name = self.names.fresh("v")
        kind = self.dialect.value(value.dtype)
        if lanes > 1:
            kind = self.helpers.vector(value.dtype, lanes)
        self.out.add(f"{kind} {name};")
        for head, side in ((f"if {condition}", value.then), ("else", value.otherwise)):
            self._computed = dict(computed)
            with self.out.block(head):
                result = self._value(side)
                if lanes > 1:
                    result = self.operations.spread(result, lanes)
                self.out.add(f"{name} = {result.text};")
        self._computed = computed
        return Val(name, value.dtype, lanes)

    def _chosen_by_value(
        self, condition: expr.Value, then: expr.Value, otherwise: expr.Value
    ) -> Val:
        """Compute both sides; a comparison as wide as the result is the mask itself."""
        first, second = self._value(then), self._value(otherwise)
        operations = self.operations
        if isinstance(condition, expr.Apply) and condition.fn in (
            expr.Fn.LT,
            expr.Fn.LE,
            expr.Fn.EQ,
            expr.Fn.NE,
        ):
            a, b = (self._value(arg) for arg in condition.args)
            lanes = max(a.lanes, b.lanes)
            is_as_wide = mask_dtype(a.dtype) is mask_dtype(then.dtype)
            has_masks = lanes > 1 and self.dialect.vectors.has_operators
            if has_masks and is_as_wide and a.dtype is not DType.BOOL:
                mask = operations.mask(condition.fn, (a, b), lanes)
                return operations.chosen(
                    mask, operations.spread(first, lanes), operations.spread(second, lanes)
                )
        return operations.choose(self._value(condition), first, second)


def stored_as(dtype: DType) -> DType:
    """The integer type of elements in memory that are computed in another form."""
    return DType.U8 if dtype is DType.BOOL else DType.U16


def _is_multiple(offset: Linear, lanes: int) -> bool:
    """Whether an offset is a multiple of the lanes for all values of its names."""
    return offset.const % lanes == 0 and all(factor % lanes == 0 for _, factor in offset.terms)


def _shared(value: expr.Value) -> frozenset[int]:
    """The operations that occur more than once in a value."""
    seen: set[int] = set()
    twice: set[int] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, expr.Const):
            continue
        if id(part) in seen:
            twice.add(id(part))
            continue
        seen.add(id(part))
        waiting += expr.children(part)
    return frozenset(twice)
