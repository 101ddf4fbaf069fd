from __future__ import annotations

import numpy as np
import pytest

from tensorwright.tuning.models import Sample
from tensorwright.tuning.models.protocol import Features, Scores
from tensorwright_lab.cost_models import judge, overall, scores_of, split
from tensorwright_lab.cost_models.accuracy import count_pairs

TIMES = np.array([1.0, 2.0, 4.0, 8.0])


def test_a_right_and_a_wrong_order() -> None:
    right = judge(-TIMES, TIMES)
    assert (right.pair_accuracy, right.pairs, right.top1, right.top5) == (1.0, 6, 1.0, 1.0)
    wrong = judge(TIMES, TIMES)
    assert (wrong.pair_accuracy, wrong.top1) == (0.0, 0.125)
    assert overall([right, wrong]).pair_accuracy == 0.5
    assert overall([right, wrong]).pairs == 12


def test_ties_count_half_and_close_pairs_not_at_all() -> None:
    assert count_pairs(np.zeros(4), TIMES) == (3.0, 6)
    assert count_pairs(np.array([1.0, 2.0]), np.array([1.0, 1.02])) == (0.0, 0)
    assert judge(np.array([1.0, 2.0]), np.array([1.0, 1.02])).pair_accuracy == 1.0


def test_the_error_is_that_after_the_best_line() -> None:
    throughput = TIMES.min() / TIMES
    found = judge(3.0 * throughput - 7.0, TIMES)
    assert found.rmse == pytest.approx(0.0, abs=1e-12)
    assert found.r2 == pytest.approx(1.0)


def test_top5_is_the_best_of_the_first_five() -> None:
    times = np.arange(1.0, 11.0)
    scores = times.copy()
    scores[2] = 100.0  # the third fastest is among the first five, the fastest is not
    assert judge(scores, times).top5 == pytest.approx(1 / 3)


def test_parts_are_disjoint_and_whole() -> None:
    train, test = split(50, 3)
    assert len(test) == 10
    assert sorted(train + test) == list(range(50))
    assert split(50, 3) == (train, test)


def test_samples_of_different_lengths_are_scored_in_order() -> None:
    class Counting:
        def predict(self, features: Features) -> Scores:
            return features.sum(axis=(1, 2), dtype=np.float64)

        def observe(self, samples: object) -> None:
            raise AssertionError

        def update(self) -> bool:
            return False

    samples = [Sample("a", np.full((n, 2), n, np.float32), 1.0) for n in (3, 1, 2, 3)]
    assert scores_of(Counting(), samples).tolist() == [18, 2, 8, 18]
