"""Searches with a part left out, to see what the part is worth.

    no model        evolution that random scores guide: `GuidedFactory` of `RandomGuide`
    no evolution    random programs, of which the model's best are measured: `without_evolution`
    no refinement   evolution alone: `without_refinement`
    limited space   tile sizes of the first structure only: `limited_space`
    beam search     programs grow choice by choice: `BeamSearch`
    no scheduler    every workload gets as many rounds: `RoundRobinScheduler`

All but the third are those of Ansor (OSDI 2020, section 7.1, figure 7).

Beam search over incomplete programs: the sequential construction that evolution is to beat.

A program grows choice by choice; of all that a step can give, the model keeps the best few.  The
model knows complete programs only, and judges an incomplete one with its open choices at their
defaults: its score of early steps is a guess, and programs that they rule out never come back.

Source: the baseline of Zheng et al., OSDI 2020, sections 2 and 7.1, after Adams et al., 2019.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from tensorwright.records import Record
from tensorwright.tuning.population.population import Candidate, Population, find_new
from tensorwright.tuning.population.space_tables import SpaceTables, make_space_tables
from tensorwright.tuning.population.variation import sample
from tensorwright.tuning.space import Kind, Sketch, Space
from tensorwright.tuning.strategies import Outcome
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.strategy import Guide, History, MakeGuide, Scores
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import TaskState


class RandomGuide:
    """A guide without judgement: a random number for each program, the same every time."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = np.uint64(seed * 2 + 1)

    def refresh(self) -> None:
        """As `Guide.refresh`."""

    def scores(self, population: Population) -> Scores:
        """As `Guide.scores`."""
        mixed = (population.keys ^ self._seed) * np.uint64(0xD1342543DE82EF95 | 1)
        scores: Scores = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
        return scores

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Nothing to learn."""


class RoundRobinScheduler:
    """Choose the task with the fewest rounds, as without a task scheduler."""

    def choose(self, states: Sequence[TaskState]) -> int | None:
        """As `Scheduler.choose`."""
        open_tasks = [n for n, state in enumerate(states) if not state.is_exhausted]
        return min(open_tasks, key=lambda n: (len(states[n].history), n), default=None)


def without_evolution(options: EvolutionOptions | None = None) -> EvolutionOptions:
    """Random programs in place of generations, as many to judge; nothing is refined."""
    own = options or EvolutionOptions()
    judged = own.population * (own.generations + 1)
    whole = replace(own, population=judged, generations=0, measured_share=0.0)
    return without_refinement(whole)


def without_refinement(options: EvolutionOptions | None = None) -> EvolutionOptions:
    """Evolution alone: no neighbours of measured programs by right."""
    return replace(options or EvolutionOptions(), refine_share=0.0, stalled_share=0.0)


def limited_space(space: Space) -> Space:
    """The tile sizes of the first sketch; every other choice is left to its rule."""
    first = space.sketches[0]
    choices = tuple(
        choice if choice.kind is Kind.TILE else replace(choice, values=(choice.default,))
        for choice in first.choices
    )
    return Space((Sketch(first.name, first.trace, choices, first.limits),))


_WIDTH = 32
_MOST_ROWS = 24  # rows of a choice that are tried in one step; others are left to later rounds
_RANDOM_SHARE = 0.06


class BeamSearch:
    """A `Strategy`: in every round a beam from the sketches to complete programs.

    Steps that lead only to known programs are found out at the last step: the beam is then filled
    by the next best, and by random programs where none is left.
    """

    def __init__(
        self, task: Task, space: Space, seed: int, guide: Guide, width: int = _WIDTH
    ) -> None:
        self.tables = make_space_tables(space)
        self.history = History(self.tables)
        self.guide = guide
        self.width = width
        self._seeds = (seed, zlib.crc32(task.workload.key.encode()))

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        self.guide.refresh()
        random = np.random.default_rng((*self._seeds, self.history.seen))
        candidates = self.history.take_new(self.tables.starts(), 1)
        guesses = int(np.ceil(_RANDOM_SHARE * count))
        candidates += self.history.take_new(self._grow(random), count - len(candidates) - guesses)
        drawn = find_new(sample(self.tables, 4 * count, random), self.history.keys)
        return tuple(candidates + self.history.take_new(drawn, count - len(candidates)))

    def observe(self, records: Sequence[Record]) -> None:
        """As `Strategy.observe`."""
        self.guide.learn(self.history.observe(records))

    def _grow(self, random: Generator) -> Population:
        """Complete programs that are not known, the most promising first."""
        alive = np.sort(random.permutation(self.history.alive)[: self.width])
        beam = Population(alive.astype(np.int32), self.tables.defaults[alive])
        for position in range(self.tables.width):
            grown = _extended(self.tables, beam, position, random)
            if position == self.tables.width - 1:
                grown = find_new(grown, self.history.keys)
            scores = self.guide.scores(grown)
            best = np.argsort(-scores, kind="stable")
            beam = grown.take(best[: self.width])
        return beam


def _extended(
    tables: SpaceTables, beam: Population, position: int, random: Generator
) -> Population:
    """Every program of the beam with every row of its next choice, if it keeps to the limits."""
    rows = np.minimum(tables.counts[beam.sketch, position], _MOST_ROWS)
    parents = np.repeat(np.arange(len(beam)), rows)
    offset = np.arange(len(parents)) - np.repeat(np.cumsum(rows) - rows, rows)
    counts = tables.counts[beam.sketch, position][parents]
    is_whole = counts <= _MOST_ROWS
    drawn = (random.random(len(parents)) * counts).astype(np.int64)
    grown = beam.take(parents)
    genes = grown.genes.copy()
    genes[:, position] = np.where(is_whole, offset, drawn)
    both = Population.joined([beam, Population(grown.sketch, genes)])
    both = both.take(both.first_of_each())
    return both.take(tables.valid(both))


class BeamFactory:
    """A `StrategyFactory`: a beam search for each task."""

    def __init__(self, make_guide: MakeGuide) -> None:
        self._make_guide = make_guide

    def __call__(self, task: Task, space: Space, seed: int) -> BeamSearch:
        """As `StrategyFactory`."""
        return BeamSearch(task, space, seed, self._make_guide(task, space, seed))
