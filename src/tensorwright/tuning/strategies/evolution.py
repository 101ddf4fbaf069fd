"""Evolution: generations of candidates, of which a cost model keeps the best.

The first generation are random programs and the best measured ones, their children are mutated or
crossed, and of all that were judged, the most promising that are unlike each other are proposed.

After Ansor (Zheng et al., OSDI 2020, section 5), with crossover, which its released code lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.tuning.population.population import (
    Population,
    draw_parents,
    find_new,
    pick_diverse,
)
from tensorwright.tuning.population.variation import cross, mutate
from tensorwright.tuning.strategies.guided import Explorer, Ground, GuidedOptions
from tensorwright.tuning.strategies.strategy import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionOptions(GuidedOptions):
    """The numbers of the search; the defaults are meant to be right.

    On eight made-up landscapes over the sketches of a 3x3 convolution, where the best structure is
    not the first, 256 trials ended 9 % above the optimum with restarts after 32 idle trials, 18 %
    after 48, 25 % without any; islands of 1 or 6 sketches, and other pressures, were no better.

    population      candidates of a generation         generations    beside the first
    cross_share     of the children that have two parents; the others are mutated
    keep_share      of each generation that goes on unchanged, the best
    pressure        the best is drawn exp(pressure) times as often as the worst as a parent
    variety         how much rank a proposal loses that is like another, see `pick_diverse`
    The others are those of every guided search.
    """

    population: int = 512
    generations: int = 3
    cross_share: float = 0.15
    keep_share: float = 0.1
    pressure: float = 5.0
    start_share: float = 1.0
    refine_share: float = 0.3
    stalled_share: float | None = 0.5

    def explorer(self) -> Explorer:
        """As `GuidedOptions.explorer`."""
        return _Generations(self)


@dataclass(frozen=True, slots=True)
class _Generations:
    """An `Explorer` without a state."""

    options: EvolutionOptions

    def explore(self, ground: Ground, random: Generator, count: int) -> Population:
        """The best of an evolution, unlike each other, best first."""
        judged, scores = self._evolve(ground, random)
        first = judged.first_of_each()
        judged, scores = judged.take(first), scores[first]
        is_new = ~np.isin(judged.keys, ground.history.keys) & np.isfinite(scores)
        judged, scores = judged.take(is_new), scores[is_new]
        return judged.take(pick_diverse(judged, scores, count, self.options.variety))

    def _evolve(self, ground: Ground, random: Generator) -> tuple[Population, Scores]:
        """All programs that were judged, over all generations."""
        options = self.options
        current = ground.start(options.population, random)
        current = current.take(current.first_of_each())
        judged, scores = [current], [ground.guide.scores(current)]
        for _ in range(options.generations if len(current) else 0):
            present = scores[-1]
            children = self._children(ground, judged[-1], present, random)
            children = children.take(np.isin(children.sketch, ground.allowed))
            children = find_new(children, np.sort(np.concatenate([one.keys for one in judged])))
            elite = np.argsort(-present, kind="stable")[
                : round(options.keep_share * options.population)
            ]
            next_scores = np.concatenate([ground.guide.scores(children), present[elite]])
            judged.append(Population.joined([children, judged[-1].take(elite)]))
            scores.append(next_scores)
        return Population.joined(judged), np.concatenate(scores)

    def _children(
        self, ground: Ground, parents: Population, scores: Scores, random: Generator
    ) -> Population:
        options, tables = self.options, ground.tables
        crossed = round(options.cross_share * options.population)
        drawn = draw_parents(scores, options.population - crossed, options.pressure, random)
        mutated = mutate(tables, parents.take(drawn), random, options.leap)
        first = draw_parents(scores, crossed, options.pressure, random)
        second = self._partners(tables.family[parents.sketch], scores, first, random)
        children, took = cross(tables, parents.take(first), parents.take(second), random)
        return Population.joined([mutated, children.take(took)])

    def _partners(
        self,
        families: NDArray[np.int64],
        scores: Scores,
        first: NDArray[np.int64],
        random: Generator,
    ) -> NDArray[np.int64]:
        """For each parent another of its family."""
        partners = first.copy()
        for family in np.unique(families[first]):
            own = np.flatnonzero(families == family)
            wanted = np.flatnonzero(families[first] == family)
            drawn = draw_parents(scores[own], len(wanted), self.options.pressure, random)
            partners[wanted] = own[drawn]
        return partners
