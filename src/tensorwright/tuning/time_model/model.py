"""The time model: the expected time of a program, and how uncertain it is, before it is measured.

    log2 seconds of a statement = that of the roofline + the trees' values for its row,
                                  or what its multiply-adds take at the peak, if that is more
    seconds of a program        = the sum over its statements
                                  + what its threads wait for lines of others (`shared_lines.py`)

Two forests read the same rows.  One predicts the median, the other the time that is exceeded once
in ten times (the upper estimate). Their distance is the uncertainty.  Among programs of equal
medians, the certain one is the better choice:

    score = median + caution * (upper - median)        in log2 of seconds, lower is better
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError
from tensorwright.machine import Machine
from tensorwright.tuning.models import Features
from tensorwright.tuning.models.trees.compact_trees import ARRAYS, CompactTrees
from tensorwright.tuning.models.trees.tree_walk import TreeWalk
from tensorwright.tuning.time_model.rows import (
    ROW_DIGEST,
    ROW_NAMES,
    log2_sum,
    program_scores,
    rows_of,
)
from tensorwright.tuning.time_model.trained_keys import TrainedKeys

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Policy:
    """How a schedule is chosen by what is predicted.

    caution            how much uncertainty counts against a program
    margin             the schedule by rule is left for one whose score is lower by more than so
                       much (log2)
    algorithm_margin   the same for a schedule by rule that computes by another algorithm
    roofline_margin    nor is it left for one that the roofline takes to be slower by more than so
                       much (log2): trees that have seen few programs of a sort are wrong where
                       all comes from memory; the roofline is, where loops share what it counts

    What is chosen among hundreds is overrated more often than what was measured to train: the
    numbers are from choices for fresh random networks (benchmarks/choice_margin.py).
    Where a roofline margin of 0.5 changes the choice for a fresh network, what is chosen takes 0.91
    (AVX-512) and 0.93 (AVX2) of the time that it takes without any.
    Other algorithms are priced with the sizes chosen by rule, a few schedules: of 80 that were
    expected to be better by 0.1 none was slower, and were the roofline asked they would gain less
    (the margin was set on the same 80).
    """

    caution: float = 0.5
    margin: float = 0.3
    algorithm_margin: float = 0.1
    roofline_margin: float = 0.5

    def __post_init__(self) -> None:
        for name in ("caution", "margin", "algorithm_margin", "roofline_margin"):
            if not 0.0 <= getattr(self, name) <= 10.0:
                raise RecordError(
                    stage="time model",
                    where=name,
                    reason=f"{getattr(self, name)} is not between 0 and 10",
                    remedy="train it again",
                )


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """For some programs: log2 of seconds, (programs,) each.

    upper      exceeded once in ten times; never below the median
    roofline   of the analytic model, which the trees correct
    """

    median: Seconds
    upper: Seconds
    roofline: Seconds

    def scores(self, caution: float) -> Seconds:
        """The scores for a choice: lower is better."""
        scores: Seconds = self.median + caution * (self.upper - self.median)
        return scores

    def of(self, number: int) -> Prediction:
        """That of one program."""
        one = slice(number, number + 1)
        return Prediction(self.median[one], self.upper[one], self.roofline[one])

    def later(self, seconds: float) -> Prediction:
        """The same programs, each slower by some seconds; the roofline stays."""
        if not seconds:
            return self
        more = np.log2(seconds)
        median, upper = (np.logaddexp2(each, more) for each in (self.median, self.upper))
        return Prediction(median, upper, self.roofline)


@dataclass(frozen=True, slots=True, eq=False)
class TimeModel:
    """Trained trees, and the policy of choosing by them.  Threads: any number may predict at once.

    statistics   of its training and accuracy, for people: plain data
    trained      the workloads that it was trained on; None if they are not recorded
    """

    median: CompactTrees
    upper: CompactTrees
    policy: Policy = field(default_factory=Policy)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    trained: TrainedKeys | None = None
    _walks: tuple[TreeWalk, TreeWalk] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for trees in (self.median, self.upper):
            if trees.columns != len(ROW_NAMES):
                raise RecordError(
                    stage="time model",
                    where="trees",
                    reason=f"their rows have {trees.columns} columns, not {len(ROW_NAMES)}",
                    remedy="train it again",
                )
        object.__setattr__(self, "_walks", (TreeWalk(self.median), TreeWalk(self.upper)))

    @property
    def digest(self) -> str:
        """A short text that differs from that of any other model, for the keys of caches."""
        digest = hashlib.sha256(repr((ROW_DIGEST, self.policy)).encode())
        for trees in (self.median, self.upper):
            for name in ARRAYS:
                digest.update(getattr(trees, name).tobytes())
        return digest.hexdigest()[:16]

    def predict(self, features: Features, machine: Machine) -> Prediction:
        """The times of programs.  Shapes:  features (programs, statements, features)."""
        given = rows_of(features, machine)
        median, upper = (
            program_scores(given.base, walk.sums(given.rows), given.floor) for walk in self._walks
        )
        return Prediction(median, np.maximum(upper, median), log2_sum(given.base))
