"""The choice of programs to measure, so that the programs of a plan take many decisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.population.population import Population
from tensorwright.tuning.population.space_tables import SpaceTables


def pick_covering(
    tables: SpaceTables,
    population: Population,
    scores: NDArray[np.float64],
    count: int,
    variety: float,
) -> NDArray[np.int64]:
    """The numbers of some candidates with high scores that take many decisions, in order.

    The objective is submodular: the sum of the scores, and for each choice the number of its rows
    that at least one of them takes.  The choice is greedy, which comes within 1 - 1/e of the best.

    variety   the gain of a decision that no other has, in the spread of the scores

    Source:   Chen et al., AutoTVM, NeurIPS 2018, section 4 (its equation for diversity).
    """
    rows = tables.base[population.sketch] + population.genes
    own = tables.slot[population.sketch] < tables.slots - 1
    sizes = np.maximum(own.sum(axis=1), 1)
    spread = float(np.std(scores)) if len(scores) else 0.0
    worth = scores / (spread or 1.0)
    is_covered = np.zeros(int(rows.max(initial=0)) + 1, np.bool_)
    picked: list[int] = []
    for _ in range(min(count, len(scores))):
        fresh = (~is_covered[rows] & own).sum(axis=1) / sizes
        gain = worth + variety * fresh
        gain[picked] = -np.inf
        one = int(np.argmax(gain))
        picked.append(one)
        is_covered[rows[one]] = True
    return np.array(picked, np.int64)
