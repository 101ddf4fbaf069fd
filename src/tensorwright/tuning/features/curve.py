"""The arithmetic intensity of a statement, as a curve over the operations of its inner loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.features.names import CURVE_POINTS


def intensity_curves(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """log2 of operations per byte, where the inner loops run a tenth, two tenths, ... of the
    logarithm of all operations; between loops it is interpolated.

    Shapes:  table (2, levels, statements, n): operations and bytes of the inner loops, all loops
             first -> (statements, 10, n)
    """
    logs = np.log2(table[:, ::-1])
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
