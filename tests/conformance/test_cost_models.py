"""One suite for every cost model: a new one is one more entry in `MAKERS`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.tuning.models.model_samples import made_up, made_up_trees

from tensorwright.base import cpu_target
from tensorwright.machine import machine_of
from tensorwright.tuning import models
from tensorwright_lab.cost_models import NetworkSettings
from tensorwright_lab.feature_sets import LOOP_TREE

TARGET = cpu_target("x86-64-avx2")
FAST = models.BoostedSettings(rounds=40)
SAMPLES = [*made_up("one", 120, 3, 0), *made_up("two", 120, 3, 1)]
TREES = [*made_up_trees("one", 120, 3, 0), *made_up_trees("two", 120, 3, 1)]


def boosted(settings: models.BoostedSettings = FAST) -> models.LearnedModel:
    return models.LearnedModel(settings, models.RooflineModel(machine_of(TARGET, 2)))


def embedding() -> models.LearnedModel:
    settings = NetworkSettings(width=16, steps=80, batch=64, learning_rate=1e-2)
    return models.LearnedModel(settings, features=LOOP_TREE)


@lru_cache(maxsize=2)
def saved_model(make_model: Callable[[], models.LearnedModel] = boosted) -> models.SavedModel:
    """A model, trained and saved."""
    model = make_model()
    model.observe(TREES if model.features is LOOP_TREE else SAMPLES)
    model.update()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        assert model.save(path, "here")
        return models.load_model(path)


MAKERS: dict[str, Callable[[], models.CostModel]] = {
    "random": models.RandomModel,
    "roofline": lambda: models.RooflineModel(machine_of(TARGET, 2)),
    "blended": lambda: models.BlendedModel(
        models.RandomModel(), models.RooflineModel(machine_of(TARGET, 2))
    ),
    "boosted": boosted,
    "boosted by squares": lambda: boosted(
        models.BoostedSettings(loss=models.LossKind.SQUARES, rounds=40)
    ),
    "boosted by lambdas": lambda: boosted(
        models.BoostedSettings(loss=models.LossKind.LAMBDARANK, rounds=40)
    ),
    "boosted after another": lambda: models.LearnedModel(
        FAST, saved_model(), models.RefitPolicy(fading=models.Fading.HELD_OUT)
    ),
    "saved": saved_model,
    "blended with trees": lambda: models.BlendedModel(saved_model(), boosted()),
    "embedding": embedding,
    "saved embedding": lambda: saved_model(embedding),
}
LEARNING = (
    "boosted",
    "boosted by squares",
    "boosted by lambdas",
    "boosted after another",
    "saved",
    "embedding",
    "saved embedding",
)
OF_TREES = ("embedding", "saved embedding")


@dataclass(frozen=True)
class Case:
    """A model, what it learns from, and what it is asked."""

    make: Callable[[], models.CostModel]
    samples: list[models.Sample]
    draw: Callable[[str, int, int, int], list[models.Sample]]

    @property
    def programs(self) -> NDArray[np.float32]:
        return features_of(self.draw("one", 50, 3, 7))


def case_of(name: str) -> Case:
    if name in OF_TREES:
        pytest.importorskip("torch")
        return Case(MAKERS[name], TREES, made_up_trees)
    return Case(MAKERS[name], SAMPLES, made_up)


@pytest.fixture(params=list(MAKERS))
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(request.param)


def features_of(samples: list[models.Sample]) -> NDArray[np.float32]:
    return np.stack([each.features for each in samples])


def rankings(case: Case) -> list[NDArray[np.float64]]:
    """What a model says before, and after it has learned."""
    model = case.make()
    before = model.predict(case.programs)
    model.observe(case.samples)
    model.update()
    return [before, model.predict(case.programs)]


def test_every_program_gets_a_score(case: Case) -> None:
    for scores in rankings(case):
        assert scores.shape == (50,)
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all()


def test_nothing_to_judge_is_no_fault(case: Case) -> None:
    model = case.make()
    model.observe(())
    assert model.predict(case.programs[:0]).shape == (0,)


def test_a_program_is_judged_by_itself(case: Case) -> None:
    model = case.make()
    model.observe(case.samples)
    model.update()
    scores = model.predict(case.programs)
    order = np.random.default_rng(1).permutation(len(case.programs))
    np.testing.assert_allclose(model.predict(case.programs[order]), scores[order], rtol=1e-9)
    np.testing.assert_allclose(model.predict(case.programs[:5]), scores[:5], rtol=1e-9)
    np.testing.assert_array_equal(model.predict(case.programs), scores)


def test_equal_calls_give_equal_scores(case: Case) -> None:
    for one, other in zip(rankings(case), rankings(case), strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_change_only_where_update_says_so(case: Case) -> None:
    model = case.make()
    before = model.predict(case.programs)
    model.observe(case.samples)
    np.testing.assert_array_equal(model.predict(case.programs), before)
    has_changed = model.update()
    assert has_changed != np.array_equal(model.predict(case.programs), before)
    assert not model.update()


@pytest.mark.parametrize("name", LEARNING)
def test_what_learns_ranks_programs_that_it_has_not_seen(name: str) -> None:
    case = case_of(name)
    model = case.make()
    model.observe(case.samples)
    model.update()
    fresh = case.draw("one", 60, 3, 9)
    scores = model.predict(features_of(fresh))
    times = np.array([each.time_s for each in fresh])
    faster = times[:, None] < times[None, :]
    right = (scores[:, None] > scores[None, :])[faster].mean()
    assert right > 0.85


@pytest.mark.parametrize("make_model", [boosted, embedding])
def test_a_saved_model_gives_the_same_scores(
    make_model: Callable[[], models.LearnedModel], tmp_path: Path
) -> None:
    if make_model is embedding:
        pytest.importorskip("torch")
    saved = saved_model(make_model)
    saved.save(tmp_path / "model")
    again = models.load_model(tmp_path / "model")
    assert (again.loss, again.hardware, again.samples) == (saved.loss, "here", saved.samples)
    programs = case_of("saved" if make_model is boosted else "saved embedding").programs
    np.testing.assert_array_equal(again.predict(programs), saved.predict(programs))
