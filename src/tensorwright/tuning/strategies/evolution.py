"""Evolutionary search over arrays of candidates.

The options of an evolutionary search.

Evolutionary search: a population evolves by a model's scores, and the best are measured.

Each proposal is made anew from the records: the first generation are random programs and the best
measured ones, their children are mutated or crossed, and of all that were judged, the most
promising that are unlike each other are proposed.  Some proposals are random, some are neighbours
of the best measured programs (`../refinement.py`).  If nothing was gained for long, evolution
starts afresh in the structures that were tried least.

After Ansor (Zheng et al., OSDI 2020, section 5), with crossover, which its released code lacks.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.records import Record
from tensorwright.tuning.population.population import (
    Candidate,
    Population,
    draw_parents,
    find_new,
    pick_diverse,
)
from tensorwright.tuning.population.space_tables import Weights, make_space_tables
from tensorwright.tuning.population.variation import cross, mutate
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.sources import (
    MakeProposer,
    choose_structures,
    draw_new,
    draw_partly,
    least_tried,
    propose_neighbours,
    rest_of,
    starts_of,
    with_predictions,
)
from tensorwright.tuning.strategies.strategy import Guide, History, MakeGuide
from tensorwright.tuning.task import Task


@dataclass(frozen=True, slots=True)
class EvolutionOptions:
    """The numbers of the search; the defaults are meant to be right.

    On eight made-up landscapes over the sketches of a 3x3 convolution, where the best structure is
    not the first, 256 trials ended 9 % above the optimum with restarts after 32 idle trials, 18 %
    after 48, 25 % without any; islands of 1 or 6 sketches, and other pressures, were no better.

    population      candidates of a generation         generations    beside the first
    measured_share  of the first generation that are the best measured programs
    proposed_share  of the other programs of the first generation, drawn by a proposing model,
                    where there is one
    cross_share     of the children that have two parents; the others are mutated
    keep_share      of each generation that goes on unchanged, the best
    pressure        the best is drawn exp(pressure) times as often as the worst as a parent
    leap            share of mutations that draw any row, not a neighbour
    epsilon         share of the proposals that are drawn at random
    start_share     share of a proposal that structures as chosen by rule may have; where it is less
                    than 1, those that promise most come first
    variety         how much rank a proposal loses that is like another, see `pick_diverse`
    sketches        the most structures of one round
    islands         the same in a restart
    refine_after    trials before the first refinement
    refine_share    share of the proposals that are neighbours of the best measured programs
    stalled_share   the same if nothing was gained for `patience` trials
    centres         the best programs that are refined
    patience        trials without a gain, after which a restart begins; the next `patience` trials
                    without one end it
    weights         of the kinds of mutation
    """

    population: int = 512
    generations: int = 3
    measured_share: float = 0.2
    proposed_share: float = 0.5
    cross_share: float = 0.15
    keep_share: float = 0.1
    pressure: float = 5.0
    leap: float = 0.2
    epsilon: float = 0.06
    start_share: float = 1.0
    variety: float = 0.1
    sketches: int = 8
    islands: int = 3
    refine_after: int = 16
    refine_share: float = 0.3
    stalled_share: float = 0.5
    centres: int = 3
    patience: int = 32
    weights: Weights = field(default_factory=Weights)


_SPARE = 3  # times as many are picked as needed: the traces of some may be on record


class EvolutionarySearch:
    """A `Strategy`. Resuming needs the records only: each proposal has a generator of its own.

    Its seed is made of the search's seed, the workload and the number of programs seen, so a search
    that was told of the same records continues in the same way.
    """

    def __init__(
        self,
        task: Task,
        space: Space,
        seed: int,
        guide: Guide,
        options: EvolutionOptions | None = None,
        make_proposer: MakeProposer | None = None,
    ) -> None:
        self.options = options or EvolutionOptions()
        self.tables = make_space_tables(space, self.options.weights)
        self.history = History(self.tables)
        self.guide = guide
        self._proposer = make_proposer(task, self.tables) if make_proposer else None
        self._seeds = (seed, zlib.crc32(task.workload.key.encode()))

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        self.guide.refresh()
        random = np.random.default_rng((*self._seeds, self.history.seen))
        proposed = self.history.take_new(
            *starts_of(self.tables, self.guide, self.options.start_share, count)
        )
        room = count - len(proposed)
        refined = self._refine_count(room)
        proposed += self.history.take_new(self._refined(refined), refined)
        room = count - len(proposed)
        guesses = room - int(np.ceil(self.options.epsilon * room))
        proposed += self.history.take_new(self.promising(random, _SPARE * room), guesses)
        drawn = draw_new(self.tables, self.history, _SPARE * count, random)
        proposed += self.history.take_new(drawn, count - len(proposed))
        if len(proposed) < count:
            rest = rest_of(self.tables, self.history, random)
            proposed += self.history.take_new(rest, count - len(proposed))
        return with_predictions(proposed, self.history, self.guide)

    def observe(self, records: Sequence[Record]) -> None:
        """As `Strategy.observe`."""
        self.guide.learn(self.history.observe(records))

    # The parts of a proposal

    @property
    def _stage(self) -> int:
        """How often `patience` trials in a row have gained nothing."""
        return self.history.since_gain // self.options.patience

    def _refine_count(self, room: int) -> int:
        if self.history.trials < self.options.refine_after:
            return 0
        share = self.options.stalled_share if self._stage else self.options.refine_share
        return round(share * room)

    def _refined(self, count: int) -> Population:
        if not count:
            return Population.empty(self.tables.width)
        return propose_neighbours(
            self.tables, self.history, self.guide, _SPARE * count, self.options.centres
        )

    def promising(self, random: Generator, count: int) -> Population:
        """The best of an evolution, unlike each other, best first."""
        if not len(self.history.alive):
            return Population.empty(self.tables.width)
        judged, scores = self._evolve(random)
        scores = scores[judged.first_of_each()]
        judged = judged.take(judged.first_of_each())
        is_new = ~np.isin(judged.keys, self.history.keys) & np.isfinite(scores)
        judged, scores = judged.take(is_new), scores[is_new]
        return judged.take(pick_diverse(judged, scores, count, self.options.variety))

    @property
    def _is_restart(self) -> bool:
        return self._stage % 2 == 1

    def _evolve(self, random: Generator) -> tuple[Population, NDArray[np.float64]]:
        """All programs that were judged, over all generations."""
        options = self.options
        allowed = self._choose_sketches(random)
        current = self._first_generation(random, allowed)
        judged, scores = [current], [self.guide.scores(current)]
        for _ in range(options.generations if len(current) else 0):
            present = scores[-1]
            children = self._children(judged[-1], present, random)
            children = children.take(np.isin(children.sketch, allowed))
            children = find_new(children, np.sort(np.concatenate([one.keys for one in judged])))
            elite = np.argsort(-present, kind="stable")[
                : round(options.keep_share * options.population)
            ]
            next_scores = np.concatenate([self.guide.scores(children), present[elite]])
            judged.append(Population.joined([children, judged[-1].take(elite)]))
            scores.append(next_scores)
        return Population.joined(judged), np.concatenate(scores)

    def _choose_sketches(self, random: Generator) -> NDArray[np.int64]:
        """The structures of this round: those of the best measured, and others at random.

        In a restart: those that were tried least, without the best one.
        """
        if self._is_restart:
            least = least_tried(self.tables, self.history, self.options.islands)
            if len(least):
                return least
        return choose_structures(self.history, self.options.sketches, random)

    def _first_generation(self, random: Generator, allowed: NDArray[np.int64]) -> Population:
        options = self.options
        best, _ = self.history.best(round(options.measured_share * options.population))
        best = best.take(np.isin(best.sketch, allowed))
        drawn = draw_partly(
            self.tables,
            self._proposer,
            options.proposed_share,
            options.population - len(best),
            random,
            allowed,
        )
        both = Population.joined([best, drawn])
        return both.take(both.first_of_each())

    def _children(
        self, parents: Population, scores: NDArray[np.float64], random: Generator
    ) -> Population:
        options = self.options
        crossed = round(options.cross_share * options.population)
        drawn = draw_parents(scores, options.population - crossed, options.pressure, random)
        mutated = mutate(self.tables, parents.take(drawn), random, options.leap)
        first = draw_parents(scores, crossed, options.pressure, random)
        second = self._partners(parents, scores, first, random)
        children, took = cross(self.tables, parents.take(first), parents.take(second), random)
        return Population.joined([mutated, children.take(took)])

    def _partners(
        self,
        parents: Population,
        scores: NDArray[np.float64],
        first: NDArray[np.int64],
        random: Generator,
    ) -> NDArray[np.int64]:
        """For each parent another of its family."""
        families = self.tables.family[parents.sketch]
        partners = first.copy()
        for family in np.unique(families[first]):
            own = np.flatnonzero(families == family)
            wanted = np.flatnonzero(families[first] == family)
            drawn = draw_parents(scores[own], len(wanted), self.options.pressure, random)
            partners[wanted] = own[drawn]
        return partners


@dataclass(frozen=True, slots=True)
class EvolutionFactory:
    """A `StrategyFactory`: an evolutionary search for each task, each with a guide of its own."""

    make_guide: MakeGuide
    options: EvolutionOptions | None = None
    make_proposer: MakeProposer | None = None

    def __call__(self, task: Task, space: Space, seed: int) -> EvolutionarySearch:
        """As `StrategyFactory`."""
        guide = self.make_guide(task, space, seed)
        return EvolutionarySearch(task, space, seed, guide, self.options, self.make_proposer)
