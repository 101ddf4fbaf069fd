"""The differences of the outputs of two runtimes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from tensorwright.peers.process.protocol import Arrays

Steps: TypeAlias = Mapping[str, float]
NO_STEPS: Steps = MappingProxyType({})


def max_rel_error(ours: Arrays, theirs: Arrays, steps: Steps = NO_STEPS) -> float:
    """The largest difference of an element, over the largest element of that output of `theirs`.

    steps   outputs that `max_steps` judges; they do not count here
    The worst output counts. It is infinite if a name, a shape or a whole number differs, or if a
    number that is not finite differs.
    """
    if set(ours) != set(theirs):
        return math.inf
    errors = [_compare(ours[name], theirs[name]) for name in theirs if name not in steps]
    return max(errors, default=0.0)


def max_steps(ours: Arrays, theirs: Arrays, steps: Steps) -> float | None:
    """The largest difference of an element of a quantised output, in steps of that output.

    steps   the distance of two neighbouring numbers of each such output, by its name
    None if there is no such output; infinite if a shape differs.
    """
    errors = []
    for name, step in steps.items():
        a, b = (np.asarray(each.get(name, np.nan), np.float64) for each in (ours, theirs))
        is_near = a.shape == b.shape and np.isfinite(a).all() and np.isfinite(b).all()
        difference = float(np.max(np.abs(a - b), initial=0.0)) if is_near else math.inf
        errors.append(difference / step)
    return max(errors, default=None)


def describe_error(relative: float | None, steps: float | None) -> str:
    """The errors as a text for tables: in steps for quantised outputs, relative for others."""
    parts = [] if relative is None or (not relative and steps is not None) else [f"{relative:.1e}"]
    if steps is not None:
        parts.append(f"{steps:.2g} step{'s' * (round(steps, 2) != 1)}")
    return ", ".join(parts) or "-"


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
