"""Losses of all kinds: their slopes, and what those besides that of pairs look at."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.tuning.models.model_samples import made_up

from tensorwright.tuning.models import BoostedSettings, LossKind, Sample, make_loss
from tensorwright.tuning.models.protocol import TrainingSet, training_set
from tensorwright_lab.cost_models.losses import LambdaRank, WeightedSquares


def mixed_set() -> TrainingSet:
    samples = made_up("a", 12, 3, 0) + made_up("b", 9, 2, 1)
    cut = [Sample(s.workload, s.features, s.time_s * 0.8, True) for s in samples[::4]]
    return training_set(samples + cut)


@pytest.mark.parametrize("kind", LossKind)
def test_a_gradient_is_that_of_finite_differences(kind: LossKind) -> None:
    data = mixed_set()
    loss = make_loss(data, BoostedSettings(loss=kind))
    scores = np.random.default_rng(3).normal(0.5, 0.5, len(data.counts))
    gradient, hessian = loss.slopes(scores, 7)
    step = 1e-5
    for place in range(len(scores)):
        moved = np.zeros(len(scores))
        moved[place] = step
        difference = loss.value(scores + moved, 7) - loss.value(scores - moved, 7)
        assert gradient[place] == pytest.approx(difference / (2 * step), abs=1e-6)
    assert (hessian >= 0).all()


@pytest.mark.parametrize("kind", LossKind)
def test_the_hessian_bounds_the_curvature(kind: LossKind) -> None:
    """Along any direction: x H x <= x diag(h) x, or a step of boosting overshoots."""
    data = mixed_set()
    loss = make_loss(data, BoostedSettings(loss=kind))
    source = np.random.default_rng(5)
    scores = source.normal(0.5, 0.5, len(data.counts))
    _, hessian = loss.slopes(scores, 2)
    for _ in range(20):
        way = source.normal(size=len(scores))
        ahead, _ = loss.slopes(scores + 1e-6 * way, 2)
        back, _ = loss.slopes(scores - 1e-6 * way, 2)
        curvature = float(way @ (ahead - back)) / 2e-6
        assert curvature <= float(way @ (hessian * way)) * (1 + 1e-3) + 1e-6


def test_a_censored_program_counts_only_above_its_bound() -> None:
    row = np.zeros((1, 4), np.float32)
    data = training_set([Sample("a", row, 1.0), Sample("a", row, 4.0, is_censored=True)])
    loss = WeightedSquares(data)
    below, _ = loss.slopes(np.array([1.0, 0.1]), 0)
    above, _ = loss.slopes(np.array([1.0, 0.5]), 0)
    assert below.tolist() == [0.0, 0.0]
    assert above[1] > 0


def test_lambdas_weigh_what_a_swap_would_cost() -> None:
    """Of two pairs equally far apart, that at the top of the ranking weighs more."""
    times = [1.0, 1.2, 2.0, 3.0, 6.0, 9.0]
    data = training_set([Sample("a", np.zeros((1, 2), np.float32), time) for time in times])
    loss = LambdaRank(data, partners=200, share=0.0)
    scores = np.arange(6.0)[::-1]
    fast, slow, weights = loss.pairs(scores, 0)
    of_pair = {(int(a), int(b)): float(w) for a, b, w in zip(fast, slow, weights, strict=True)}
    assert of_pair[0, 1] > of_pair[2, 3] > of_pair[4, 5]
    assert np.isclose(weights.mean() * 200, 1.0)
    assert set(of_pair) == {(a, b) for a in range(6) for b in range(a + 1, 6)}
    gradient, hessian = loss.slopes(scores, 0)
    assert gradient[0] < 0 < gradient[5]
    assert np.isclose(gradient.sum(), 0.0)
    assert (hessian > 0).all()
