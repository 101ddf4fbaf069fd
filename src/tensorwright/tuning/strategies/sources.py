"""Candidates without a search: by rule, by chance, the rest of a space, and by a proposer.

Local refinement: coordinate descent over the decisions of the best measured programs.

A program is left for a neighbour that was measured to be faster, so all neighbours of the best are
proposed until one is; then that one is the centre.  Published results for such a descent by real
measurement after a short search: Canesche et al., arXiv 2406.20037.

The guide by a cost model, through the features of programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.base import Target, TensorwrightError
from tensorwright.machine import Machine
from tensorwright.schedule import state_of
from tensorwright.tuning.features import FeatureSource, OpenSource
from tensorwright.tuning.models import CostModel, Features, Sample
from tensorwright.tuning.population.population import (
    Candidate,
    Genes,
    Population,
    by_sketch,
    find_new,
)
from tensorwright.tuning.population.space_tables import SpaceTables
from tensorwright.tuning.population.variation import everything, neighbourhood, sample
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.strategy import Guide, History, Outcome, Scores
from tensorwright.tuning.task import Task

_NEAR = 1.15  # times as slow as the best: slower programs are not centres


def propose_neighbours(
    tables: SpaceTables, history: History, guide: Guide, count: int, centres: int
) -> Population:
    """Up to `count` new programs one step from the best, in the guide's order.

    At most half of them are around the first centre, while others have some.
    """
    programs, times_s = history.best(centres)
    seen = history.keys
    neighbourhoods: list[Population] = []
    for one in np.flatnonzero(times_s <= _NEAR * np.min(times_s, initial=np.inf)):
        around = neighbourhood(tables, int(programs.sketch[one]), programs.genes[one])
        around = around.take(~np.isin(around.sketch, history.dropped))
        around = find_new(around, seen)
        scores = guide.scores(around)
        best = np.argsort(-scores, kind="stable")[np.isfinite(np.sort(-scores))]
        neighbourhoods.append(around.take(best))
    if not neighbourhoods:
        return Population.empty(tables.width)
    return _shared_out(neighbourhoods, count)


def _shared_out(neighbourhoods: list[Population], count: int) -> Population:
    """Half of the remaining count to each neighbourhood in turn; the rest to the first ones."""
    parts: list[Population] = []
    rest: list[Population] = []
    room = count
    for around in neighbourhoods:
        share = min(-(-room // 2), len(around))
        parts.append(around.take(np.arange(share)))
        rest.append(around.take(np.arange(share, len(around))))
        room -= share
    joined = Population.joined([*parts, *rest])
    return joined.take(joined.first_of_each()[:count])


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


class ModelGuide:
    """A `Guide`: the scores of a model that all tasks of a session share.

    A sketch that cannot be lowered scores minus infinity from then on.
    """

    def __init__(
        self, workload: str, space: Space, features: FeatureSource, model: CostModel
    ) -> None:
        self._workload = workload
        self._space = space
        self._features = features
        self._model = model
        self._broken: set[int] = set()

    def refresh(self) -> None:
        """As `Guide.refresh`."""
        self._model.update()

    def scores(self, population: Population) -> Scores:
        """As `Guide.scores`."""
        scores = np.full(len(population), -np.inf)
        for sketch, rows in by_sketch(population.sketch):
            features = self._of(sketch, population.genes[rows])
            if features is not None:
                scores[rows] = self._model.predict(features)
        return scores

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """As `Guide.learn`."""
        samples: dict[int, Sample] = {}
        numbers = np.array([one.sketch for one in outcomes], np.int32)
        for sketch, rows in by_sketch(numbers):
            features = self._of(sketch, np.array([outcomes[row].genes for row in rows]))
            if features is None:
                continue
            for row, one in zip(rows.tolist(), features, strict=True):
                outcome = outcomes[row]
                samples[row] = Sample(self._workload, one, outcome.time_s, outcome.is_censored)
        if samples:
            self._model.observe([samples[row] for row in sorted(samples)])

    def _of(self, sketch: int, genes: Genes) -> Features | None:
        """The features of programs of one sketch; None if there are none."""
        if sketch in self._broken:
            return None
        chosen = self._space.sketches[sketch]
        try:
            return self._features.of_sketch(chosen, genes[:, : len(chosen.choices)])
        except TensorwrightError:
            self._broken.add(sketch)
            return None


@dataclass(frozen=True, slots=True)
class ModelGuides:
    """Makes the guides of the tasks of a session.

    make_model   the model of a task; the same one for all if features are shared
    open_features   gives the features of the programs of a task
    """

    make_model: Callable[[], CostModel]
    open_features: OpenSource
    target: Target

    def __call__(self, task: Task, space: Space, seed: int) -> ModelGuide:
        """The guide of a task."""
        workload = task.workload
        source = self.open_features(state_of(workload), self.target, space)
        return ModelGuide(workload.key, space, source, self.make_model())
