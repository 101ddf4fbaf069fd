"""Beam search over incomplete programs: the sequential construction that evolution is to beat.

A program grows choice by choice; of all that a step can give, the model keeps the best few.  The
model knows complete programs only, and judges an incomplete one with its open choices at their
defaults: its score of early steps is a guess, and programs that they rule out never come back.

Source: the baseline of Zheng et al., OSDI 2020, sections 2 and 7.1, after Adams et al., 2019.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from tensorwright.records import Record
from tensorwright.tuning.population.population import Candidate, Population, find_new
from tensorwright.tuning.population.space_tables import SpaceTables, make_space_tables
from tensorwright.tuning.population.variation import sample
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.strategy import Guide, History, MakeGuide
from tensorwright.tuning.task import Task

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
