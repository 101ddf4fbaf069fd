from __future__ import annotations

import numpy as np
from tests.unit.tuning.models.model_samples import made_up

from tensorwright.tuning.models import Sample
from tensorwright.tuning.models.losses import PairwiseLogistic, row_slopes
from tensorwright.tuning.models.protocol import training_set


def test_a_row_has_the_hessian_of_its_program_times_the_number_of_statements() -> None:
    data = training_set(made_up("a", 2, 3, 0) + made_up("b", 1, 1, 1))
    gradient = np.array([1.0, 2.0, 3.0])
    hessian = np.array([0.5, 0.25, 1.0])
    row_gradient, row_hessian = row_slopes(data, (gradient, hessian))
    assert row_gradient.tolist() == [1, 1, 1, 2, 2, 2, 3]
    assert row_hessian.tolist() == [1.5, 1.5, 1.5, 0.75, 0.75, 0.75, 1.0]


def test_throughput_is_normalised_by_the_best_that_was_measured_to_the_end() -> None:
    row = np.zeros((1, 4), np.float32)
    data = training_set(
        [
            Sample("b", row, 3.0),
            Sample("a", row, 2.0),
            Sample("b", row, 6.0),
            Sample("a", row, 8.0, is_censored=True),
            Sample("c", row, 5.0, is_censored=True),
        ]
    )
    assert data.groups.tolist() == [0, 0, 1, 1, 2]
    assert data.throughput.tolist() == [1.0, 0.5, 1.0, 0.25, 1.0]
    assert data.is_censored.tolist() == [False, False, False, True, True]


def test_a_censored_program_is_never_the_faster_of_a_pair() -> None:
    row = np.zeros((1, 4), np.float32)
    times = [1.0, 2.0, 3.0, 4.0]
    samples = [Sample("a", row, t, is_censored=t in (2.0, 4.0)) for t in times]
    data = training_set([*samples, Sample("b", row, 9.0), Sample("b", row, 1.0)])
    fast, slow, weights = PairwiseLogistic(data, partners=64).pairs(0)
    pairs = set(zip(fast.tolist(), slow.tolist(), strict=True))
    assert pairs == {(0, 1), (0, 2), (0, 3), (2, 3), (5, 4)}
    assert (weights > 0).all()


def test_pairs_that_are_close_say_nothing() -> None:
    row = np.zeros((1, 4), np.float32)
    data = training_set([Sample("a", row, 1.0), Sample("a", row, 1.01)])
    fast, _, _ = PairwiseLogistic(data).pairs(0)
    assert len(fast) == 0
