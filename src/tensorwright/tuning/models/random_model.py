"""A model without knowledge: the baseline that every other must beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorwright.tuning.models.protocol import Features, Sample, Scores

_MIX = np.uint64(0x9E3779B97F4A7C15)


class RandomModel:
    """Scores in 0..1 that depend on a program's features and the seed, and on nothing else."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        flat = np.ascontiguousarray(features, np.float32).reshape(
            len(features), features[:1].size or 1
        )
        words = flat.view(np.uint32).astype(np.uint64)
        random_source = np.random.Generator(np.random.SFC64(self._seed))
        odd = random_source.integers(0, 1 << 63, words.shape[1], np.uint64) * np.uint64(2)
        mixed = words @ (odd + np.uint64(1))  # a multiply-shift hash, modulo 2^64
        mixed = (mixed ^ (mixed >> np.uint64(31))) * _MIX
        scores: Scores = (mixed >> np.uint64(11)) / float(1 << 53)
        return scores

    def observe(self, samples: Sequence[Sample]) -> None:
        """Nothing is learned."""

    def update(self) -> bool:
        """Nothing changes."""
        return False
