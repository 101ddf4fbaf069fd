"""Loads and stores: scalar, contiguous, strided, gathered; masked where lanes must not be touched.

What a buffer is known to hold is remembered per scope, so the copies of an unrolled statement load
once what they share, and a stored value is used where it is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorwright.base import DType, InternalError, Target, UnsupportedError
from tensorwright.codegen.llvm.builder import (
    Function,
    Val,
    mangled,
    memory_element,
    memory_type,
    register_type,
    splat_literal,
)
from tensorwright.codegen.llvm.indices import Indices
from tensorwright.codegen.llvm.linear import Linear, Terms, combine, scaled
from tensorwright.expr import Index
from tensorwright.loop import Buffer

_MOST_HOISTED = 8  # loads that leave one loop: each holds a register all the way through it


@dataclass(frozen=True, slots=True)
class Piece:
    """A buffer in memory; `private` lanes are interleaved where a vector loop allocates it."""

    pointer: str
    dtype: DType
    size: int
    align: int
    private: int = 1


@dataclass(slots=True)
class Slots:
    """A register tile: one stack slot of the same width per accessed offset, to be promoted."""

    dtype: DType
    width: int
    private: int = 1
    pointers: dict[int, str] = field(default_factory=dict)


class Memory(Indices):
    """Access to the buffers that a function knows."""

    def __init__(self, function: Function, target: Target) -> None:
        super().__init__(function, target, self._element)
        self.storages: dict[str, Piece | Slots] = {}

    def load(self, buffer: Buffer, indices: tuple[Index, ...]) -> Val:
        """Read an element, or one for each lane."""
        storage = self._storage(buffer)
        place = self._place(storage, buffer, indices)
        if isinstance(storage, Slots):
            return self._load_slot(storage, buffer.name, place)
        guard = None if self.guard is None or self._is_safe(storage, place) else self.guard
        lanes = 1 if self.is_uniform(place) else self.lanes
        padded = self._padding(storage, place) if self.active < lanes else 0
        access = (place, lanes, guard and guard.name, padded)
        known = self.function.known(buffer.name, access)
        if known is not None:
            return known
        depth = self._load_depth(buffer.name, place, guard)
        if lanes == 1:
            raw = self._load_scalar(storage, place, guard, depth)
        elif place.step == 1 and not self.vector_terms(place):
            raw = self._load_contiguous(storage, place, guard, padded, depth)
        else:
            raw = self._gather(storage, place, guard, padded, depth)
        value = self._widened(raw, storage.dtype, lanes)
        self.function.remember(depth, buffer.name, access, value)
        return value

    def store(self, buffer: Buffer, indices: tuple[Index, ...], value: Val) -> None:
        """Write an element, or one for each lane that is real and passes the guard."""
        storage = self._storage(buffer)
        place = self._place(storage, buffer, indices)
        if isinstance(storage, Slots):
            self._store_slot(storage, buffer.name, place, value)
            return
        self.function.forget(buffer.name)
        guarded = self.guard is not None
        if self.is_uniform(place):
            self._store_uniform(storage, place, value)
            lanes = 1
        else:
            lanes = self.lanes
            value = self.function.splat(value, lanes)
            if place.step == 1 and not self.vector_terms(place):
                self._store_contiguous(storage, place, value)
            else:
                self._scatter(storage, place, value)
        if not guarded and self.active == self.lanes and value.lanes == lanes:
            access = (place, lanes, None, 0)
            self.function.remember(len(self.function.scopes) - 1, buffer.name, access, value)

    def address(self, buffer: Buffer, indices: tuple[Index, ...]) -> str:
        """The address of an element; of the first lane's where they differ."""
        storage = self._storage(buffer)
        place = self._place(storage, buffer, indices)
        if isinstance(storage, Slots):
            return self.slot(storage, place.const)
        varying = self.vector_terms(place)
        return self._pointer(storage, Linear(place.const, _without(place.terms, varying)))

    def slot(self, storage: Slots, offset: int) -> str:
        """The stack slot of an offset."""
        pointer = storage.pointers.get(offset)
        if pointer is None:
            kind = memory_type(storage.dtype, storage.width)
            pointer = self.function.alloca(kind, storage.dtype.size_bytes * storage.width)
            storage.pointers[offset] = pointer
        return pointer

    def _storage(self, buffer: Buffer) -> Piece | Slots:
        found = self.storages.get(buffer.name)
        if found is None:
            raise InternalError(
                stage="codegen", where=f"buffer {buffer.name}", reason="nothing allocates it"
            )
        return found

    def _place(self, storage: Piece | Slots, buffer: Buffer, indices: tuple[Index, ...]) -> Linear:
        place = self.offset(buffer, indices)
        if storage.private == 1:
            return place
        return combine(scaled(place, storage.private), Linear(0, (), 1))

    def _element(self, buffer: Buffer, indices: tuple[Index, ...]) -> Linear:
        value = self.load(buffer, indices)
        dtype = value.dtype
        if not dtype.is_int:
            raise InternalError(
                stage="codegen", where=f"index {buffer.name}", reason=f"{dtype} is no integer"
            )
        name = value.name
        if dtype.size_bytes < 8 and name.startswith("%"):
            kind = register_type(DType.I64, value.lanes)
            extend = "sext" if dtype.is_signed else "zext"
            source = register_type(dtype, value.lanes)
            name = self.function.pure(f"{extend} {source} {name} to {kind}", name)
        elif not name.startswith("%"):
            return Linear(int(name))
        return self.atom(name, None, varies=value.lanes > 1)

    def _padding(self, storage: Piece, place: Linear) -> int:
        """How many lanes may be read if not all, else 0."""
        if not self.vector_terms(place) and self._is_safe(storage, place, self.lanes):
            return 0
        return self.active

    def _is_safe(self, storage: Piece, place: Linear, lanes: int = 0) -> bool:
        """Whether the access is certainly inside the buffer, whatever the guard says."""
        bounds = self.range_of(place, lanes)
        return bounds is not None and bounds[0] >= 0 and bounds[1] < storage.size

    def _load_depth(self, buffer: str, place: Linear, guard: Val | None) -> int:
        """The scope in which a load may happen: further out than here if nothing forbids it."""
        function = self.function
        here = len(function.scopes) - 1
        depth = max((function.depth.get(name, 0) for name, _ in place.terms), default=0)
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

    def _pointer(self, storage: Piece, place: Linear) -> str:
        """The address of a uniform place: a base that copies share, and a constant."""
        function = self.function
        element = memory_element(storage.dtype)
        base = storage.pointer
        moving = self.sum_of(place.terms)
        if moving:
            base = function.pure(f"getelementptr {element}, ptr {base}, i64 {moving}", base, moving)
        if place.const:
            base = function.pure(f"getelementptr {element}, ptr {base}, i64 {place.const}", base)
        return base

    def _alignment(self, storage: Piece, place: Linear, most: int) -> int:
        size = storage.dtype.size_bytes
        bits = place.const * size | storage.align | most
        for _, coefficient in place.terms:
            bits |= coefficient * size
        return bits & -bits

    def _load_scalar(self, storage: Piece, place: Linear, guard: Val | None, depth: int) -> str:
        """A scalar load; where it is guarded, of the first element if the guard fails."""
        pointer = self._pointer(storage, place)
        function = self.function
        if guard is not None:
            choice = guard.name
            if guard.lanes > 1:
                kind = f"<{guard.lanes} x i1>"
                name = f"llvm.vector.reduce.or.v{guard.lanes}i1"
                choice = function.call(name, "i1", (kind, choice))
            base = storage.pointer
            pointer = function.pure(
                f"select i1 {choice}, ptr {pointer}, ptr {base}", choice, pointer, base
            )
        kind = memory_element(storage.dtype)
        return function.emit_at(
            depth, f"load {kind}, ptr {pointer}, align {storage.dtype.size_bytes}"
        )

    def _mask(self, guard: Val | None, padded: int) -> Val | None:
        """The lanes to load."""
        kept_guard, kept_active = self.guard, self.active
        self.guard, self.active = guard, padded or self.lanes
        mask = self.lane_mask()
        self.guard, self.active = kept_guard, kept_active
        return mask

    def _load_contiguous(
        self, storage: Piece, place: Linear, guard: Val | None, padded: int, depth: int
    ) -> str:
        pointer = self._pointer(storage, Linear(place.const, place.terms))
        kind = memory_type(storage.dtype, self.lanes)
        align = self._alignment(storage, place, self.lanes * storage.dtype.size_bytes)
        mask = self._mask(guard, padded)
        if mask is None:
            return self.function.emit_at(depth, f"load {kind}, ptr {pointer}, align {align}")
        name = f"llvm.masked.load.{mangled(memory_element(storage.dtype), self.lanes)}.p0"
        mask_kind = f"<{self.lanes} x i1>"
        self.function.module.declare(
            f"declare {kind} @{name}(ptr, i32 immarg, {mask_kind}, {kind})"
        )
        return self.function.emit_at(
            depth,
            f"call {kind} @{name}(ptr {pointer}, i32 {align}, {mask_kind} {mask.name}, "
            f"{kind} zeroinitializer)",
        )

    def _addresses(self, storage: Piece, place: Linear) -> str:
        """The address of each lane's element, as a vector of pointers."""
        varying = self.vector_terms(place)
        base = self._pointer(storage, Linear(0, _without(place.terms, varying)))
        index, bits = self.vector(Linear(place.const, varying, place.step))
        element = memory_element(storage.dtype)
        return self.function.pure(
            f"getelementptr {element}, ptr {base}, <{self.lanes} x i{bits}> {index}", base, index
        )

    def _gather(
        self, storage: Piece, place: Linear, guard: Val | None, padded: int, depth: int
    ) -> str:
        if place.step == 2 and not self.vector_terms(place) and guard is None and not padded:
            return self._load_every_second(storage, place, depth)
        addresses = self._addresses(storage, place)
        lanes = self.lanes
        kind = memory_type(storage.dtype, lanes)
        mask = self._mask(guard, padded)
        mask_name = mask.name if mask is not None else splat_literal("i1", "true", lanes)
        name = f"llvm.masked.gather.{mangled(memory_element(storage.dtype), lanes)}.v{lanes}p0"
        self.function.module.declare(
            f"declare {kind} @{name}(<{lanes} x ptr>, i32 immarg, <{lanes} x i1>, {kind})"
        )
        align = storage.dtype.size_bytes
        return self.function.emit_at(
            depth,
            f"call {kind} @{name}(<{lanes} x ptr> {addresses}, i32 {align}, "
            f"<{lanes} x i1> {mask_name}, {kind} zeroinitializer)",
        )

    def _load_every_second(self, storage: Piece, place: Linear, depth: int) -> str:
        """Two contiguous loads, the second ending at the last element wanted, and a shuffle."""
        lanes = self.lanes
        kind = memory_type(storage.dtype, lanes)
        halves = []
        for start in (0, lanes - 1):
            pointer = self._pointer(storage, Linear(place.const + start, place.terms))
            load = f"load {kind}, ptr {pointer}, align {storage.dtype.size_bytes}"
            halves.append(self.function.emit_at(depth, load))
        picked = [2 * k if 2 * k < lanes else lanes + 2 * k - (lanes - 1) for k in range(lanes)]
        order = ", ".join(f"i32 {k}" for k in picked)
        return self.function.emit_at(
            depth,
            f"shufflevector {kind} {halves[0]}, {kind} {halves[1]}, <{lanes} x i32> <{order}>",
        )

    def _store_uniform(self, storage: Piece, place: Linear, value: Val) -> None:
        if value.lanes > 1 or self.guard is not None:
            self._store_single_lane(storage, place, value)
            return
        pointer = self._pointer(storage, place)
        raw = self._narrowed(value, storage.dtype)
        kind = memory_element(storage.dtype)
        align = storage.dtype.size_bytes
        self.function.effect(f"store {kind} {raw}, ptr {pointer}, align {align}")

    def _store_single_lane(self, storage: Piece, place: Linear, value: Val) -> None:
        if self.guard is None:
            raise InternalError(
                stage="codegen",
                where=f"store to {storage.pointer}",
                reason="the lanes of a vector loop write one place",
                remedy="vectorize another loop, or split the reduction with rfactor first",
            )
        self._scatter(storage, place, self.function.splat(value, self.lanes))

    def _store_contiguous(self, storage: Piece, place: Linear, value: Val) -> None:
        pointer = self._pointer(storage, Linear(place.const, place.terms))
        raw = self._narrowed(value, storage.dtype)
        kind = memory_type(storage.dtype, self.lanes)
        align = self._alignment(storage, place, self.lanes * storage.dtype.size_bytes)
        mask = self.lane_mask()
        if mask is None:
            self.function.effect(f"store {kind} {raw}, ptr {pointer}, align {align}")
            return
        name = f"llvm.masked.store.{mangled(memory_element(storage.dtype), self.lanes)}.p0"
        mask_kind = f"<{self.lanes} x i1>"
        self.function.module.declare(f"declare void @{name}({kind}, ptr, i32 immarg, {mask_kind})")
        self.function.effect(
            f"call void @{name}({kind} {raw}, ptr {pointer}, i32 {align}, {mask_kind} {mask.name})"
        )

    def _scatter(self, storage: Piece, place: Linear, value: Val) -> None:
        addresses = self._addresses(storage, place)
        if self.is_uniform(place):
            addresses = self.function.splat_name("ptr", self._pointer(storage, place), self.lanes)
        raw = self._narrowed(value, storage.dtype)
        lanes = self.lanes
        kind = memory_type(storage.dtype, lanes)
        mask = self.lane_mask()
        mask_name = mask.name if mask is not None else splat_literal("i1", "true", lanes)
        name = f"llvm.masked.scatter.{mangled(memory_element(storage.dtype), lanes)}.v{lanes}p0"
        self.function.module.declare(
            f"declare void @{name}({kind}, <{lanes} x ptr>, i32 immarg, <{lanes} x i1>)"
        )
        self.function.effect(
            f"call void @{name}({kind} {raw}, <{lanes} x ptr> {addresses}, "
            f"i32 {storage.dtype.size_bytes}, <{lanes} x i1> {mask_name})"
        )

    def _load_slot(self, storage: Slots, buffer: str, place: Linear) -> Val:
        known = self.function.known(buffer, place.const)
        if known is not None:
            return known
        pointer = self.slot(storage, place.const)
        kind = memory_type(storage.dtype, storage.width)
        raw = self.function.emit(f"load {kind}, ptr {pointer}")
        value = self._widened(raw, storage.dtype, storage.width)
        here = len(self.function.scopes) - 1
        self.function.remember(here, buffer, place.const, value)
        return value

    def _store_slot(self, storage: Slots, buffer: str, place: Linear, value: Val) -> None:
        value = self.function.splat(value, storage.width)
        if self.guard is not None:
            old = self._load_slot(storage, buffer, place)
            value = self.chosen(self.guard, value, old)
        self.function.forget(buffer, place.const)
        raw = self._narrowed(value, storage.dtype)
        kind = memory_type(storage.dtype, storage.width)
        self.function.effect(f"store {kind} {raw}, ptr {self.slot(storage, place.const)}")
        here = len(self.function.scopes) - 1
        self.function.remember(here, buffer, place.const, value)

    def chosen(self, mask: Val, then: Val, otherwise: Val) -> Val:
        """`then` in the lanes of the mask, `otherwise` in the rest."""
        function = self.function
        lanes = max(mask.lanes, then.lanes, otherwise.lanes)
        a, b = function.splat(then, lanes), function.splat(otherwise, lanes)
        if a.name == b.name:
            return a
        kind = register_type(a.dtype, lanes)
        mask_kind = "i1" if mask.lanes == 1 else f"<{lanes} x i1>"
        text = f"select {mask_kind} {mask.name}, {kind} {a.name}, {kind} {b.name}"
        return Val(function.pure(text, mask.name, a.name, b.name), a.dtype, lanes)

    def _widened(self, raw: str, dtype: DType, lanes: int) -> Val:
        """From the form in memory to the form in registers."""
        function, stored = self.function, memory_type(dtype, lanes)
        if dtype is DType.BOOL:
            raw = function.pure(f"icmp ne {stored} {raw}, zeroinitializer", raw)
        elif dtype is DType.F16:
            self.require_half()
            raw = function.pure(f"fpext {stored} {raw} to {register_type(dtype, lanes)}", raw)
        elif dtype is DType.BF16:
            wide = register_type(DType.I32, lanes)
            raw = function.pure(f"zext {stored} {raw} to {wide}", raw)
            raw = function.pure(f"shl {wide} {raw}, {splat_literal('i32', '16', lanes)}", raw)
            raw = function.pure(f"bitcast {wide} {raw} to {register_type(dtype, lanes)}", raw)
        return Val(raw, dtype, lanes)

    def _narrowed(self, value: Val, dtype: DType) -> str:
        """From the form in registers to the form in memory."""
        function, stored = self.function, memory_type(dtype, value.lanes)
        held = register_type(dtype, value.lanes)
        if value.dtype is not dtype:
            raise InternalError(
                stage="codegen", where="store", reason=f"{value.dtype} into a buffer of {dtype}"
            )
        if dtype is DType.BOOL:
            return function.pure(f"zext {held} {value.name} to {stored}", value.name)
        if dtype is DType.F16:
            self.require_half()
            return function.pure(f"fptrunc {held} {value.name} to {stored}", value.name)
        if dtype is DType.BF16:
            wide = register_type(DType.I32, value.lanes)
            raw = function.pure(f"bitcast {held} {value.name} to {wide}", value.name)
            amount = splat_literal("i32", "16", value.lanes)
            raw = function.pure(f"lshr {wide} {raw}, {amount}", raw)
            return function.pure(f"trunc {wide} {raw} to {stored}", raw)
        return value.name

    def require_half(self) -> None:
        """Refuse f16 where converting it takes a library call."""
        if self.target.arch == "x86-64" and "f16c" not in self.target.features:
            raise UnsupportedError(
                stage="codegen",
                where=f"target {self.target}",
                reason="it has no instructions that convert f16",
                remedy="use f32, or a target with f16c",
                operator="cast f16",
            )


def _without(terms: Terms, removed: Terms) -> Terms:
    return tuple(term for term in terms if term not in removed) if removed else terms
