"""Losses besides that of pairs: of throughput, and of the order of the fastest programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensorwright.tuning.models import LossKind, losses
from tensorwright.tuning.models.protocol import TrainingSet


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSquares:
    """Squared error against normalised throughput, weighted by it, so that fast programs matter.

    A censored program only counts where its score is above the bound of its throughput.

    Source:   Zheng et al., Ansor, OSDI 2020, section 5.2.
    """

    data: TrainingSet
    least_weight: float = 0.05

    def value(self, scores: losses.Column, step: int) -> float:
        """As `Loss.value`."""
        error = self._errors(scores)
        return float(0.5 * np.sum(self._weights() * error * error))

    def slopes(self, scores: losses.Column, step: int) -> losses.Slopes:
        """As `Loss.slopes`. Those that do not count keep a small hessian: they pull nowhere."""
        weights = self._weights()
        return weights * self._errors(scores), weights

    def _weights(self) -> losses.Column:
        return np.maximum(self.data.throughput, self.least_weight)

    def _errors(self, scores: losses.Column) -> losses.Column:
        error = scores - self.data.throughput
        return np.where(self.data.is_censored, np.maximum(error, 0.0), error)


@dataclass(frozen=True, slots=True, eq=False)
class LambdaRank:
    """Pairs weigh as much as swapping the two would change the ranking's discounted gain.

    gain of a program = 2^(2 throughput) - 1;  discount at place r (from 0) = 1 / log2(r + 2)
    change of a pair  = |difference of gains| * |difference of discounts|, places by the scores of
                        the round
    weight of a pair  = (change + 0.3 * mean change), scaled to 1 / partners in the mean

    The share that all pairs have is ours: without it the slow programs are hardly ordered, among
    which a search begins.
    Pairs are drawn as for `PairwiseLogistic`.

    Source:   Burges, From RankNet to LambdaRank to LambdaMART, MSR-TR-2010-82.
    """

    data: TrainingSet
    partners: int = 24
    least_gap: float = 0.02
    share: float = 0.3
    seed: int = 0

    def value(self, scores: losses.Column, step: int) -> float:
        """As `Loss.value`."""
        fast, slow, weights = self.pairs(scores, step)
        return float(np.sum(weights * np.logaddexp(0.0, scores[slow] - scores[fast])))

    def slopes(self, scores: losses.Column, step: int) -> losses.Slopes:
        """As `Loss.slopes`: the weights are taken as given."""
        return losses.pair_slopes(scores, *self.pairs(scores, step))

    def pairs(
        self, scores: losses.Column, step: int
    ) -> tuple[losses.Places, losses.Places, losses.Column]:
        """The pairs of a round: the faster program of each, the slower one, the weight."""
        fast, slow = losses.draw_pairs(self.data, self.partners, self.least_gap, (self.seed, step))
        gain = np.exp2(2.0 * self.data.throughput)
        discount = 1.0 / np.log2(_ranks(scores, self.data.groups) + 2.0)
        change = np.abs(gain[fast] - gain[slow]) * np.abs(discount[fast] - discount[slow])
        if not len(change) or not change.any():
            return fast, slow, np.full(len(change), 1.0 / self.partners)
        weights = change + self.share * change.mean()
        return fast, slow, weights / (weights.mean() * self.partners)


def _ranks(scores: losses.Column, groups: losses.Places) -> losses.Places:
    """(programs,): each program's rank in its workload, the highest score at 0."""
    order = np.lexsort((-scores, groups))
    _, starts = np.unique(groups, return_index=True)
    ranks = np.empty(len(scores), np.int64)
    ranks[order] = np.arange(len(scores)) - starts[groups]
    return ranks


def loss_maker(kind: LossKind) -> losses.MakeLoss:
    """The factory of losses of a kind that does not compare pairs."""
    if kind is LossKind.LAMBDARANK:
        return lambda data, seed: LambdaRank(data, seed=seed)
    return lambda data, seed: WeightedSquares(data)
