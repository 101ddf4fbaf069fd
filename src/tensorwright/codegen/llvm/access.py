"""Single accesses to memory: scalar, contiguous, strided, gathered; masked where they must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.base import DType, InternalError, UnsupportedError
from tensorwright.codegen.analysis.indices import Linear, Terms
from tensorwright.codegen.llvm.indices import Indices
from tensorwright.codegen.llvm.text import Val, memory_element, memory_type, register_type
from tensorwright.machine_code import mangled, shuffle_text, splat_literal

LaneGroups: TypeAlias = tuple[tuple[Linear, dict[int, int]], ...]
"""Uniform offsets, each with the lanes that read behind it, and how many elements behind it each
reads; every lane is in one group.
"""


def grouped_lanes(offsets: Sequence[Linear], reach: int) -> LaneGroups:
    """The lanes that read at some offsets: each joins one that reads fewer elements before it than
    the reach.
    """
    groups: list[tuple[Linear, dict[int, int]]] = []
    for lane, offset in enumerate(offsets):
        for first, group in groups:
            behind = offset.const - first.const
            if 0 <= behind < reach and offset == first._replace(const=offset.const):
                group[lane] = behind
                break
        else:
            groups.append((offset, {lane: 0}))
    return tuple(groups)


_SMALLEST_VECTOR = 16  # bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """A buffer in memory; `private` lanes are interleaved if a vector loop allocates it."""

    pointer: str
    dtype: DType
    size: int
    align: int
    private: int = 1


class Accesses(Indices):
    """The instructions that read or write an element of a buffer in memory."""

    def is_safe(self, storage: Piece, offset: Linear, lanes: int = 0) -> bool:
        """Whether the access is certainly inside the buffer, even if the guard fails."""
        bounds = self.range_of(offset, lanes)
        return bounds is not None and bounds[0] >= 0 and bounds[1] < storage.size

    def padding(self, storage: Piece, offset: Linear) -> int:
        """The number of lanes that may be read; 0 if all may."""
        if not self.vector_terms(offset) and self.is_safe(storage, offset, self.lanes):
            return 0
        return self.active

    def pointer(self, storage: Piece, offset: Linear) -> str:
        """The address of a uniform offset: a pointer that copies share, and a constant."""
        function, base = self.function, storage.pointer
        size = storage.dtype.size_bytes
        for name, coefficient in self.outer_first(offset.terms):
            base = function.moved(base, name, coefficient * size)
        if offset.const:
            base = function.pure(f"getelementptr i8, ptr {base}, i64 {offset.const * size}", base)
        return base

    def _alignment(self, storage: Piece, offset: Linear, most: int) -> int:
        size = storage.dtype.size_bytes
        bits = offset.const * size | storage.align | most
        for _, coefficient in offset.terms:
            bits |= coefficient * size
        return bits & -bits

    def load_first(
        self, storage: Piece, offset: Linear, condition: Val, other: Val, depth: int
    ) -> str:
        """A scalar load, or another value if a condition fails: a masked load of one lane."""
        function = self.function
        lanes = _SMALLEST_VECTOR // storage.dtype.size_bytes
        element = memory_element(storage.dtype)
        mask = function.pure(
            f"insertelement <{lanes} x i1> zeroinitializer, i1 {condition.name}, i64 0",
            condition.name,
        )
        pointer = self._pointer_under(condition, storage, offset)
        others = splat_literal(element, other.name, lanes)
        call = self._masked(storage, pointer, mask, lanes, other=others)
        some = function.emit_at(depth, call)
        return function.pure(f"extractelement <{lanes} x {element}> {some}, i64 0", some)

    def _masked(
        self,
        storage: Piece,
        address: str,
        mask: str,
        lanes: int,
        *,
        align: int = 0,
        is_one_address: bool = True,
        stored: str = "",
        other: str = "zeroinitializer",
    ) -> str:
        """A load of the lanes of a mask, with `other` in the rest; with `stored`, a store of these
        lanes.

        From one address on, or at an address for each lane. If `align` is 0, it is that of an
        element.
        """
        element = memory_element(storage.dtype)
        kind = f"<{lanes} x {element}>"
        pointer, ending = ("ptr", "p0") if is_one_address else (f"<{lanes} x ptr>", f"v{lanes}p0")
        where = (
            (pointer, address),
            ("i32 immarg", str(align or storage.dtype.size_bytes)),
            (f"<{lanes} x i1>", mask),
        )
        ending = f"{mangled(element, lanes)}.{ending}"
        if stored:
            symbol = f"llvm.masked.{'store' if is_one_address else 'scatter'}.{ending}"
            return self.function.call_text("void", symbol, (kind, stored), *where)
        symbol = f"llvm.masked.{'load' if is_one_address else 'gather'}.{ending}"
        return self.function.call_text(kind, symbol, *where, (kind, other))

    def load_scalar(self, storage: Piece, offset: Linear, guard: Val | None, depth: int) -> str:
        """A scalar load; if its guard fails, it loads the first element of the buffer."""
        pointer = self._pointer_under(guard, storage, offset)
        kind = memory_element(storage.dtype)
        return self.function.emit_at(
            depth, f"load {kind}, ptr {pointer}, align {storage.dtype.size_bytes}"
        )

    def _pointer_under(self, guard: Val | None, storage: Piece, offset: Linear) -> str:
        """The address of a uniform offset; if a guard fails for all lanes, that of the buffer.

        Otherwise the address may lie on a page that is not mapped: a load without lanes then does
        not fault, but takes hundreds of cycles.
        """
        pointer = self.pointer(storage, offset)
        if guard is None:
            return pointer
        function, choice, base = self.function, guard.name, storage.pointer
        if guard.lanes > 1:
            kind = f"<{guard.lanes} x i1>"
            name = f"llvm.vector.reduce.or.v{guard.lanes}i1"
            choice = function.call(name, "i1", (kind, choice))
        return function.pure(
            f"select i1 {choice}, ptr {pointer}, ptr {base}", choice, pointer, base
        )

    def _mask(self, guard: Val | None, padded: int) -> Val | None:
        """The lanes to load."""
        kept_guard, kept_active = self.guard, self.active
        self.guard, self.active = guard, padded or self.lanes
        mask = self.lane_mask()
        self.guard, self.active = kept_guard, kept_active
        return mask

    def load_contiguous(
        self, storage: Piece, offset: Linear, guard: Val | None, padded: int, depth: int
    ) -> str:
        """Load adjacent elements: the lanes of the guard, of `padded` lanes if that is not 0."""
        pointer = self._pointer_under(guard, storage, Linear(offset.const, offset.terms))
        kind = memory_type(storage.dtype, self.lanes)
        align = self._alignment(storage, offset, self.lanes * storage.dtype.size_bytes)
        mask = self._mask(guard, padded)
        if mask is None:
            return self.function.emit_at(depth, f"load {kind}, ptr {pointer}, align {align}")
        call = self._masked(storage, pointer, mask.name, self.lanes, align=align)
        return self.function.emit_at(depth, call)

    def _addresses(self, storage: Piece, offset: Linear) -> str:
        """The address of each lane's element, as a vector of pointers."""
        varying = self.vector_terms(offset)
        base = self.pointer(storage, Linear(0, without(offset.terms, varying)))
        index, bits = self.vector(Linear(offset.const, varying, offset.step))
        element = memory_element(storage.dtype)
        return self.function.pure(
            f"getelementptr {element}, ptr {base}, <{self.lanes} x i{bits}> {index}", base, index
        )

    def gather(
        self, storage: Piece, offset: Linear, guard: Val | None, padded: int, depth: int
    ) -> str:
        """Load elements from anywhere, as `load_contiguous`."""
        if offset.step == 2 and not self.vector_terms(offset) and guard is None and not padded:
            return self._load_every_second(storage, offset, depth)
        if offset.step == -1 and not self.vector_terms(offset) and guard is None:
            return self._load_reversed(storage, offset, padded, depth)
        addresses = self._addresses(storage, offset)
        mask = self._every_lane(self._mask(guard, padded))
        call = self._masked(storage, addresses, mask, self.lanes, is_one_address=False)
        return self.function.emit_at(depth, call)

    def _every_lane(self, mask: Val | None) -> str:
        """The text of a mask; None is a mask of all lanes."""
        return mask.name if mask is not None else splat_literal("i1", "true", self.lanes)

    def load_groups(self, storage: Piece, groups: LaneGroups, depth: int) -> str:
        """Load the elements of each group of lanes at once, and put them into the group's lanes."""
        function, lanes = self.function, self.lanes
        element, kind = memory_element(storage.dtype), memory_type(storage.dtype, lanes)
        total = "poison"
        for offset, group in groups:
            width = max(group.values()) + 1
            if width == 1:
                one = self.load_scalar(storage, offset, None, depth)
                spread = function.splat_name(element, one, lanes)
            else:
                read, align = memory_type(storage.dtype, width), storage.dtype.size_bytes
                load = f"load {read}, ptr {self.pointer(storage, offset)}, align {align}"
                picked = [group.get(lane, 0) for lane in range(lanes)]
                several = function.emit_at(depth, load)
                spread = function.pure(shuffle_text(read, several, "poison", picked), several)
            if total == "poison":
                total = spread
                continue
            mask = ", ".join(f"i1 {str(lane in group).lower()}" for lane in range(lanes))
            text = f"select <{lanes} x i1> <{mask}>, {kind} {spread}, {kind} {total}"
            total = function.pure(text, spread, total)
        return total

    def _load_every_second(self, storage: Piece, offset: Linear, depth: int) -> str:
        """Two contiguous loads, the second ending at the last element wanted, and a shuffle."""
        lanes = self.lanes
        kind = memory_type(storage.dtype, lanes)
        halves = []
        for start in (0, lanes - 1):
            pointer = self.pointer(storage, Linear(offset.const + start, offset.terms))
            load = f"load {kind}, ptr {pointer}, align {storage.dtype.size_bytes}"
            halves.append(self.function.emit_at(depth, load))
        picked = [2 * k if 2 * k < lanes else lanes + 2 * k - (lanes - 1) for k in range(lanes)]
        return self.function.emit_at(depth, shuffle_text(kind, halves[0], halves[1], picked))

    def _load_reversed(self, storage: Piece, offset: Linear, padded: int, depth: int) -> str:
        """A contiguous load of the elements up to the first lane's, in reverse order."""
        count = padded or self.lanes
        first = Linear(offset.const - (count - 1), offset.terms, 1)
        raw = self.load_contiguous(storage, first, None, padded, depth)
        kind = memory_type(storage.dtype, self.lanes)
        picked = [max(count - 1 - lane, 0) for lane in range(self.lanes)]
        return self.function.emit_at(depth, shuffle_text(kind, raw, "poison", picked))

    def store_uniform(self, storage: Piece, offset: Linear, value: Val) -> None:
        """Store one element; all lanes have the same value."""
        if self.guard is not None:
            self.scatter(storage, offset, self.function.splat(value, self.lanes))
            return
        first = self.lanewise.part(value, 0)
        pointer = self.pointer(storage, offset)
        raw = self.to_memory(first, storage.dtype)
        kind = memory_element(storage.dtype)
        align = storage.dtype.size_bytes
        self.function.effect(f"store {kind} {raw}, ptr {pointer}, align {align}")

    def store_contiguous(self, storage: Piece, offset: Linear, value: Val) -> None:
        """Store neighbouring elements."""
        pointer = self.pointer(storage, Linear(offset.const, offset.terms))
        raw = self.to_memory(value, storage.dtype)
        kind = memory_type(storage.dtype, self.lanes)
        align = self._alignment(storage, offset, self.lanes * storage.dtype.size_bytes)
        mask = self.lane_mask()
        if mask is None:
            self.function.effect(f"store {kind} {raw}, ptr {pointer}, align {align}")
            return
        if self.guard is None and not self.target.has_masks:
            self._store_parts(storage, offset, raw)
            return
        call = self._masked(storage, pointer, mask.name, self.lanes, align=align, stored=raw)
        self.function.effect(call)

    def _store_parts(self, storage: Piece, offset: Linear, raw: str) -> None:
        """Store the real lanes as vectors of powers of two."""
        function, size = self.function, storage.dtype.size_bytes
        whole = memory_type(storage.dtype, self.lanes)
        start = 0
        for power in reversed(range(self.active.bit_length())):
            count = 1 << power
            if not self.active & count:
                continue
            kind = memory_type(storage.dtype, count)
            if count == 1:
                part = function.pure(f"extractelement {whole} {raw}, i64 {start}", raw)
            else:
                part = function.pure(
                    shuffle_text(whole, raw, "poison", range(start, start + count)), raw
                )
            pointer = self.pointer(storage, Linear(offset.const + start, offset.terms))
            function.effect(f"store {kind} {part}, ptr {pointer}, align {size}")
            start += count

    def scatter(self, storage: Piece, offset: Linear, value: Val) -> None:
        """Store elements anywhere."""
        addresses = self._addresses(storage, offset)
        if self.is_uniform(offset):
            addresses = self.function.splat_name("ptr", self.pointer(storage, offset), self.lanes)
        raw = self.to_memory(value, storage.dtype)
        mask = self._every_lane(self.lane_mask())
        call = self._masked(storage, addresses, mask, self.lanes, is_one_address=False, stored=raw)
        self.function.effect(call)

    def from_memory(self, raw: str, dtype: DType, lanes: int) -> Val:
        """From the form in memory to the form in registers."""
        function, stored = self.function, memory_type(dtype, lanes)
        if dtype is DType.BOOL:
            raw = function.pure(f"icmp ne {stored} {raw}, zeroinitializer", raw)
        elif dtype is DType.F16:
            self.require_half()
            raw = function.pure(f"fpext {stored} {raw} to {register_type(dtype, lanes)}", raw)
        elif dtype is DType.BF16 and lanes == _BYTES // 2 and "avx2" in self.target.instructions:
            raw = function.pure(f"bitcast {stored} {raw} to <{_BYTES} x i8>", raw)
            twice = tuple(range(_BYTES)) * 2  # a load of its own spreads them over a register
            raw = function.pure(shuffle_text(f"<{_BYTES} x i8>", raw, "poison", twice), raw)
            spread = f"<{2 * _BYTES} x i8>"
            name = "llvm.x86.avx2.pshuf.b"
            raw = function.emit(function.call_text(spread, name, (spread, raw), (spread, _UPPER)))
            raw = function.pure(f"bitcast {spread} {raw} to {register_type(dtype, lanes)}", raw)
        elif dtype is DType.BF16:
            wide = register_type(DType.I32, lanes)
            raw = function.pure(f"zext {stored} {raw} to {wide}", raw)
            raw = function.pure(f"shl {wide} {raw}, {splat_literal('i32', '16', lanes)}", raw)
            raw = function.pure(f"bitcast {wide} {raw} to {register_type(dtype, lanes)}", raw)
        return Val(raw, dtype, lanes)

    def to_memory(self, value: Val, dtype: DType) -> str:
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
        """Refuse f16 if converting it needs a library call."""
        if self.target.arch == "x86-64" and "f16c" not in self.target.instructions:
            raise UnsupportedError(
                stage="codegen",
                where=f"target {self.target}",
                reason="it has no instructions that convert f16",
                remedy="use f32, or a target with f16c",
                operator="cast f16",
            )


_BYTES = 16
_UPPER = f"<{', '.join(f'i8 -1, i8 -1, i8 {n}, i8 {n + 1}' for n in range(0, _BYTES, 2))}>"
"""The bytes of eight bf16 as the upper ones of eight f32: one instruction, a shift takes two."""


def without(terms: Terms, removed: Terms) -> Terms:
    """The terms that are not removed."""
    return tuple(term for term in terms if term not in removed) if removed else terms
