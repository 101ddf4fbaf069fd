"""How far the answers of runtimes are apart, and which of them are wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tensorwright.peers.process.protocol import Arrays

WRONG = 1e-3
"""An answer further from the reference is wrong: its runtime is in no race and no figure."""


def is_wrong(error: float | None) -> bool:
    """Whether an error, as of `max_rel_error`, is too large; None is that of no answer."""
    return error is not None and not error <= WRONG


def choose_reference(answers: Mapping[str, Arrays]) -> str:
    """Whose answer the others are compared with: the first that another one agrees with.

    So one runtime alone never decides that all others are wrong; where no two agree, the first
    does. `answers` is in the order of trust, and not empty.
    """
    for name, answer in answers.items():
        others = (each for other, each in answers.items() if other != name)
        if any(not is_wrong(max_rel_error(each, answer)) for each in others):
            return name
    return next(iter(answers))


def wrong_text(name: str, error: float, errors: Mapping[str, float]) -> str:
    """What is said of a wrong answer.

    errors   those of all runtimes; that of the reference, the first with an error of 0, among them
    """
    right = [other for other, each in errors.items() if not is_wrong(each)]
    who = f"{', '.join(right)} agree" if len(right) > 1 else f"that of {right[0]} counts"
    return f"{name} answers wrongly: off by {error:.1e} of the largest number; {who}"


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
