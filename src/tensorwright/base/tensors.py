"""What every stage says of a tensor: its type, its arrays, what it is to the caller.

The element types of tensors.

bf16 has no NumPy type of its own; ml_dtypes, which the onnx package depends on, brings one. Where
it is not installed, arrays of bf16 have the type V2: two bytes without a meaning.

Memory: aligned allocation for tensors, how much there is, what cannot fit, what is kept; work
without collections of cycles.

Kernels get addresses that are multiples of 64 bytes, one cache line and the widest vector. NumPy
guarantees 16, so constants, outputs, arenas and copies of inputs are allocated here.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.util import find_spec
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base.errors import MachineError, UnsupportedError, UsageError, unknown_name

_BF16 = importlib.import_module("ml_dtypes").bfloat16 if find_spec("ml_dtypes") else "V2"


class DType(Enum):
    """An element type. `str(DType.F32) == "f32"`, and `DType.parse` is the inverse."""

    __hash__ = object.__hash__  # a member is one object; Enum hashes its name, each time in Python

    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type with the same bytes."""
        return _NUMPY[self]

    @property
    def size_bytes(self) -> int:
        """Bytes of one element; a bool takes one."""
        return _NUMPY[self].itemsize

    @property
    def is_float(self) -> bool:
        """True for f16, bf16, f32 and f64."""
        return self in _FLOATS

    @property
    def is_signed(self) -> bool:
        """True for floats and for signed integers."""
        return self.is_float or self.value.startswith("i")

    @property
    def is_int(self) -> bool:
        """True for signed and unsigned integers; a bool is not an integer."""
        return not self.is_float and self is not DType.BOOL

    @property
    def lowest(self) -> float | int | bool:
        """The value below all others: minus infinity for floats."""
        if self.is_float:
            return float("-inf")
        if self is DType.BOOL:
            return False
        return -(1 << (8 * self.size_bytes - 1)) if self.is_signed else 0

    @property
    def highest(self) -> float | int | bool:
        """The value above all others: infinity for floats."""
        if self.is_float:
            return float("inf")
        if self is DType.BOOL:
            return True
        return (1 << (8 * self.size_bytes - self.is_signed)) - 1

    @classmethod
    def parse(cls, text: str) -> DType:
        """Read a name such as "f32".

        Raises:  UsageError for any other text.
        """
        try:
            return cls(text)
        except ValueError:
            where, names = f"dtype {text!r}", (member.value for member in cls)
            raise unknown_name("base", where, "no such element type", text, names) from None

    @classmethod
    def from_numpy(cls, dtype: np.typing.DTypeLike) -> DType:
        """The element type of a NumPy dtype; byte order is not part of it.

        Raises:  UsageError for a type that tensors cannot have (complex, object, text, ...).
        """
        element_type = _FROM_NUMPY.get(np.dtype(dtype).newbyteorder("="))
        if element_type is None:
            raise UsageError(
                stage="base",
                where=f"NumPy type {np.dtype(dtype)}",
                reason="tensors cannot hold it",
                remedy="convert to one of " + ", ".join(member.value for member in cls),
            )
        return element_type

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"DType.{self.name}"


_NUMPY: dict[DType, np.dtype[np.generic]] = {
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(_BF16),
    DType.F32: np.dtype(np.float32),
    DType.F64: np.dtype(np.float64),
    DType.I8: np.dtype(np.int8),
    DType.I16: np.dtype(np.int16),
    DType.I32: np.dtype(np.int32),
    DType.I64: np.dtype(np.int64),
    DType.U8: np.dtype(np.uint8),
    DType.U16: np.dtype(np.uint16),
    DType.U32: np.dtype(np.uint32),
    DType.U64: np.dtype(np.uint64),
    DType.BOOL: np.dtype(np.bool_),
}
_FROM_NUMPY = {dtype: member for member, dtype in _NUMPY.items()}
_FLOATS = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64})


class OpenSize:
    """A size that is not a number before the network runs.

    Base of the index expressions of `tensorwright.expr`, which say what it is and have arithmetic.
    """

    __slots__ = ()

    @property
    def is_size(self) -> bool:
        """Whether it consists of named sizes and numbers alone."""
        return True


class UndecidedError(UnsupportedError):
    """A question whose answer depends on a named size. Callers that can do without it catch this.

    needs   the bounds of a size for which the answer is yes, "sequence=..512"; "" where it is not
            one size that decides
    names   of the sizes on which the answer depends
    """

    field_names = (*UnsupportedError.field_names, "needs", "names")

    def __init__(
        self,
        *,
        stage: str,
        where: str,
        reason: str,
        remedy: str = "",
        operator: str = "",
        needs: str = "",
        names: tuple[str, ...] = (),
    ) -> None:
        super().__init__(stage=stage, where=where, reason=reason, remedy=remedy, operator=operator)
        self.needs = needs
        self.names = tuple(names)  # what has travelled as JSON is a list


