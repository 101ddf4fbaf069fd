"""The search that a cost model guides: what a proposal is made of, whatever explores the space.

    by rule    the default schedule, then structures as chosen by rule
    refined    neighbours of the best measured programs
    planned    the best that an explorer has seen: generations (`evolution.py`) or chains
               (`annealing.py`)
    drawn      at random; where the space ends, what is left of it

If nothing was gained for long, explorers start afresh in the structures that were tried least.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.records import Record
from tensorwright.tuning.population.population import Candidate, Population
from tensorwright.tuning.population.space_tables import SpaceTables, Weights, make_space_tables
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies import sources
from tensorwright.tuning.strategies.strategy import Guide, History, MakeGuide
from tensorwright.tuning.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidedOptions(ABC):
    """The numbers of a guided search, whatever explores.

    What explorers start from
        measured_share  of the programs that are the best measured ones
        proposed_share  of the others that a proposing model draws, where there is one
        leap            share of steps that draw any row of a choice; the others take a neighbour
        weights         of the kinds of steps
        sketches        the most structures of one round; 0: all
    Where nothing is gained
        patience        trials without a gain, after which explorers start in the structures that
                        were tried least; the next `patience` trials without one end it; 0: never
        islands         the most structures then
    What is measured
        epsilon         share of the proposals that are drawn at random
        start_share     share of a proposal that structures as chosen by rule may have; where it is
                        less than 1, those that promise most come first; the default schedule alone
                        if 0
        random_first    random trials before the first plan; none in sessions with a trained model
                        and without settings
        plan            programs that are planned at once; 0: as many as are asked for
        variety         what a program gains that is unlike the others of the plan
        refine_after    trials before the first refinement
        refine_share    share of the proposals that are neighbours of the best measured programs
        stalled_share   the same if nothing was gained for `patience` trials; as before if None
        centres         the best programs that are refined
    """

    measured_share: float = 0.2
    proposed_share: float = 0.5
    leap: float = 0.2
    weights: Weights = field(default_factory=Weights)
    sketches: int = 8
    patience: int = 32
    islands: int = 3
    epsilon: float = 0.06
    start_share: float = 0.5
    random_first: int = 0
    plan: int = 0
    variety: float = 0.1
    refine_after: int = 16
    refine_share: float = 0.0
    stalled_share: float | None = None
    centres: int = 3

    @abstractmethod
    def explorer(self) -> Explorer:
        """What explores the space for one search."""


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What one round explores.

    allowed   the structures of this round, ascending
    """

    tables: SpaceTables
    history: History
    guide: Guide
    proposer: sources.Proposer | None
    options: GuidedOptions
    allowed: NDArray[np.int64]

    def start(self, size: int, random: Generator, kept: Population | None = None) -> Population:
        """Programs to start from: some that are kept, or the best measured ones, and fresh ones."""
        if kept is None:
            kept, _ = self.history.best(round(self.options.measured_share * size))
        kept = kept.take(np.isin(kept.sketch, self.allowed))
        share = self.options.proposed_share
        fresh = sources.draw_partly(
            self.tables, self.proposer, share, max(0, size - len(kept)), random, self.allowed
        )
        return Population.joined([kept.take(np.arange(min(size, len(kept)))), fresh])


class Explorer(Protocol):
    """Walks through a space by the scores of a guide; may keep a state from round to round."""

    def explore(self, ground: Ground, random: Generator, count: int) -> Population:
        """Up to about `count` new programs to measure, the most promising first."""


_SPARE = 3  # times as many are picked as needed: the traces of some may be on record
_SPARE_DRAWS = 8  # the same for random ones: small structures are drawn as often as large ones


