"""Candidates without a search: by rule, by chance, the rest of a space, and by a proposer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.machine import Machine
from tensorwright.tuning.population.candidate import Candidate
from tensorwright.tuning.population.picking import find_new
from tensorwright.tuning.population.population import Population
from tensorwright.tuning.population.space_tables import SpaceTables
from tensorwright.tuning.population.variation import everything, sample
from tensorwright.tuning.strategies.guide import Guide
from tensorwright.tuning.strategies.history import History
from tensorwright.tuning.task import Task

_SEEDED = 32  # of the best measured programs, whose sketches are taken
_LARGEST_LISTED = 200_000

Numbers = NDArray[np.int64]


class Proposer(Protocol):
    """Draws programs of one space that are likely to be fast, before anything was measured."""

    def draw(self, count: int, random: Generator, allowed: Numbers | None = None) -> Population:
        """Up to a number of programs within the limits, of the sketches `allowed`, all if None."""


MakeProposer = Callable[[Task, SpaceTables], Proposer]


class ProposingModel(Protocol):
    """A model that predicts, before any measurement, which programs are fast."""

    def proposers(self, machine: Machine) -> MakeProposer:
        """The factory of the proposers of a session's tasks on a machine."""


def starts_of(
    tables: SpaceTables, guide: Guide, share: float, count: int
) -> tuple[Population, int]:
    """Every structure by rule, and how many of them may be in a proposal of `count`.

    If that is a share of the proposal, the most promising come first.
    """
    starts = tables.starts()
    if share >= 1.0:
        return starts, count
    order = np.argsort(-guide.scores(starts), kind="stable")
    return starts.take(order), int(np.ceil(share * count))


def draw_new(tables: SpaceTables, history: History, count: int, random: Generator) -> Population:
    """Programs drawn at random that were not seen; up to `count`."""
    alive = history.alive
    if not len(alive):
        return Population.empty(tables.width)
    return find_new(sample(tables, count, random, alive), history.keys)


def draw_partly(
    tables: SpaceTables,
    proposer: Proposer | None,
    share: float,
    count: int,
    random: Generator,
    allowed: Numbers,
) -> Population:
    """Programs to start from: a share of them by a proposer if there is one, others uniformly."""
    even = sample(tables, count, random, allowed)
    if proposer is None or not share:
        return even
    drawn = proposer.draw(round(share * count), random, allowed)
    rest = even.take(np.arange(min(len(even), count - len(drawn))))
    return Population.joined([drawn, rest])


def with_predictions(
    candidates: Sequence[Candidate], history: History, guide: Guide
) -> tuple[Candidate, ...]:
    """New candidates with expected seconds: 2 ** -score of the guide, up to a constant."""
    if not candidates:
        return ()
    seconds = np.exp2(-guide.scores(history.programs_of(candidates)))
    return tuple(
        replace(each, predicted_s=time_s if 0 < time_s < math.inf else None)
        for each, time_s in zip(candidates, seconds.tolist(), strict=True)
    )


def rest_of(tables: SpaceTables, history: History, random: Generator) -> Population:
    """The programs of a small space that are left, in random order."""
    whole = everything(tables, _LARGEST_LISTED)
    new = find_new(whole.take(~np.isin(whole.sketch, history.dropped)), history.keys)
    return new.take(random.permutation(len(new)))


def choose_structures(history: History, most: int, random: Generator) -> Numbers:
    """The structures of a round, up to `most`: those of the best measured, and others at random."""
    alive = history.alive
    if len(alive) <= most:
        return alive
    best, _ = history.best(_SEEDED)
    seen, first = np.unique(best.sketch, return_index=True)
    proven = seen[np.argsort(first)][: most // 2]
    others = alive[~np.isin(alive, proven)]
    drawn = random.permutation(others)[: most - len(proven)]
    return np.sort(np.concatenate([proven.astype(np.int64), drawn]))


def least_tried(tables: SpaceTables, history: History, most: int) -> Numbers:
    """The structures that were tried least, up to `most`, without the best one; for a restart.

    Without those of which half is on record already.
    """
    alive, tried = history.alive, history.counts
    best, _ = history.best(1)
    has_room = 2 * tried < np.prod(tables.counts.astype(np.float64), axis=1)
    others = alive[has_room[alive] & ~np.isin(alive, best.sketch)]
    return np.sort(others[np.argsort(tried[others], kind="stable")][:most])
