"""Constants at another address in each call, as if other constants were read between two calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import LINE_BYTES, DType
from tensorwright.runtime import HOST, Device, Memory, empty

_LEAST_BYTES = 4096  # smaller constants do not move
_MOST_BYTES = 256 << 20
_MOST_ROWS = 4096
_TILE = 1 << 18  # elements that are drawn; the arena repeats them


def cold_table(
    arguments: NDArray[np.uint64],
    constants: Sequence[tuple[int, DType, tuple[int, ...]]],
    cold_bytes: int,
    device: Device = HOST,
) -> NDArray[np.uint64]:
    """The arguments of successive calls, one row each: (rows, arguments).

    arguments   addresses of the operands
    constants   for each constant its position among them, its type and its shape
    cold_bytes  the most memory for all copies; with room for less than two, or without large
                constants, there is one row

    Only floats move, because integers may be indices.
    """
    moving = [
        (position, dtype, _room(dtype, shape))
        for position, dtype, shape in constants
        if dtype.is_float and _room(dtype, shape) >= _LEAST_BYTES
    ]
    stride = sum(room for _, _, room in moving)
    span = min(cold_bytes, _MOST_BYTES)
    count = min(_MOST_ROWS, span // stride) if stride else 0
    if count < 2:
        return arguments[np.newaxis].copy()
    table = np.repeat(arguments[np.newaxis], count, axis=0)
    offset = 0
    steps = np.arange(count, dtype=np.uint64) * np.uint64(stride)
    for position, dtype, room in moving:
        start = _arena(dtype, span, device).address + offset
        table[:, position] = np.uint64(start) + steps
        offset += room
    return table


def _room(dtype: DType, shape: tuple[int, ...]) -> int:
    return -(-math.prod(shape) * dtype.size_bytes // LINE_BYTES) * LINE_BYTES


@lru_cache(maxsize=2)
def _arena(dtype: DType, size_bytes: int, device: Device) -> Memory:
    """Memory full of numbers in -1..1; cached, because filling it takes long."""
    count = size_bytes // dtype.size_bytes
    arena = empty((count,), dtype)
    source = np.random.Generator(np.random.SFC64(0))
    tile = (source.random(min(_TILE, count), np.float32) * 2 - 1).astype(dtype.numpy)
    for start in range(0, count, _TILE):
        arena[start : start + _TILE] = tile[: count - start]
    return device.memory_of(arena)
