"""Programs of all sorts for one workload, from which a cost model for defaults learns.

Uniform draws show hardly any good program, and a search shows little else.  A default is chosen
among programs by rule, programs around them and programs that the model predicts to be fast; so the
model is trained on these.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tensorwright.tuning.population.population import Candidate, Population
from tensorwright.tuning.population.variation import mutate, sample
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedSearch
from tensorwright.tuning.strategies.strategy import Guide
from tensorwright.tuning.task import Task


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a set of programs; the rest are uniform draws.

    by_rule    sketches with the decisions chosen by rule, the default first
    around     those with one to three decisions changed
    believed   the best of an evolution under the guide
    """

    by_rule: float = 0.3
    around: float = 0.25
    believed: float = 0.25


def varied_candidates(
    task: Task, space: Space, guide: Guide, count: int, seed: int, shares: Shares | None = None
) -> tuple[Candidate, ...]:
    """Up to `count` different programs of a space; the default schedule is always the first.

    Equal arguments give equal programs.
    """
    shares = shares or Shares()
    random = np.random.default_rng((seed, zlib.crc32(task.workload.key.encode())))
    options = EvolutionOptions(population=256, generations=2, epsilon=0.0)
    search = GuidedSearch(task, space, seed, guide, options)
    tables, history = search.tables, search.history
    starts = tables.starts()
    rest = 1 + random.permutation(len(starts) - 1)
    ordered = starts.take(np.concatenate([np.zeros(1, np.int64), rest]))
    candidates = history.take_new(ordered, max(1, round(shares.by_rule * count)))
    changed = starts.take(random.integers(0, len(starts), 4 * count))
    candidates += history.take_new(_changed(search, changed, random), round(shares.around * count))
    believed = round(shares.believed * count)
    candidates += history.take_new(search.promising(random, 3 * believed), believed)
    drawn = sample(tables, 4 * count, random)
    candidates += history.take_new(drawn, count - len(candidates))
    return tuple(candidates)


def _changed(search: GuidedSearch, parents: Population, random: Generator) -> Population:
    """One, two or three mutations of each."""
    once = mutate(search.tables, parents, random)
    twice = mutate(search.tables, once, random)
    thrice = mutate(search.tables, twice, random)
    return Population.joined([once, twice, thrice]).take(random.permutation(3 * len(parents)))
