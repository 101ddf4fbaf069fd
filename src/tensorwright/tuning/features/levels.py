"""Features of a statement that are curves over its loops, from what is known at each of them.

A table (5, levels, statements, n) holds the fields of `Level`, all loops first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import LINE_BYTES
from tensorwright.tuning.features.names import CACHE_BYTES, CURVE_POINTS, REGISTER_BYTES


def intensity_curves(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """log2 of operations per byte, where the inner loops run a tenth, two tenths, ... of the
    logarithm of all operations; between loops it is interpolated.

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
    found = np.repeat(height[0][:, None], CURVE_POINTS, axis=1)
    inside = np.empty_like(found)
    for start, step, slope in zip(at[:-1], steps, slopes, strict=True):
        np.subtract(wanted, start[:, None], out=inside)
        np.minimum(inside, step[:, None], out=inside)
        np.maximum(inside, 0, out=inside)
        inside *= slope[:, None]
        found += inside
    return found


def moved_beyond(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """log2 of the loads and lines (plus one) that come from beyond registers, and from beyond a
    cache, of each size.

    What the loops inside touch stays from one of their runs to the next if there is room for it:
    then what the loop around them touches comes once, in each of its runs.  So a strided access
    finds its line again where the loop beside it goes on in that line before the line is gone.

    Shapes:  table (5, levels, statements, n) -> (statements, 8, n)
    """
    _, nbytes, lines, loads, moved = table
    parts = [
        _moved(nbytes, loads, REGISTER_BYTES),
        _moved(lines * LINE_BYTES, moved, CACHE_BYTES),
    ]
    found = np.concatenate(parts, axis=1)
    return np.log2(found + 1, out=found)


def _moved(
    needed: NDArray[np.float32], moved: NDArray[np.float32], sizes: tuple[int, ...]
) -> NDArray[np.float32]:
    """What moves (statements, sizes, n), from what the loops inside need (levels, statements, n),
    and what moves if that just has no room.
    """
    rooms = np.array(sizes, np.float32)[:, None]
    found = np.zeros((needed.shape[1], len(sizes), needed.shape[2]), np.float32)
    for own, own_moved in zip(needed, moved, strict=True):
        np.copyto(found, own_moved[:, None], where=own[:, None] > rooms)
    return found
