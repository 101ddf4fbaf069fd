"""Memory: aligned allocation for tensors, how much there is, what cannot fit, what is kept; work
without collections of cycles.

Kernels get addresses that are multiples of 64 bytes, one cache line and the widest vector. NumPy
guarantees 16, so constants, outputs, arenas and copies of inputs are allocated here.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np

from tensorwright.base.dtypes import DType
from tensorwright.base.errors import MachineError
from tensorwright.base.tensors import Array

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
