"""Features of a statement that are curves over its loops, from the fields of each level.

A table (5, levels, statements, n) holds the fields of `Level`, all loops first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import LINE_BYTES
from tensorwright.tuning.features.names import CACHE_BYTES, CURVE_POINTS, REGISTER_BYTES


def intensity_curves(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """log2 of operations per byte; at point k the inner loops run k tenths of the operations.

    Tenths are of the logarithm of all operations; between loops it is interpolated.

    Shapes:  table (5, levels, statements, n) -> (statements, 10, n)
    """
    logs = np.log2(table[:2, ::-1])
    at, height = logs[0], logs[0] - logs[1]
    steps = np.diff(at, axis=0)
    rises = np.diff(height, axis=0)
    flat = steps <= 0
    steps[flat] = 1
    rises[flat] = 0
    slopes = rises / steps
    shares = np.arange(1, CURVE_POINTS + 1, dtype=np.float32) / CURVE_POINTS
    wanted = at[-1][:, None] * shares[:, None]
    curves = np.repeat(height[0][:, None], CURVE_POINTS, axis=1)
    inside = np.empty_like(curves)
    for start, step, slope in zip(at[:-1], steps, slopes, strict=True):
        np.subtract(wanted, start[:, None], out=inside)
        np.minimum(inside, step[:, None], out=inside)
        np.maximum(inside, 0, out=inside)
        inside *= slope[:, None]
        curves += inside
    return curves


def moved_beyond(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """log2 of the loads and lines (plus one) from beyond registers, and from beyond each cache
    size.

    Data that inner loops touch stays from one of their runs to the next if there is room for it;
    then it moves once in each run of the loop around them.  So a strided access hits its line again
    if the loop beside it continues in that line before the line is evicted.

    Shapes:  table (5, levels, statements, n) -> (statements, 8, n)
    """
    _, nbytes, lines, loads, moved = table
    parts = [
        _moved(nbytes, loads, REGISTER_BYTES),
        _moved(lines * LINE_BYTES, moved, CACHE_BYTES),
    ]
    amounts = np.concatenate(parts, axis=1)
    return np.log2(amounts + 1, out=amounts)


def _moved(
    needed: NDArray[np.float32], moved: NDArray[np.float32], sizes: tuple[int, ...]
) -> NDArray[np.float32]:
    """The amounts that move (statements, sizes, n).

    needed   by the loops inside (levels, statements, n)
    moved    if there is no room for that
    """
    rooms = np.array(sizes, np.float32)[:, None]
    amounts = np.zeros((needed.shape[1], len(sizes), needed.shape[2]), np.float32)
    for own, own_moved in zip(needed, moved, strict=True):
        np.copyto(amounts, own_moved[:, None], where=own[:, None] > rooms)
    return amounts
