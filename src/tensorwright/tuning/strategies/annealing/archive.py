"""The best programs that chains have seen, each once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.population.population import Keys, Population

Scores = NDArray[np.float64]


class Archive:
    """Grows step by step; mutable.

    excluded   ascending keys of programs that are on record already
    """

    def __init__(self, width: int, size: int, excluded: Keys) -> None:
        self.population = Population.empty(width)
        self.scores: Scores = np.empty(0)
        self._keys: Keys = np.empty(0, np.uint64)
        self._size = size
        self._excluded = excluded

    def add(self, population: Population, scores: Scores) -> bool:
        """Add the programs that are among the best; whether there are any."""
        is_good = np.isfinite(scores)
        if len(self.scores) >= self._size:
            is_good &= scores > self.scores[-1]
        if not is_good.any():
            return False
        good, own = population.take(is_good), scores[is_good]
        keys = good.keys
        _, first = np.unique(keys, return_index=True)
        is_new = np.zeros(len(keys), np.bool_)
        is_new[first] = True
        is_new &= ~np.isin(keys, self._keys) & ~np.isin(keys, self._excluded)
        if not is_new.any():
            return False
        both = Population.joined([self.population, good.take(is_new)])
        joined = np.concatenate([self.scores, own[is_new]])
        order = np.argsort(-joined, kind="stable")[: self._size]
        self.population, self.scores = both.take(order), joined[order]
        self._keys = np.concatenate([self._keys, keys[is_new]])[order]
        return True
