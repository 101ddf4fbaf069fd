"""Selection of parents, and of the candidates that are measured."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.tuning.population.population import Keys, Population

Numbers = NDArray[np.int64]


def draw_parents(
    scores: NDArray[np.float64], count: int, pressure: float, random: Generator
) -> Numbers:
    """Numbers of candidates, drawn in proportion to how they rank.

    pressure   the best is drawn exp(pressure) times as often as the worst

    Ranks, not scores: models differ in what a difference of scores means, and a model that is
    fitted anew changes it.
    """
    ranks = np.empty(len(scores), np.float64)
    ranks[np.argsort(-scores, kind="stable")] = np.linspace(0.0, 1.0, len(scores))
    chances = np.exp(-pressure * ranks)
    chances[~np.isfinite(scores)] = 0.0
    total = chances.sum()
    if not total:
        return random.integers(0, len(scores), count)
    return random.choice(len(scores), size=count, p=chances / total)


def find_new(population: Population, seen: Keys) -> Population:
    """The candidates whose keys are not in `seen`, each once."""
    once = population.take(population.first_of_each())
    return once.take(~np.isin(once.keys, seen))


def likeness(population: Population, one: int) -> NDArray[np.float64]:
    """How similar each is to one of them: the share of equal choices, 0 in other sketches."""
    is_kin = population.sketch == population.sketch[one]
    alike: NDArray[np.float64] = (population.genes == population.genes[one]).mean(axis=1)
    alike[~is_kin] = 0.0
    return alike


def pick_diverse(
    population: Population, scores: NDArray[np.float64], count: int, variety: float
) -> Numbers:
    """The numbers of some candidates with high scores that are unlike each other, best first.

    variety   how many ranks, as a share of all, a candidate loses that is like one picked before

    Greedy: each takes the best of rank and unlikeness to all that were picked.
    """
    ranks = np.empty(len(scores), np.float64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores)) / max(len(scores), 1)
    likest = np.zeros(len(scores))
    picked: list[int] = []
    for _ in range(min(count, len(scores))):
        worth = ranks + variety * likest**4
        worth[picked] = np.inf
        one = int(np.argmin(worth))
        picked.append(one)
        likest = np.maximum(likest, likeness(population, one))
    return np.array(picked, np.int64)
