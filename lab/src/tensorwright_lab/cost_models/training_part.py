"""A part of the programs of a training set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.models.protocol import TrainingSet


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