class GuidedSearch:
    """A `Strategy`. Each proposal has a generator of its own, seeded by the search's seed, the
    workload and the number of programs seen.

    So a search that was told of the same records continues in the same way. Only if chains are
    persistent or a plan is for several proposals, a search that was killed makes a new plan.
    """

    def __init__(
        self,
        task: Task,
        space: Space,
        seed: int,
        guide: Guide,
        options: GuidedOptions,
        make_proposer: sources.MakeProposer | None = None,
    ) -> None:
        self.options = options
        self.tables = make_space_tables(space, options.weights)
        self.history = History(self.tables)
        self.guide = guide
        self._explorer = options.explorer()
        self._proposer = make_proposer(task, self.tables) if make_proposer else None
        self._seeds = (seed, zlib.crc32(task.workload.key.encode()))
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
            rest = sources.rest_of(self.tables, self.history, random)
            proposed += self.history.take_new(rest, count - len(proposed))
        return sources.with_predictions(proposed, self.history, self.guide)

    def observe(self, records: Sequence[Record]) -> None:
        """As `Strategy.observe`."""
        self.guide.learn(self.history.observe(records))

    def promising(self, random: Generator, count: int) -> Population:
        """The best that the explorer sees in a round, best first."""
        ground = Ground(
            self.tables,
            self.history,
            self.guide,
            self._proposer,
            self.options,
            self._choose_sketches(random),
        )
        if not len(ground.allowed):
            return Population.empty(self.tables.width)
        return self._explorer.explore(ground, random, count)

    # The parts of a proposal

    def _by_rule(self, count: int) -> list[Candidate]:
        starts, share = self.tables.starts(), self.options.start_share
        proposed = self.history.take_new(starts.take(np.zeros(1, np.int64)), count)
        if not share:
            return proposed
        if share < 1.0:
            starts = starts.take(np.argsort(-self.guide.scores(starts), kind="stable"))
        most = int(np.ceil(min(share, 1.0) * count))
        return proposed + self.history.take_new(starts, most - len(proposed))

    def _drawn(self, count: int, random: Generator) -> list[Candidate]:
        if count <= 0:
            return []
        drawn = sources.draw_new(self.tables, self.history, _SPARE_DRAWS * count, random)
        return self.history.take_new(drawn, count)

    def _refined(self, room: int) -> list[Candidate]:
        options, share = self.options, self.options.refine_share
        if self._stage and options.stalled_share is not None:
            share = options.stalled_share
        count = round(share * room)
        if not count or self.history.trials < options.refine_after:
            return []
        around = sources.propose_neighbours(
            self.tables, self.history, self.guide, _SPARE * count, options.centres
        )
        return self.history.take_new(around, count)

    def _planned(self, count: int, random: Generator) -> list[Candidate]:
        """The rest of the plan, or of a new one; its last are random."""
        if not self._left:
            self._left = self.options.plan or count
            self._guesses = self._left - int(np.ceil(self.options.epsilon * self._left))
            self._plan = self.promising(random, _SPARE * max(self._guesses, 1))
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

    @property
    def _stage(self) -> int:
        """How often `patience` trials in a row have gained nothing."""
        return self.history.since_gain // (self.options.patience or self.history.since_gain + 1)

    def _choose_sketches(self, random: Generator) -> NDArray[np.int64]:
        """The structures of a round: those of the best measured, and others at random.

        In a restart: those that were tried least, without the best one.
        """
        if self._stage % 2 == 1:
            least = sources.least_tried(self.tables, self.history, self.options.islands)
            if len(least):
                return least
        if not self.options.sketches:
            return self.history.alive
        return sources.choose_structures(self.history, self.options.sketches, random)


@dataclass(frozen=True, slots=True)
class GuidedFactory:
    """A `StrategyFactory`: a guided search for each task, each with a guide of its own."""

    make_guide: MakeGuide
    options: GuidedOptions
    make_proposer: sources.MakeProposer | None = None

    def __call__(self, task: Task, space: Space, seed: int) -> GuidedSearch:
        """As `StrategyFactory`."""
        guide = self.make_guide(task, space, seed)
        return GuidedSearch(task, space, seed, guide, self.options, self.make_proposer)
