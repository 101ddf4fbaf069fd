"""Simulated annealing by a model's scores: chains walk, and the best programs are measured.

After AutoTVM (Chen et al., NeurIPS 2018, section 4), whose settings are `VANILLA`.  Its temperature
starts at 1 whatever the scores are. If the scores of a model differ by less than that, annealing is
a random walk; if they differ by more, it is a descent. It never starts anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.records import Record
from tensorwright.tuning.population.candidate import Candidate
from tensorwright.tuning.population.population import Population
from tensorwright.tuning.population.space_tables import make_space_tables
from tensorwright.tuning.population.variation import sample
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.annealing.archive import Archive
from tensorwright.tuning.strategies.annealing.chains import Walk, anneal
from tensorwright.tuning.strategies.annealing.covering import pick_covering
from tensorwright.tuning.strategies.annealing.options import AnnealingOptions, Pick
from tensorwright.tuning.strategies.annealing.temperature import Temperatures, unit_of
from tensorwright.tuning.strategies.guide import Guide, MakeGuide
from tensorwright.tuning.strategies.history import History
from tensorwright.tuning.strategies.refinement import propose_neighbours
from tensorwright.tuning.strategies.sources import (
    MakeProposer,
    choose_structures,
    draw_new,
    draw_partly,
    least_tried,
    rest_of,
    starts_of,
    with_predictions,
)
from tensorwright.tuning.task import Task

_SPARE = 3  # times as many are picked as needed: the traces of some may be on record
_SPARE_DRAWS = 8  # the same for random ones: small structures are drawn as often as large ones


class AnnealingSearch:
    """A `Strategy`.  Each plan has its own generator, seeded by the seed, the workload and the
    number of programs seen.

    With the default options a proposal follows from the records alone. If chains are persistent or
    a plan is for several proposals, a search that was killed makes a new plan.
    """

    def __init__(
        self,
        task: Task,
        space: Space,
        seed: int,
        guide: Guide,
        options: AnnealingOptions | None = None,
        make_proposer: MakeProposer | None = None,
    ) -> None:
        self.options = options or AnnealingOptions()
        self.tables = make_space_tables(space, self.options.weights)
        self.history = History(self.tables)
        self.guide = guide
        self._proposer = make_proposer(task, self.tables) if make_proposer else None
        self._seeds = (seed, zlib.crc32(task.workload.key.encode()))
        self._points = Population.empty(self.tables.width)
        self._plan = Population.empty(self.tables.width)
        self._left = 0  # of the plan, random ones included
        self._guesses = 0  # of these, not random

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        random = np.random.default_rng((*self._seeds, self.history.seen))
        self.guide.refresh()
        proposed = self._by_rule(count)
        if self.history.trials >= self.options.random_first:
            proposed += self._refined(count - len(proposed))
            proposed += self._planned(count - len(proposed), random)
            if self.options.plan and len(proposed) < count:  # the plan has ended: the next one
                proposed += self._planned(count - len(proposed), random)
        proposed += self._drawn(count - len(proposed), random)
        if len(proposed) < count:
            rest = rest_of(self.tables, self.history, random)
            proposed += self.history.take_new(rest, count - len(proposed))
        return with_predictions(proposed, self.history, self.guide)

    def observe(self, records: Sequence[Record]) -> None:
        """As `Strategy.observe`."""
        self.guide.learn(self.history.observe(records))

    # The parts of a proposal

    def _by_rule(self, count: int) -> list[Candidate]:
        starts = self.tables.starts()
        if not self.options.start_share:
            return self.history.take_new(starts.take(np.zeros(1, np.int64)), count)
        proposed = self.history.take_new(starts.take(np.zeros(1, np.int64)), count)
        most = starts_of(self.tables, self.guide, self.options.start_share, count)
        return proposed + self.history.take_new(most[0], min(most[1], count) - len(proposed))

    def _drawn(self, count: int, random: Generator) -> list[Candidate]:
        if count <= 0:
            return []
        drawn = draw_new(self.tables, self.history, _SPARE_DRAWS * count, random)
        return self.history.take_new(drawn, count)

    def _refined(self, room: int) -> list[Candidate]:
        count = round(self.options.refine_share * room)
        if not count:
            return []
        around = propose_neighbours(self.tables, self.history, self.guide, _SPARE * count, 3)
        return self.history.take_new(around, count)

    def _planned(self, count: int, random: Generator) -> list[Candidate]:
        """The rest of the plan, or of a new one; its last are random."""
        if not self._left:
            self._make_plan(count, random)
        planned = self.history.take_new(self._plan, min(count, self._guesses))
        is_used_up = len(planned) < min(count, self._guesses)
        self._left -= len(planned)
        self._guesses = 0 if is_used_up else self._guesses - len(planned)
        if not self._guesses:
            last = self._drawn(min(count - len(planned), self._left), random)
            planned += last
            self._left -= len(last)
            if is_used_up and len(planned) < count:
                self._left = 0
        return planned

    def _make_plan(self, count: int, random: Generator) -> None:
        options = self.options
        self._left = options.plan or count
        self._guesses = self._left - int(np.ceil(options.epsilon * self._left))
        self._plan = self.promising(random, _SPARE * max(self._guesses, 1))

    def promising(self, random: Generator, count: int) -> Population:
        """The best programs of the chains, picked by the options, best first."""
        allowed = self._choose_sketches(random)
        if not len(allowed):
            return Population.empty(self.tables.width)
        options = self.options
        is_allowed = np.zeros(len(self.tables.family), np.bool_)
        is_allowed[allowed] = True
        walk = Walk(
            self.tables,
            is_allowed,
            self.guide.scores,
            lambda many, source: sample(self.tables, many, source, allowed),
        )
        drawn = sample(self.tables, options.chains, random, allowed)
        unit = unit_of(options.scale, self.guide.scores(drawn))
        start = self._start(self._fresh(drawn, random, allowed), is_allowed)
        archive = Archive(self.tables.width, options.spare * count, self.history.keys)
        temperatures = Temperatures(options, unit, len(start))
        self._points = anneal(walk, start, options, temperatures, archive, random)
        if options.pick is Pick.BEST:
            return archive.population
        picked = pick_covering(
            self.tables, archive.population, archive.scores, count, options.variety
        )
        return archive.population.take(picked)

    def _fresh(
        self, drawn: Population, random: Generator, allowed: NDArray[np.int64]
    ) -> Population:
        """The first programs of chains that do not start at a measured program."""
        if self._proposer is None:
            return drawn
        share = self.options.proposed_share
        return draw_partly(self.tables, self._proposer, share, len(drawn), random, allowed)

    @property
    def _is_restart(self) -> bool:
        patience = self.options.patience
        return bool(patience) and self.history.since_gain // patience % 2 == 1

    def _choose_sketches(self, random: Generator) -> NDArray[np.int64]:
        if self._is_restart:
            least = least_tried(self.tables, self.history, self.options.islands)
            if len(least):
                return least
        if not self.options.sketches:
            return self.history.alive
        return choose_structures(self.history, self.options.sketches, random)

    def _start(self, drawn: Population, is_allowed: NDArray[np.bool_]) -> Population:
        """The first programs of chains: their last ones, or the best measured and random ones."""
        options = self.options
        if options.is_persistent and len(self._points):
            kept = self._points.take(~np.isin(self._points.sketch, self.history.dropped))
        elif self._is_restart:
            return drawn
        else:
            kept, _ = self.history.best(round(options.measured_share * options.chains))
            kept = kept.take(is_allowed[kept.sketch])
        both = Population.joined([kept, drawn])
        return both.take(np.arange(min(options.chains, len(both))))


@dataclass(frozen=True, slots=True)
class AnnealingFactory:
    """A `StrategyFactory`: annealing for each task, each with a guide of its own."""

    make_guide: MakeGuide
    options: AnnealingOptions | None = None
    make_proposer: MakeProposer | None = None

    def __call__(self, task: Task, space: Space, seed: int) -> AnnealingSearch:
        """As `StrategyFactory`."""
        guide = self.make_guide(task, space, seed)
        return AnnealingSearch(task, space, seed, guide, self.options, self.make_proposer)
