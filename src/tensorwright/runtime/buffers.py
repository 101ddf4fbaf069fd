"""Memory for tensors: aligned allocation, and arrays from the caller's values.

Kernels get addresses that are multiples of 64 bytes, one cache line and the widest vector. NumPy
guarantees 16, so outputs, arenas and copies of inputs are allocated here.
"""

from __future__ import annotations

import ctypes
import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import Array, DType

ALIGNMENT = 64
HUGE_PAGE_BYTES = 2 << 20
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


def address_of(array: Array) -> int:
    """The address of the first element."""
    flags = array.flags
    if flags.writeable and flags.c_contiguous and array.size and array.dtype.isbuiltin == 1:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))  # a third of the time below
    return array.ctypes.data


def is_kernel_ready(array: Array) -> bool:
    """Whether a kernel may read the array in place: dense, row-major, native, on 64 bytes."""
    return (
        array.flags.c_contiguous
        and array.dtype.isnative
        and (array.size == 0 or address_of(array) % ALIGNMENT == 0)
    )


def kernel_ready(array: Array) -> Array:
    """The array itself if a kernel may read it, otherwise a copy that it may read."""
    if is_kernel_ready(array):
        return array
    copy = empty(array.shape, DType.from_numpy(array.dtype))
    np.copyto(copy, array)
    return copy


def to_array(value: Any, dtype: DType) -> Array:
    """An array of the caller's value, without a copy if the bytes are accessible.

    It tries arrays, then DLPack (PyTorch, JAX, ...), then `__array__` and the buffer protocol.
    Numbers and lists of numbers have no element type, and get `dtype`.
    Raises:  the errors of the value's export: BufferError, TypeError, ValueError, RuntimeError,
             OverflowError.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, numbers.Number | list | tuple) and not isinstance(value, np.generic):
        return np.asarray(value, dtype.numpy)
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        exported: Array = np.from_dlpack(value)
        return exported
    return np.asarray(value)


def byte_view(array: Array) -> NDArray[np.uint8]:
    """The bytes of a dense array, as a flat view that shares its memory."""
    return array.reshape(-1).view(np.uint8)
