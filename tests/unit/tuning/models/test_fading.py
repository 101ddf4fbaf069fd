"""How what was known before gives way to own measurements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tests.unit.tuning.models.model_samples import made_up

from tensorwright.tuning import models
from tensorwright_lab.cost_models import judge, scores_of

SETTINGS = models.BoostedSettings(rounds=30)
HELD_OUT = models.RefitPolicy(fading=models.Fading.HELD_OUT)


class Oracle:
    """Knows the times of made-up programs, or their reverse."""

    def __init__(self, sign: float) -> None:
        self.sign = sign

    def predict(self, features: models.Features) -> models.Scores:
        work = features[..., 0] + 0.5 * features[..., 1] * (features[..., 2] > 3) + 1.0
        found: models.Scores = -4.0 * self.sign * np.log(work.sum(axis=1, dtype=np.float64))
        return found

    def observe(self, samples: object) -> None:
        """Nothing is learned."""

    def update(self) -> bool:
        return False


def accuracy(model: models.LearnedModel) -> float:
    tested = made_up("a", 80, 3, 9)
    times: NDArray[np.float64] = np.array([each.time_s for each in tested])
    return judge(scores_of(model, tested), times).pair_accuracy


def fitted(prior: Oracle | None, policy: models.RefitPolicy, count: int) -> models.LearnedModel:
    model = models.LearnedModel(SETTINGS, prior, policy)
    model.observe(made_up("a", count, 3, 0))
    assert model.refit()
    return model


def test_what_holds_good_on_held_out_programs_keeps_its_weight() -> None:
    good = fitted(Oracle(1.0), HELD_OUT, 128)
    halved = fitted(Oracle(1.0), models.RefitPolicy(), 128)
    assert good._weight == 1.0
    assert halved._weight == 0.25
    assert accuracy(good) > accuracy(fitted(None, models.RefitPolicy(), 128))


def test_what_misleads_is_dropped_at_once() -> None:
    bad = fitted(Oracle(-1.0), HELD_OUT, 48)
    assert bad._weight == 0.0
    assert accuracy(bad) >= accuracy(fitted(Oracle(-1.0), models.RefitPolicy(), 48))


def test_the_weight_is_judged_again_when_there_are_more() -> None:
    model = fitted(Oracle(1.0), HELD_OUT, 48)
    assert model._weighed == 48
    model.observe(made_up("a", 8, 3, 1))
    model.refit()
    assert model._weighed == 48
    model.observe(made_up("a", 16, 3, 2))
    model.refit()
    assert model._weighed == 72


def test_censored_programs_do_not_judge() -> None:
    samples = made_up("a", 48, 3, 0)
    dropped = [
        models.Sample(s.workload, s.features, s.time_s, True) for s in made_up("a", 48, 3, 1)
    ]
    model = models.LearnedModel(SETTINGS, Oracle(1.0), HELD_OUT)
    model.observe(samples + dropped)
    assert model.refit()
    assert model._weight > 0.0


def test_scores_of_another_kind_do_not_count() -> None:
    settings = models.BoostedSettings(rounds=10, loss=models.LossKind.SQUARES)
    for fading in models.Fading:
        model = models.LearnedModel(settings, Oracle(1.0), models.RefitPolicy(fading=fading))
        model.observe(made_up("a", 32, 3, 0))
        model.refit()
        assert model._weight == 0.0


def test_models_of_both_rankings_start_from_each_other() -> None:
    """Scores of pairs and of lambdas are differences of one kind."""
    source = models.LearnedModel(models.BoostedSettings(rounds=10, loss=models.LossKind.LAMBDARANK))
    source.observe(made_up("a", 64, 3, 5))
    taught = source.learned("here")
    assert isinstance(taught, models.SavedModel)
    model = models.LearnedModel(SETTINGS, taught)
    model.observe(made_up("a", 32, 3, 0))
    model.refit()
    assert 0.5 < model._weight < 1.0
