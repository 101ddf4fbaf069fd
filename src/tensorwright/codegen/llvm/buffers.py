"""Loads and stores: scalar, contiguous, strided, gathered; masked where lanes must not be touched.

Each scope remembers values that buffers hold there. So the copies of an unrolled statement load a
shared element once, and a stored value is not loaded again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorwright.base import CpuTarget, DType, InternalError
from tensorwright.codegen.analysis.indices import Linear, combine, scaled
from tensorwright.codegen.llvm.access import (
    Accesses,
    LaneGroups,
    Piece,
    grouped_lanes,
    without,
)
from tensorwright.codegen.llvm.text import Function, Val, memory_type, register_type, scalar_literal
from tensorwright.expr import Index, Value, has_element, loads_of
from tensorwright.loop import Buffer

_SLOT_ALIGN = 64
_MOST_HOISTED = 8  # loads moved out of one loop: each holds a register through the whole loop


@dataclass(slots=True)
class Slots:
    """A register tile: one stack slot of the same width per accessed offset, to be promoted."""

    dtype: DType
    width: int
    private: int = 1
    pointers: dict[int, str] = field(default_factory=dict)

    @property
    def align(self) -> int:
        """The alignment of each slot."""
        return min(_SLOT_ALIGN, self.dtype.size_bytes * self.width)


class Memory(Accesses):
    """Access to the buffers of a function."""

    def __init__(self, function: Function, target: CpuTarget) -> None:
        super().__init__(function, target)
        self.storages: dict[str, Piece | Slots] = {}
        self.read_by_lane: dict[str, int] = {}
        """Extents of the loops along which spread elements are taken from vectors."""

    def load(self, buffer: Buffer, indices: tuple[Index, ...]) -> Val:
        """Read an element, or one for each lane."""
        storage = self._storage(buffer)
        offset = self._element_offset(storage, buffer, indices)
        if isinstance(storage, Slots):
            return self._load_slot(storage, buffer.name, offset)
        guard = None if self.guard is None or self.is_safe(storage, offset) else self.guard
        lanes = 1 if self.is_uniform(offset) else self.lanes
        padded = self.padding(storage, offset) if self.active < lanes else 0
        access = (offset, lanes, guard and guard.name, padded)
        held = self.function.content(buffer.name, access)
        if held is not None:
            return held
        depth = self._load_depth(buffer.name, offset, guard)
        if lanes == 1 and (lane := self._load_lane(storage, buffer, indices, offset)) is not None:
            return lane
        if lanes == 1:
            raw = self.load_scalar(storage, offset, guard, depth)
        elif offset.step == 1 and not self.vector_terms(offset):
            raw = self.load_contiguous(storage, offset, guard, padded, depth)
        elif (groups := self._lane_groups(buffer, indices, offset, guard, padded)) is not None:
            raw = self.load_groups(storage, groups, self._group_depth(buffer.name, groups))
        else:
            raw = self.gather(storage, offset, guard, padded, depth)
        value = self.from_memory(raw, storage.dtype, lanes)
        self.function.remember(depth, buffer.name, access, value)
        return value

    def _load_lane(
        self, storage: Piece, buffer: Buffer, indices: tuple[Index, ...], offset: Linear
    ) -> Val | None:
        """An element, as a lane of the vector that the next steps of a loop read.

        None if no loop reads adjacent elements, and for last steps that do not fill a vector.
        """
        if self.lanes == 1 or storage.dtype not in (DType.F32, DType.F64):
            return None
        width = self.target.lanes(storage.dtype)
        for name, extent in self.read_by_lane.items():
            step = self.env[name]
            assert isinstance(step, int), "the loop is written out"
            first = step - step % width
            self.env[name] = step + 1
            is_beside = self.offset(buffer, indices) == offset._replace(const=offset.const + 1)
            self.env[name] = step
            start = offset._replace(const=offset.const - (step - first))
            if is_beside and first + width <= extent and self.is_safe(storage, start, width):
                return self.lanewise.part(
                    self._load_beside(storage, buffer, start, width), step - first
                )
        return None

    def _load_beside(self, storage: Piece, buffer: Buffer, start: Linear, width: int) -> Val:
        """Adjacent elements, the same for all lanes of the loop."""
        access = ("beside", start, width)
        held = self.function.content(buffer.name, access)
        if held is None:
            depth = self._load_depth(buffer.name, start, None)
            kind, align = memory_type(storage.dtype, width), storage.dtype.size_bytes
            pointer = self.pointer(storage, start)
            raw = self.function.emit_at(depth, f"load {kind}, ptr {pointer}, align {align}")
            held = Val(raw, storage.dtype, width)
            self.function.remember(depth, buffer.name, access, held)
        return held

    def _lane_groups(
        self,
        buffer: Buffer,
        indices: tuple[Index, ...],
        offset: Linear,
        guard: Val | None,
        padded: int,
    ) -> LaneGroups | None:
        """The few elements, or rows of elements, that the lanes read; None if they are many.

        Examples: 16 adjacent lanes of a row that is resized by 16 read two elements; those of two
        interleaved rows read eight elements of each. The offset of each lane is evaluated
        separately, as a scalar. Neighbouring reads share single elements, so these come first.
        """
        storage = self._storage(buffer)
        if guard is not None or padded or not self.vector_terms(offset):
            return None
        if storage.private != 1 or any(has_element(index) for index in indices):
            return None
        vectors = {
            name: value
            for name, value in self.env.items()
            if isinstance(value, Linear) and value.step
        }
        offsets = []
        for lane in range(self.lanes):
            for name, start in vectors.items():
                self.env[name] = Linear(start.const + start.step * lane, start.terms)
            offsets.append(self.offset(buffer, indices))
        self.env.update(vectors)
        for reach in (1, self.lanes):
            groups = grouped_lanes(offsets, reach)
            if len(groups) <= self.lanes // 2 + 1:
                return groups
        return None

    def _group_depth(self, buffer: str, groups: LaneGroups) -> int:
        """The scope in which the loads of all groups may happen."""
        return max(self._load_depth(buffer, shared, None) for shared, _ in groups)

    def load_or(
        self, buffer: Buffer, indices: tuple[Index, ...], condition: Val, constant: Val
    ) -> Val | None:
        """Read one element if a scalar condition holds, else a constant: a masked load.

        None if lanes differ, if the buffer is in registers, and under another guard.
        """
        storage = self._storage(buffer)
        offset = self._element_offset(storage, buffer, indices)
        if isinstance(storage, Slots) or self.guard is not None or not self.is_uniform(offset):
            return None
        access = (offset, 1, condition.name, constant.name)
        held = self.function.content(buffer.name, access)
        if held is None:
            depth = self._load_depth(buffer.name, offset, condition)
            raw = self.load_first(storage, offset, condition, constant, depth)
            held = Val(raw, storage.dtype)
            self.function.remember(depth, buffer.name, access, held)
        return held

    def store(self, buffer: Buffer, indices: tuple[Index, ...], value: Val, source: Value) -> None:
        """Write an element, or one for each lane that is real and passes the guard.

        Raises:  InternalError if lanes add into one element: `source`, the value, reads it.
        """
        storage = self._storage(buffer)
        offset = self._element_offset(storage, buffer, indices)
        if isinstance(storage, Slots):
            self._store_slot(storage, buffer.name, offset, value)
            return
        self.function.forget(buffer.name)
        guarded = self.guard is not None
        if self.is_uniform(offset):
            if self.lanes > 1:
                _check_reads_other(buffer, source)
            self.store_uniform(storage, offset, value)
            lanes = 1
        else:
            lanes = self.lanes
            value = self.function.splat(value, lanes)
            if offset.step == 1 and not self.vector_terms(offset):
                self.store_contiguous(storage, offset, value)
            else:
                self.scatter(storage, offset, value)
        if not guarded and self.active == self.lanes and value.lanes == lanes:
            access = (offset, lanes, None, 0)
            self.function.remember(len(self.function.scopes) - 1, buffer.name, access, value)

    def is_one_element(self, buffer: Buffer, indices: tuple[Index, ...]) -> bool:
        """Whether all lanes access the same element."""
        return self.is_uniform(self._element_offset(self._storage(buffer), buffer, indices))

    def address(self, buffer: Buffer, indices: tuple[Index, ...]) -> str:
        """The address of an element; if lanes differ, that of the first lane."""
        storage = self._storage(buffer)
        offset = self._element_offset(storage, buffer, indices)
        if isinstance(storage, Slots):
            return self.slot(storage, offset.const)
        varying = self.vector_terms(offset)
        return self.pointer(storage, Linear(offset.const, without(offset.terms, varying)))

    def slot(self, storage: Slots, offset: int) -> str:
        """The stack slot of an offset."""
        pointer = storage.pointers.get(offset)
        if pointer is None:
            kind = memory_type(storage.dtype, storage.width)
            pointer = self.function.alloca(kind, storage.align)
            storage.pointers[offset] = pointer
        return pointer

    def _storage(self, buffer: Buffer) -> Piece | Slots:
        storage = self.storages.get(buffer.name)
        if storage is None:
            raise InternalError(
                stage="codegen", where=f"buffer {buffer.name}", reason="nothing allocates it"
            )
        return storage

    def _element_offset(
        self, storage: Piece | Slots, buffer: Buffer, indices: tuple[Index, ...]
    ) -> Linear:
        offset = self.offset(buffer, indices)
        if storage.private == 1:
            return offset
        return combine(scaled(offset, storage.private), Linear(0, (), 1))

    def element(self, buffer: Buffer, indices: tuple[Index, ...]) -> Linear:
        """An element of an integer buffer, as a number."""
        value = self.load(buffer, indices)
        dtype = value.dtype
        if not dtype.is_int:
            raise InternalError(
                stage="codegen", where=f"index {buffer.name}", reason=f"{dtype} is not an integer"
            )
        number = scalar_literal(value)
        if number is not None:
            return Linear(int(number))
        name = value.name
        if dtype.size_bytes < 8:
            kind = register_type(DType.I64, value.lanes)
            extend = "sext" if dtype.is_signed else "zext"
            source = register_type(dtype, value.lanes)
            name = self.function.pure(f"{extend} {source} {name} to {kind}", name)
        return self.atom(name, None, varies=value.lanes > 1)

    def _load_depth(self, buffer: str, offset: Linear, guard: Val | None) -> int:
        """The scope in which a load may happen: the outermost that nothing forbids."""
        function = self.function
        here = len(function.scopes) - 1
        depth = max((function.depth.get(name, 0) for name, _ in offset.terms), default=0)
        if guard is not None:
            depth = max(depth, function.depth.get(guard.name, 0))
        storage = self.storages[buffer]
        if isinstance(storage, Piece):
            depth = max(depth, function.depth.get(storage.pointer, 0))
        for inner in range(here, depth, -1):
            scope = function.scopes[inner]
            if scope.conditional or buffer in scope.written or scope.hoisted_loads >= _MOST_HOISTED:
                return inner
        for scope in function.scopes[depth + 1 :]:
            scope.hoisted_loads += 1
        return depth

    def _load_slot(self, storage: Slots, buffer: str, offset: Linear) -> Val:
        is_part = not offset.step or self.lanes < storage.width
        lane = offset.const % storage.width if is_part else 0
        whole = self._load_whole(storage, buffer, offset.const - lane)
        if not is_part or storage.width == 1:
            return whole
        return self.lanewise.part(whole, lane, self.lanes if offset.step else 1)

    def _load_whole(self, storage: Slots, buffer: str, offset: int) -> Val:
        held = self.function.content(buffer, offset)
        if held is not None:
            return held
        kind = memory_type(storage.dtype, storage.width)
        pointer = self.slot(storage, offset)
        raw = self.function.emit(f"load {kind}, ptr {pointer}, align {storage.align}")
        value = self.from_memory(raw, storage.dtype, storage.width)
        self.function.remember(len(self.function.scopes) - 1, buffer, offset, value)
        return value

    def _store_slot(self, storage: Slots, buffer: str, offset: Linear, value: Val) -> None:
        lane = offset.const % storage.width if not offset.step else 0
        first = offset.const - lane
        if not offset.step:
            value = self.lanewise.part(value, 0)
        if offset.step or storage.width == 1:
            value = self.function.splat(value, storage.width)
        else:
            value = self._with_lane(self._load_whole(storage, buffer, first), lane, value)
        if self.guard is not None:
            value = self.chosen(self.guard, value, self._load_whole(storage, buffer, first))
        self.function.forget(buffer, first)
        raw = self.to_memory(value, storage.dtype)
        kind = memory_type(storage.dtype, storage.width)
        pointer = self.slot(storage, first)
        self.function.effect(f"store {kind} {raw}, ptr {pointer}, align {storage.align}")
        self.function.remember(len(self.function.scopes) - 1, buffer, first, value)

    def _with_lane(self, whole: Val, lane: int, value: Val) -> Val:
        kind, element = register_type(whole.dtype, whole.lanes), register_type(whole.dtype, 1)
        text = f"insertelement {kind} {whole.name}, {element} {value.name}, i64 {lane}"
        return whole._replace(name=self.function.pure(text, whole.name, value.name))

    def chosen(self, mask: Val, then: Val, otherwise: Val) -> Val:
        """`then` in the lanes of the mask, `otherwise` in the rest."""
        lanes = max(mask.lanes, then.lanes, otherwise.lanes)
        a, b = (self.function.splat(value, lanes) for value in (then, otherwise))
        if a.name == b.name:
            return a
        mask = self.function.splat(mask, lanes)  # LLVM would make a branch of a scalar one
        return self.lanewise.choose(mask, a, b)


def _check_reads_other(buffer: Buffer, source: Value) -> None:
    if any(load.source.name == buffer.name for load in loads_of(source)):
        raise InternalError(
            stage="codegen",
            where=f"store to {buffer.name}",
            reason="a vector loop carries a reduction",
            remedy="vectorize another loop, or split the reduction with rfactor first",
        )
