"""Samples as arrays, for losses and trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.models.protocol import Features, Sample


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