Shape: TypeAlias = tuple[int | OpenSize, ...]
AttributeValue: TypeAlias = (
    int | float | str | bool | DType | OpenSize | tuple["AttributeValue", ...]
)
Attributes: TypeAlias = Mapping[str, AttributeValue]
Array: TypeAlias = NDArray[np.generic]
HostFunction: TypeAlias = Callable[[tuple[Array, ...], Attributes], tuple[Array, ...]]


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a tensor: element type and shape, which may have named sizes."""

    dtype: DType
    shape: Shape

    @property
    def is_open(self) -> bool:
        """Whether some extent is not a number yet."""
        return any(isinstance(extent, OpenSize) for extent in self.shape)

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape as numbers.

        Raises:  UndecidedError where an extent is a named size.
        """
        numbers = tuple(extent for extent in self.shape if isinstance(extent, int))
        if len(numbers) != len(self.shape):
            raise UndecidedError(
                stage="sizes",
                where=f"a tensor of type {self}",
                reason=f"the extents of {self} are not all numbers, which are needed here",
                remedy="give a number for each named size",
            )
        return numbers

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor."""
        return prod(self.extents) * self.dtype.size_bytes

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.shape))})"


class Role(Enum):
    """The role of a parameter for the caller."""

    INPUT = "in"
    CONSTANT = "const"  # known when the program is built: may be packed
    OUTPUT = "out"


ALIGNMENT = 64
HUGE_PAGE_BYTES = 2 << 20
# M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD of glibc's malloc.h: no array is mapped by itself
_KEPT = ((-4, 0), (-1, (1 << 31) - 1), (-2, 256 << 20))
_HUGE_FROM_BYTES = 4 << 20  # from this size on, NumPy asks Linux for huge pages


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes arrays of one type, as `empty` does, with sizes that are computed once."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    room_bytes: int
    unit: int

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: DType) -> Maker:
        """The maker of arrays of a type."""
        size = math.prod(shape) * dtype.size_bytes
        unit = HUGE_PAGE_BYTES if size >= _HUGE_FROM_BYTES else ALIGNMENT
        return cls(shape, dtype.numpy, size + unit, unit)

    def make(self) -> Array:
        """A fresh array."""
        memory = np.empty(self.room_bytes, np.uint8)
        start = -ctypes.addressof(ctypes.c_char.from_buffer(memory.data)) % self.unit
        return np.ndarray(self.shape, self.dtype, memory, start)


def empty(shape: tuple[int, ...], dtype: DType) -> Array:
    """A fresh, row-major, uninitialised array on a multiple of 64 bytes.

    Arrays of 4 MiB and more begin on a huge page, so that Linux can map them with few pages.
    """
    return Maker.of(shape, dtype).make()


def empty_bytes(size_bytes: int) -> Array:
    """A piece of uninitialised memory, as `empty`."""
    return empty((size_bytes,), DType.U8)


@cache
def keep_freed_memory() -> None:
    """Let this process keep the memory that it frees, for the next large arrays.

    glibc gives the pages of a large array back at once, and Linux clears each page of the next one:
    a fifth of the time of work that makes one large array after the other.  Other C libraries are
    left as they are.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        for option, value in _KEPT:
            set_option(option, value)


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the collection of cycles inside the block; reference counts still free objects.

    Expressions, states and loop nests have no cycles. Collections would walk through all of them
    and take a third of the time. Objects that are left after the block count as old: only a full
    collection looks at them. A block should take some seconds at most; blocks may be nested.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # somebody else's frozen objects stay frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def physical_memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_fits(sizes: Mapping[str, int], total_bytes: int | None = None) -> None:
    """Refuse tensors that are in memory at once and need more than there is.

    sizes         the bytes of each
    total_bytes   of all; less than their sum if some take the place of others
    Raises:  MachineError that names the largest.
    """
    total = sum(sizes.values()) if total_bytes is None else total_bytes
    there = physical_memory_bytes()
    if total <= there:
        return
    largest = max(sizes, key=lambda name: sizes[name])
    among = "" if len(sizes) == 1 else f", with what is needed beside it {_gibibytes(total)}"
    raise MachineError(
        stage="memory",
        where=f"tensor {largest}",
        reason=f"it takes {_gibibytes(sizes[largest])}{among}; "
        f"this machine has {_gibibytes(there)}",
        remedy="give the inputs smaller shapes, or compile on a machine with more memory",
    )


def _gibibytes(count: int) -> str:
    return f"{count / (1 << 30):,.1f} GiB"
