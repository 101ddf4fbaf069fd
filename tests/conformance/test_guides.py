"""One suite for every guide of a search: a new one is one more entry in `MAKERS`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.unit.tuning.helpers import matmul

from tensorwright.base import cpu_target
from tensorwright.machine import machine_of
from tensorwright.schedule import state_of
from tensorwright.tuning.features import STATEMENT
from tensorwright.tuning.models import RandomModel, RooflineModel
from tensorwright.tuning.population import Population, make_space_tables, sample
from tensorwright.tuning.space import Space, space_of
from tensorwright.tuning.strategies import Guide, ModelGuides, Outcome
from tensorwright.tuning.task import Task
from tensorwright_lab.strategies import RandomGuide

TARGET = cpu_target("x86-64-avx2")
TASK = Task(matmul())
SPACE = space_of(state_of(TASK.workload), TARGET)
MakeGuide = Callable[[Task, Space, int], Guide]
MAKERS: dict[str, MakeGuide] = {
    "random": lambda task, space, seed: RandomGuide(seed),
    "random model": ModelGuides(RandomModel, STATEMENT.open, TARGET),
    "roofline": ModelGuides(lambda: RooflineModel(machine_of(TARGET, 2)), STATEMENT.open, TARGET),
}


@pytest.fixture(params=list(MAKERS))
def guide(request: pytest.FixtureRequest) -> Guide:
    made = MAKERS[request.param](TASK, SPACE, 0)
    made.refresh()
    return made


def drawn(count: int = 60) -> Population:
    return sample(make_space_tables(SPACE), count, np.random.default_rng(0))


def test_every_program_gets_a_score(guide: Guide) -> None:
    scores = guide.scores(drawn())
    assert scores.shape == (60,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert len(set(scores.tolist())) > 1


def test_nothing_to_judge_is_no_fault(guide: Guide) -> None:
    width = drawn().genes.shape[1]
    assert guide.scores(Population.empty(width)).shape == (0,)


def test_a_program_is_judged_by_itself(guide: Guide) -> None:
    population = drawn()
    scores = guide.scores(population)
    order = np.random.default_rng(1).permutation(len(population))
    np.testing.assert_allclose(guide.scores(population.take(order)), scores[order], rtol=1e-6)
    np.testing.assert_allclose(guide.scores(population.take(np.arange(5))), scores[:5], rtol=1e-6)


def test_what_was_measured_is_taken_in(guide: Guide) -> None:
    population = drawn(8)
    outcomes = [
        Outcome(int(sketch), genes, 1e-3 * (1 + n), n == 7)
        for n, (sketch, genes) in enumerate(zip(population.sketch, population.genes, strict=True))
    ]
    guide.learn(())
    guide.learn(outcomes)
    guide.refresh()
    assert np.isfinite(guide.scores(population)).all()
