"""Memory for tensors: what kernels can read, and arrays from the caller's values."""

from __future__ import annotations

import ctypes
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import (
    ALIGNMENT,
    HUGE_PAGE_BYTES,
    Array,
    DType,
    Maker,
    empty,
    empty_bytes,
)

__all__ = [
    "ALIGNMENT",
    "HUGE_PAGE_BYTES",
    "Maker",
    "address_of",
    "byte_view",
    "empty",
    "empty_bytes",
    "is_kernel_ready",
    "kernel_ready",
    "ready_address",
    "to_array",
]


def address_of(array: Array) -> int:
    """The address of the first element."""
    flags = array.flags
    if flags.writeable and flags.c_contiguous and array.size and array.dtype.isbuiltin == 1:
        # A third of the time below; an array is a buffer, though its type does not say so.
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    return array.ctypes.data


def is_kernel_ready(array: Array) -> bool:
    """Whether a kernel may read the array in place: dense, row-major, native, on 64 bytes."""
    return ready_address(array) is not None


def ready_address(array: Array) -> int | None:
    """The address of an array that a kernel may read in place; None for others."""
    if not array.flags.c_contiguous or not array.dtype.isnative:
        return None
    address = address_of(array)
    return address if address % ALIGNMENT == 0 or array.size == 0 else None


def kernel_ready(array: Array) -> Array:
    """The array itself if a kernel may read it in place, otherwise a copy."""
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
