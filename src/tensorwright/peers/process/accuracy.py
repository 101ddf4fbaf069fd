"""How far the answers of runtimes are apart, and which of them are wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from tensorwright.peers.process.protocol import Arrays

Steps: TypeAlias = Mapping[str, float]
NO_STEPS: Steps = MappingProxyType({})
WRONG = 1e-3
WRONG_STEPS = 2.0
"""An answer further from the reference is wrong, by so much of the largest number, or by so many
steps of a quantised output: its runtime is in no race and no figure."""


@dataclass(frozen=True, slots=True)
class Apart:
    """How far an answer is from another one; `str` of it is as tables have it.

    relative   as of `max_rel_error`; None where there is no answer      steps   as of `max_steps`
    """

    relative: float | None
    steps: float | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether that is too far; without an answer nothing is."""
        is_far = self.relative is not None and not self.relative <= WRONG
        return is_far or not (self.steps or 0.0) <= WRONG_STEPS

    def __str__(self) -> str:
        return describe_error(self.relative, self.steps)


def apart(ours: Arrays, theirs: Arrays, steps: Steps = NO_STEPS) -> Apart:
    """How far one answer is from another."""
    return Apart(max_rel_error(ours, theirs, steps), max_steps(ours, theirs, steps))


def worst_of(errors: Sequence[Apart]) -> Apart:
    """The largest of each sort of error."""
    relative = [each.relative for each in errors if each.relative is not None]
    steps = [each.steps for each in errors if each.steps is not None]
    return Apart(max(relative, default=None), max(steps, default=None))


def choose_reference(answers: Mapping[str, Arrays], steps: Steps = NO_STEPS) -> str:
    """Which peer's answer all are compared with: the first that another peer agrees with.

    So one of three alone never decides that the others are wrong; where no two agree, the first
    does.  Ours has no voice: it is what is judged.  `answers` is in the order of trust, not empty.
    """
    for name, answer in answers.items():
        others = (each for other, each in answers.items() if other != name)
        if any(not apart(each, answer, steps).is_wrong for each in others):
            return name
    return next(iter(answers))


def wrong_text(name: str, error: Apart, errors: Mapping[str, Apart]) -> str:
    """What is said of a wrong answer.

    errors   those of all runtimes, the reference's among them
    """
    right = [other for other, each in errors.items() if not each.is_wrong]
    who = f"{', '.join(right)} agree" if len(right) > 1 else f"that of {right[0]} counts"
    return f"{name} answers wrongly: off by {error}; {who}"


def max_rel_error(ours: Arrays, theirs: Arrays, steps: Steps = NO_STEPS) -> float:
    """The largest difference of an element, over the largest element of that output of theirs.

    steps   outputs that `max_steps` judges; the others count here
    The worst output counts. Infinite where a name or shape differs, where whole numbers differ, or
    where one holds a number that is not finite and the other does not hold the same.
    """
    if set(ours) != set(theirs):
        return math.inf
    errors = [_compare(ours[name], theirs[name]) for name in theirs if name not in steps]
    return max(errors, default=0.0)


def max_steps(ours: Arrays, theirs: Arrays, steps: Steps) -> float | None:
    """The largest difference of an element of a quantised output, in its steps.

    steps   how far two neighbouring numbers of such an output are apart, by its name
    None where there is no such output; infinite where a shape differs.
    """
    errors = []
    for name, step in steps.items():
        a, b = (np.asarray(each.get(name, np.nan), np.float64) for each in (ours, theirs))
        is_near = a.shape == b.shape and np.isfinite(a).all() and np.isfinite(b).all()
        difference = float(np.max(np.abs(a - b), initial=0.0)) if is_near else math.inf
        errors.append(difference / step)
    return max(errors, default=None)


def describe_error(relative: float | None, steps: float | None) -> str:
    """Errors as tables have them: that of quantised outputs in steps, that of others relative."""
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
