"""The weight of a prior, chosen by programs that a fit has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.models.losses import Column, ScoreBy
from tensorwright.tuning.models.protocol import TrainingSet
from tensorwright_lab.cost_models.accuracy import count_pairs


def part_of(data: TrainingSet, is_kept: NDArray[np.bool_]) -> TrainingSet:
    """Some of the programs; the throughput of each stays what it is among all."""
    _, groups = np.unique(data.groups[is_kept], return_inverse=True)
    return TrainingSet(
        data.rows[is_kept[data.owner]],
        data.counts[is_kept],
        groups.astype(np.int64, copy=False),
        data.throughput[is_kept],
        data.is_censored[is_kept],
    )


_WEIGHTS = (1.0, 0.5, 0.0)
_FOLDS = 3


def held_out_weight(data: TrainingSet, beliefs: Column, score_by: ScoreBy) -> float:
    """The weight of a prior that does best on programs which a fit has not seen.

    beliefs   the prior's scores of all programs (programs,)
    """
    folds = np.random.default_rng(len(data.counts)).permutation(len(data.counts)) % _FOLDS
    right = np.zeros(len(_WEIGHTS))
    for fold in range(_FOLDS):
        is_train = folds != fold
        train, test = part_of(data, is_train), part_of(data, ~is_train)
        for index, weight in enumerate(_WEIGHTS):
            scores = score_by(train, weight * beliefs[is_train], test)
            right[index] += _pairs_right(scores + weight * beliefs[~is_train], test)
    return _WEIGHTS[int(np.argmax(right))]


def _pairs_right(scores: Column, data: TrainingSet) -> float:
    """How many pairs of equal workloads are in order; censored programs are left out."""
    right = 0.0
    for group in np.unique(data.groups):
        own = (data.groups == group) & ~data.is_censored
        if own.sum() > 1:
            right += count_pairs(scores[own], 1.0 / data.throughput[own])[0]
    return right
