"""One suite for every cost model: a new one is one more entry in `MAKERS`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.tuning.model_samples import made_up

from tensorwright.base import Target
from tensorwright.tuning.models import (
    BlendedModel,
    BoostedModel,
    BoostedSettings,
    CostModel,
    LossKind,
    RandomModel,
    RooflineModel,
    Sample,
    SavedModel,
    load_model,
    machine_of,
)

TARGET = Target.parse("x86-64-avx2")
FAST = BoostedSettings(rounds=40)
SAMPLES = [*made_up("one", 120, 3, 0), *made_up("two", 120, 3, 1)]


def boosted(settings: BoostedSettings = FAST) -> BoostedModel:
    return BoostedModel(settings, RooflineModel(machine_of(TARGET, 2)))


@lru_cache(maxsize=1)
def saved_model() -> SavedModel:
    """Trees, trained and saved."""
    model = boosted()
    model.observe(SAMPLES)
    model.update()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        assert model.save(path, "here")
        return load_model(path)


MAKERS: dict[str, Callable[[], CostModel]] = {
    "random": RandomModel,
    "roofline": lambda: RooflineModel(machine_of(TARGET, 2)),
    "blended": lambda: BlendedModel(RandomModel(), RooflineModel(machine_of(TARGET, 2))),
    "boosted": boosted,
    "boosted by squares": lambda: boosted(BoostedSettings(loss=LossKind.SQUARES, rounds=40)),
    "saved": saved_model,
    "blended with trees": lambda: BlendedModel(saved_model(), boosted()),
}
LEARNING = ("boosted", "boosted by squares", "saved")


@pytest.fixture(params=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Callable[[], CostModel]:
    maker: Callable[[], CostModel] = MAKERS[request.param]
    return maker


def features_of(samples: list[Sample]) -> NDArray[np.float32]:
    return np.stack([each.features for each in samples])


PROGRAMS = features_of(made_up("one", 50, 3, 7))


def rankings(model: CostModel) -> list[NDArray[np.float64]]:
    """What a model says before, and after it has learned."""
    before = model.predict(PROGRAMS)
    model.observe(SAMPLES)
    model.update()
    return [before, model.predict(PROGRAMS)]


def test_every_program_gets_a_score(make: Callable[[], CostModel]) -> None:
    for scores in rankings(make()):
        assert scores.shape == (50,)
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all()


def test_nothing_to_judge_is_no_fault(make: Callable[[], CostModel]) -> None:
    model = make()
    model.observe(())
    assert model.predict(PROGRAMS[:0]).shape == (0,)


def test_a_program_is_judged_by_itself(make: Callable[[], CostModel]) -> None:
    model = make()
    model.observe(SAMPLES)
    model.update()
    scores = model.predict(PROGRAMS)
    order = np.random.default_rng(1).permutation(len(PROGRAMS))
    np.testing.assert_allclose(model.predict(PROGRAMS[order]), scores[order], rtol=1e-9)
    np.testing.assert_allclose(model.predict(PROGRAMS[:5]), scores[:5], rtol=1e-9)
    np.testing.assert_array_equal(model.predict(PROGRAMS), scores)


def test_equal_calls_give_equal_scores(make: Callable[[], CostModel]) -> None:
    for one, other in zip(rankings(make()), rankings(make()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_change_only_where_update_says_so(make: Callable[[], CostModel]) -> None:
    model = make()
    before = model.predict(PROGRAMS)
    model.observe(SAMPLES)
    np.testing.assert_array_equal(model.predict(PROGRAMS), before)
    has_changed = model.update()
    assert has_changed != np.array_equal(model.predict(PROGRAMS), before)
    assert not model.update()


@pytest.mark.parametrize("name", LEARNING)
def test_what_learns_ranks_programs_that_it_has_not_seen(name: str) -> None:
    model = MAKERS[name]()
    model.observe(SAMPLES)
    model.update()
    fresh = made_up("one", 60, 3, 9)
    scores = model.predict(features_of(fresh))
    times = np.array([each.time_s for each in fresh])
    faster = times[:, None] < times[None, :]
    right = (scores[:, None] > scores[None, :])[faster].mean()
    assert right > 0.85


def test_a_saved_model_gives_the_same_scores(tmp_path: Path) -> None:
    saved = saved_model()
    saved.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert (again.loss, again.hardware, again.samples) == (saved.loss, "here", saved.samples)
    np.testing.assert_array_equal(again.predict(PROGRAMS), saved.predict(PROGRAMS))
