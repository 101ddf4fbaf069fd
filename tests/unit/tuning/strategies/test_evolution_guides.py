"""Guides: what a cost model is told, and what it says of programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tests.targets import native_target
from tests.unit.tuning.helpers import matmul
from tests.unit.tuning.strategies.evolving import SPACE

from tensorwright.base import ScheduleError
from tensorwright.machine import machine_of
from tensorwright.records import Record, Status
from tensorwright.schedule import state_of
from tensorwright.tuning.features import FEATURE_NAMES, STATEMENT
from tensorwright.tuning.models import RandomModel, RooflineModel, Sample
from tensorwright.tuning.population import make_space_tables, sample
from tensorwright.tuning.space import Sketch, space_of
from tensorwright.tuning.strategies import ModelGuide, ModelGuides, Outcome
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedFactory
from tensorwright.tuning.task import Task
from tensorwright_lab.strategies import RandomGuide

ATLAS = make_space_tables(SPACE)
DRAWN = sample(ATLAS, 60, np.random.default_rng(0))


class FakeFeatures:
    """The sum of the genes, and how many choices there are; "plain" cannot be lowered."""

    def of_sketch(self, sketch: Sketch, genes: NDArray[np.int64]) -> NDArray[np.float32]:
        if sketch.name == "plain":
            raise ScheduleError(stage="test", where="plain", reason="it cannot be", step="split")
        assert genes.shape[1] == len(sketch.choices)
        found = np.zeros((len(genes), 1, len(FEATURE_NAMES)), np.float32)
        found[:, 0, 0] = genes.sum(axis=1)
        found[:, 0, 1] = len(sketch.choices)
        return found


class FakeModel:
    """Scores are the first feature."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.updates = 0

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        return features[:, 0, 0].astype(np.float64)

    def observe(self, samples: Sequence[Sample]) -> None:
        self.samples += samples

    def update(self) -> bool:
        self.updates += 1
        return True


def test_scores_are_the_models_and_what_cannot_be_lowered_is_last() -> None:
    guide = ModelGuide("w", SPACE, FakeFeatures(), FakeModel())
    for _ in range(2):
        scores = guide.scores(DRAWN)
        is_plain = DRAWN.sketch == 3
        assert (scores[is_plain] == -math.inf).all()
        assert (scores[~is_plain] == DRAWN.genes[~is_plain].sum(axis=1)).all()


def test_a_model_learns_of_each_outcome_in_order() -> None:
    model = FakeModel()
    guide = ModelGuide("w", SPACE, FakeFeatures(), model)
    outcomes = [
        Outcome(int(DRAWN.sketch[row]), DRAWN.genes[row], 0.5 + row, row % 2 == 0)
        for row in range(20)
    ]
    guide.learn(outcomes)
    guide.refresh()
    kept = [one for one in outcomes if one.sketch != 3]
    assert [one.time_s for one in model.samples] == [one.time_s for one in kept]
    assert [one.is_censored for one in model.samples] == [one.is_censored for one in kept]
    assert [one.features[0, 0] for one in model.samples] == [one.genes.sum() for one in kept]
    assert {one.workload for one in model.samples} == {"w"}
    assert model.updates == 1


def test_random_scores_depend_on_program_and_seed_only() -> None:
    one, other = RandomGuide(1).scores(DRAWN), RandomGuide(2).scores(DRAWN)
    assert (RandomGuide(1).scores(DRAWN) == one).all()
    assert (one != other).all()
    assert ((one >= 0) & (one < 1)).all()
    rows = np.arange(len(DRAWN))[::-1]
    assert (RandomGuide(1).scores(DRAWN.take(rows)) == one[rows]).all()


def test_a_search_of_a_real_program_by_real_features() -> None:
    workload = matmul()
    target = native_target()
    space = space_of(state_of(workload), target)
    options = EvolutionOptions(population=32, generations=1)
    found = []
    roofline = RooflineModel(machine_of(target, 2))
    for make_model in (lambda: roofline, RandomModel, RandomModel):
        guides = ModelGuides(make_model, STATEMENT.open, target)
        factory = GuidedFactory(guides, options)
        strategy = factory(Task(workload), space, 0)
        first = strategy.propose(8)
        records = [
            Record("m", "t", "h", 1, one.trace, (0.001,), Status.OK, decisions=one.decisions)
            for one in first
        ]
        strategy.observe(records)
        found.append([*first, *strategy.propose(8)])
    assert found[1] == found[2] != found[0]
    assert all(len({one.trace for one in each}) == 16 for each in found)
