"""The accuracy of a cost model: the order of two programs, and the fastest of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.models import CostModel, Features, Sample, Scores

LEAST_GAP = 0.03
"""Pairs of programs whose times are closer than this share are left out."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a model did on programs of one workload that it had not seen.

    pair_accuracy  share of the pairs that it orders as they were measured; a tie counts half
    pairs          how many pairs were told apart
    top1, top5     the best time of all over that of the best of its first one or five
    rmse, r2       of normalised throughput, after the best line through scores and throughput
    """

    pair_accuracy: float
    pairs: int
    top1: float
    top5: float
    rmse: float
    r2: float


def judge(scores: Scores, times_s: NDArray[np.float64]) -> Judgement:
    """Compare scores (programs,) with measured times (programs,) of one workload."""
    right, pairs = count_pairs(scores, times_s)
    best = float(times_s.min())
    order = np.argsort(-scores, kind="stable")
    throughput = best / times_s
    error = throughput - _fitted(scores, throughput)
    spread = float(np.sum((throughput - throughput.mean()) ** 2))
    return Judgement(
        right / pairs if pairs else 1.0,
        pairs,
        best / float(times_s[order[0]]),
        best / float(times_s[order[:5]].min()),
        float(np.sqrt(np.mean(error**2))),
        1.0 - float(np.sum(error**2)) / spread if spread else 1.0,
    )


def count_pairs(scores: Scores, times_s: NDArray[np.float64]) -> tuple[float, int]:
    """How many pairs are in the right order, and how many are further apart than the gap."""
    fast, slow = np.nonzero(times_s[:, None] < times_s[None] * (1.0 - LEAST_GAP))
    difference = scores[fast] - scores[slow]
    return float(np.sum(difference > 0) + 0.5 * np.sum(difference == 0)), len(fast)


def overall(judgements: Sequence[Judgement]) -> Judgement:
    """The mean over workloads, whatever their numbers of pairs."""
    means = [
        float(np.mean([getattr(each, name) for each in judgements]))
        for name in ("pair_accuracy", "top1", "top5", "rmse", "r2")
    ]
    accuracy, top1, top5, rmse, r2 = means
    return Judgement(accuracy, sum(each.pairs for each in judgements), top1, top5, rmse, r2)


def scores_of(model: CostModel, samples: Sequence[Sample]) -> Scores:
    """The scores of samples in order; those with equal numbers of statements at once."""
    scores = np.zeros(len(samples))
    counts = [len(sample.features) for sample in samples]
    for count in sorted(set(counts)):
        places = [index for index, own in enumerate(counts) if own == count]
        features: Features = np.stack([samples[index].features for index in places])
        scores[places] = model.predict(features)
    return scores


def split(count: int, seed: int, test_share: float = 0.2) -> tuple[list[int], list[int]]:
    """The numbers 0..count-1 in two parts at random: for training and for testing."""
    order = np.random.default_rng(seed).permutation(count)
    tested = max(1, round(test_share * count))
    return sorted(order[tested:].tolist()), sorted(order[:tested].tolist())


def _fitted(scores: Scores, throughput: NDArray[np.float64]) -> NDArray[np.float64]:
    """The throughput that the best line through the points gives for each score."""
    centred = scores - scores.mean()
    spread = float(np.sum(centred**2))
    slope = float(np.sum(centred * throughput)) / spread if spread else 0.0
    line: NDArray[np.float64] = throughput.mean() + slope * centred
    return line
