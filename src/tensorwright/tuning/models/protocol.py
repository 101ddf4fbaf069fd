"""The protocol of a cost model: it ranks programs by their features, and learns from measured ones.

A model sees features only. Their length does not depend on the operator, so one model learns from
all workloads.

Settings of learned models: those of all, and those of trees.

Samples as arrays, for losses and trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Features: TypeAlias = NDArray[np.float32]
"""Of one program (statements, features) or of many (programs, statements, features)."""
Scores: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A measured program.

    workload     key of its workload: only programs of one workload are compared
    features     (statements, features)
    time_s       seconds per call
    is_censored  it was dropped early, as clearly slower than the best: the time is a lower bound
    """

    workload: str
    features: Features
    time_s: float
    is_censored: bool = False


class CostModel(Protocol):
    """Ranks programs. Equal calls in equal order give equal scores. It learns nothing by default.

    Threads: a model serves one search at a time. `observe` and `update` come between rounds.
    """

    def predict(self, features: Features) -> Scores:
        """A score for each program, higher is better, comparable within one workload.

        Shapes:  features (programs, statements, features) -> (programs,)
        """

    def observe(self, samples: Sequence[Sample]) -> None:
        """Take in measured programs. Failed ones are not samples."""
        return

    def update(self) -> bool:
        """Learn from what was observed, if it is worth the time; whether scores have changed."""
        return False


TREES_MODULE = "tensorwright.tuning.models.trees.lightgbm_trees"


class LossKind(StrEnum):
    """The loss of a model: of throughput, of the order of pairs, or of the order of the fastest."""

    SQUARES = "squares"
    PAIRS = "pairs"
    LAMBDARANK = "lambdarank"


class FitSettings(Protocol):
    """How a learned model is fitted.

    module    whose `fit` fits it, imported by name when something is fitted
    missing   what is told where its library cannot be loaded
    reads     the features that it needs; any if ""
    """

    module: ClassVar[str]
    missing: ClassVar[str]
    reads: ClassVar[str]

    @property
    def loss(self) -> LossKind:
        """The loss of the training."""

    @property
    def seed(self) -> int:
        """The seed of every random choice."""


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """How trees are grown, whatever they are trained for.

    rounds, leaves      how many trees, and leaves of each
    bins                the different values of a feature that are distinguished
    least_rows, l2      what keeps leaves from following noise
    feature_share       the share of the features that each tree may use
    """

    rounds: int = 120
    leaves: int = 31
    learning_rate: float = 0.2
    bins: int = 127
    least_rows: int = 4
    l2: float = 0.5
    feature_share: float = 0.7
    seed: int = 0


@dataclass(frozen=True, slots=True)
class BoostedSettings(GrowthSettings):
    """The settings of a session's trees; each node, too, may use a share of the features.

    least_hessian   as `least_rows`, in hessian of the loss
    """

    loss: LossKind = LossKind.PAIRS
    least_hessian: float = 0.01

    module: ClassVar[str] = TREES_MODULE
    missing: ClassVar[str] = (
        "the cost model learns nothing, because LightGBM cannot be loaded ({error}): "
        "candidates are judged by the analytic model alone; install lightgbm and libgomp"
    )
    reads: ClassVar[str] = ""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Programs and the rows of their statements, those of one workload next to each other.

    rows         (rows, features), a row for each statement, those of a program in order
    counts       (programs,): how many statements each has; its rows follow those of the one before
    groups       (programs,): the number of its workload, ascending
    throughput   (programs,): the best time of the workload over its own, in 0..1
    is_censored  (programs,): its throughput is at most that
    """

    rows: Features
    counts: NDArray[np.int64]
    groups: NDArray[np.int64]
    throughput: NDArray[np.float64]
    is_censored: NDArray[np.bool_]

    @property
    def owner(self) -> NDArray[np.int64]:
        """(rows,): the number of the program that a row belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(rows,) -> (programs,): the sum over each program's statements."""
        return add_up(self.owner, values, len(self.counts))


def add_up(
    places: NDArray[np.int64], values: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """The sums of the values at each of the positions 0..count-1."""
    return np.bincount(places, values, count).astype(np.float64, copy=False)


def training_set(samples: Sequence[Sample]) -> TrainingSet:
    """Put samples into arrays, workloads in the order of their first sample.

    The best time of a workload is that of its fastest program that was measured completely; if all
    are censored, the least bound.
    """
    numbers: dict[str, int] = {}
    for sample in samples:
        numbers.setdefault(sample.workload, len(numbers))
    groups = np.array([numbers[sample.workload] for sample in samples], np.int64)
    order = np.argsort(groups, kind="stable")
    placed = [samples[n] for n in order]
    times = np.array([sample.time_s for sample in placed], np.float64)
    is_censored = np.array([sample.is_censored for sample in placed], np.bool_)
    return TrainingSet(
        np.concatenate([sample.features for sample in placed], dtype=np.float32),
        np.array([len(sample.features) for sample in placed], np.int64),
        groups[order],
        _best_times(groups[order], times, is_censored) / times,
        is_censored,
    )


def _best_times(
    groups: NDArray[np.int64], times: NDArray[np.float64], is_censored: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(programs,): the best time of each program's workload."""
    count = int(groups.max()) + 1
    measured = np.full(count, np.inf)
    np.minimum.at(measured, groups[~is_censored], times[~is_censored])
    bound = np.full(count, np.inf)
    np.minimum.at(bound, groups, times)
    best = np.where(np.isfinite(measured), measured, bound)
    bests: NDArray[np.float64] = np.minimum(best[groups], times)
    return bests
