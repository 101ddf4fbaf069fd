"""How far the answers of two runtimes are apart."""

from __future__ import annotations

import math

import numpy as np

from tensorwright.peers.process.protocol import Arrays


def max_rel_error(ours: Arrays, theirs: Arrays) -> float:
    """The largest difference of an element, over the largest element of that output of theirs.

    The worst output counts. Infinite where a name or shape differs, where whole numbers differ, or
    where one holds a number that is not finite and the other does not hold the same.
    """
    if set(ours) != set(theirs):
        return math.inf
    errors = [_compare(ours[name], theirs[name]) for name in theirs]
    return max(errors, default=0.0)


def _compare(ours: np.ndarray, theirs: np.ndarray) -> float:
    if ours.shape != theirs.shape:
        return math.inf
    if not (np.issubdtype(ours.dtype, np.floating) and np.issubdtype(theirs.dtype, np.floating)):
        return 0.0 if np.array_equal(ours, theirs) else math.inf
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)):
        return math.inf
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    difference = float(np.max(np.abs(a[finite] - b[finite]), initial=0.0))
    largest = float(np.max(np.abs(b[finite]), initial=0.0))
    if difference == 0.0:
        return 0.0
    return difference / largest if largest else math.inf
