"""The losses of cost models: functions of the scores of programs.

Each gives the gradient and the hessian for every program's score.  A score is a sum over the
statements of the program, and all of its rows move in one step of boosting: so the hessian of a row
is that of its program times its number of statements, or the steps overshoot and boosting diverges.

When a model is fitted again, and how much its prior still counts.

The prior fades in two ways as n own measurements arrive; the laboratory has the second:

    halving    weight = 1 / 2^(n / half_life), and nothing below 0.05
    held-out   the weight of 1, 1/2, 0 with which a fit to two thirds of the own programs orders
               most pairs of the other third correctly, each third in turn; the largest of equals

Source:   Chen et al., AutoTVM, NeurIPS 2018, section 4: a local model on top of a global one; the
          halving and its 64 samples are of its code (tvm/autotvm/tuner/xgboost_cost_model.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import LaboratoryPart
from tensorwright.tuning.models.protocol import FitSettings, LossKind, TrainingSet, add_up

Column: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]
Slopes: TypeAlias = tuple[Column, Column]

_LEAST_HESSIAN = 1e-3


class Loss(Protocol):
    """A loss over a training set; `step` numbers the rounds of boosting."""

    def value(self, scores: Column, step: int) -> float:
        """The loss of scores (programs,)."""

    def slopes(self, scores: Column, step: int) -> Slopes:
        """Its gradient and a bound of its hessian's diagonal, (programs,) each."""


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseLogistic:
    """The likelihood that of two programs of one workload the faster has the higher score.

    Each program meets `partners` others of its workload, drawn anew in every round of boosting. A
    pair weighs as much as the throughput of its faster program. Pairs closer than `least_gap`
    do not count, nor does a censored program that may be the faster one.

    Source:   Burges et al., RankNet, ICML 2005; Chen et al., AutoTVM, NeurIPS 2018, section 3.2.
    """

    data: TrainingSet
    partners: int = 24
    least_gap: float = 0.02
    least_weight: float = 0.3
    seed: int = 0

    def value(self, scores: Column, step: int) -> float:
        """As `Loss.value`."""
        fast, slow, weights = self.pairs(step)
        return float(np.sum(weights * np.logaddexp(0.0, scores[slow] - scores[fast])))

    def slopes(self, scores: Column, step: int) -> Slopes:
        """As `Loss.slopes`."""
        return pair_slopes(scores, *self.pairs(step))

    def pairs(self, step: int) -> tuple[Places, Places, Column]:
        """The pairs of a round: the faster program of each, the slower one, the weight."""
        fast, slow = draw_pairs(self.data, self.partners, self.least_gap, (self.seed, step))
        weights = np.maximum(self.data.throughput[fast], self.least_weight) / self.partners
        return fast, slow, weights


MakeLoss = Callable[[TrainingSet, int], Loss]
"""The loss of a training set, from it and a seed."""


def loss_maker(kind: LossKind) -> MakeLoss:
    """The maker of losses of a kind.  Raises: MachineError if the laboratory is missing."""
    if kind is LossKind.PAIRS:
        return lambda data, seed: PairwiseLogistic(data, seed=seed)
    find = LaboratoryPart(f"loss {kind.value}", "cost_models.losses", "loss_maker").load()
    make: MakeLoss = find(kind)
    return make


def make_loss(data: TrainingSet, settings: FitSettings) -> Loss:
    """The loss that the settings name."""
    return loss_maker(settings.loss)(data, settings.seed)


def draw_pairs(
    data: TrainingSet, partners: int, least_gap: float, seeds: tuple[int, int]
) -> tuple[Places, Places]:
    """Each program with some others of its workload: the faster of each pair, and the slower one.

    Left out are pairs that are too close, and those whose faster program was dropped early.
    """
    _, starts, sizes = np.unique(data.groups, return_index=True, return_counts=True)
    source = np.random.Generator(np.random.SFC64(list(seeds)))
    one = np.repeat(np.arange(len(data.groups)), partners)
    group = data.groups[one]
    drawn = source.random(len(one)) * sizes[group]
    other = starts[group] + drawn.astype(np.int64)
    speed = data.throughput
    fast = np.where(speed[one] >= speed[other], one, other)
    slow = one + other - fast
    is_clear = speed[fast] * (1.0 - least_gap) > speed[slow]
    is_clear &= ~data.is_censored[fast]
    return fast[is_clear], slow[is_clear]


def pair_slopes(scores: Column, fast: Places, slow: Places, weights: Column) -> Slopes:
    """Both scores of a pair move, so the second derivative counts twice."""
    doubt = _sigmoid(scores[slow] - scores[fast])
    pull = weights * doubt
    bend = 2.0 * weights * doubt * (1.0 - doubt)
    count = len(scores)
    gradient = add_up(slow, pull, count) - add_up(fast, pull, count)
    hessian = add_up(slow, bend, count) + add_up(fast, bend, count)
    return gradient, hessian


def row_slopes(data: TrainingSet, slopes: Slopes) -> Slopes:
    """Gradient and hessian of each row (rows,) from those of its program."""
    gradient, hessian = slopes
    rows = np.maximum(hessian, _LEAST_HESSIAN) * data.counts
    return np.repeat(gradient, data.counts), np.repeat(rows, data.counts)


def _sigmoid(values: Column) -> Column:
    result: Column = 0.5 * (1.0 + np.tanh(0.5 * values))
    return result


class Fading(StrEnum):
    """How the prior gives way to own measurements."""

    HALVING = "halving"
    HELD_OUT = "held-out"


@dataclass(frozen=True, slots=True)
class RefitPolicy:
    """When a model is fitted again, on how much, and how its prior fades.

    A fit takes time in proportion to its samples, a measurement a constant one: so fitting takes a
    bounded share of the time, some 5 percent, if it waits for a share of new samples.

    first      samples of the first fit               least  new samples of a refit
    growth     new samples of a refit, as a share of those before
    half_life  the samples with which the prior counts half, if it fades by halving
    reweigh    the growth of the samples after which a held-out weight is judged again
    most       the samples that are kept: the oldest are dropped first
    """

    first: int = 16
    least: int = 8
    growth: float = 0.06
    half_life: float = 64.0
    most: int = 8192
    fading: Fading = Fading.HALVING
    reweigh: float = 1.5

    def is_due(self, fitted: int, new: int) -> bool:
        """Whether to fit again, after `fitted` samples at the last fit and `new` ones since."""
        if fitted + new < self.first:
            return False
        return new >= self.least and new >= self.growth * fitted


ScoreBy = Callable[[TrainingSet, Column, TrainingSet], Column]
"""Fits to a set from a margin, and gives the scores of another without its margin."""
HELD_OUT_WEIGHT = LaboratoryPart("fading held-out", "cost_models.held_out", "held_out_weight")
"""From a set, the prior's scores of its programs, and a `ScoreBy`: the weight of the prior."""
