"""Losses of the time model's trees: errors of log2 of the seconds of programs.

The seconds of a program are the sum of those of its statements, so a statement's row gets the
program's slope times the share of the time that it takes.

An error has two parts: that of the workload, which all its programs have in common, and that of the
program against the others.  Choosing among the programs of a workload needs the second alone, so
that counts more.  The quality of choices is the cost of errors, not their size.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tensorwright.tuning.models.protocol import GrowthSettings
from tensorwright_lab.pretraining.programs import Column, Programs

_LEAST_WEIGHT = 0.05  # of a program that is slow, in throughput
_LARGEST_ERROR = 2.0  # the bound of the slope of large errors
_LEAST_HESSIAN = 1e-3


class TimeLoss(Protocol):
    """A loss of predicted log2 seconds (programs,)."""

    def slopes(self, programs: Programs, weights: Column, predicted: Column) -> _Slopes:
        """Its gradient and a bound of its hessian's diagonal, (programs,) each."""


_Slopes = tuple[Column, Column]


@dataclass(frozen=True, slots=True)
class MedianLoss:
    """Squares of errors, large ones bounded; `within` is how much more those against the other
    programs of a workload count.  A censored program pulls only if it is predicted too fast.
    """

    within: float = 4.0

    def slopes(self, programs: Programs, weights: Column, predicted: Column) -> _Slopes:
        """As `TimeLoss.slopes`."""
        error = predicted - programs.log2_s
        common = np.bincount(programs.groups, weights * error) / np.bincount(
            programs.groups, weights
        )
        pull = error + self.within * (error - common[programs.groups])
        most = _LARGEST_ERROR * (1.0 + self.within)
        pull = np.clip(pull, -most, most)
        pull[programs.is_censored & (error > 0)] = 0.0
        return weights * pull, weights * (1.0 + self.within)


@dataclass(frozen=True, slots=True)
class UpperLoss:
    """Squares of errors, those of programs that take longer than predicted `share / (1 - share)`
    times as much: an expectile, which is smooth where a quantile is not.

    Source:   Newey and Powell, Asymmetric least squares estimation and testing, Econometrica 1987.
    """

    share: float = 0.9

    def slopes(self, programs: Programs, weights: Column, predicted: Column) -> _Slopes:
        """As `TimeLoss.slopes`."""
        error = predicted - programs.log2_s
        price = 2.0 * np.where(error < 0, self.share, 1.0 - self.share)
        pull = price * np.clip(error, -_LARGEST_ERROR, _LARGEST_ERROR)
        pull[programs.is_censored & (error > 0)] = 0.0
        return weights * pull, weights * price


def weights_of(programs: Programs) -> Column:
    """How much each program counts: fast ones more, large workloads less than they have programs.

    Shapes:  (programs,), 1 on average
    """
    throughput = np.exp2(programs.least_log2_s - programs.log2_s)
    weights = np.sqrt(np.maximum(throughput, _LEAST_WEIGHT))
    sums = np.bincount(programs.groups, weights)
    sizes = np.bincount(programs.groups)
    weights *= (np.sqrt(sizes) / sums)[programs.groups]
    scaled: Column = weights * len(weights) / weights.sum()
    return scaled


def row_slopes(programs: Programs, shares: Column, slopes: _Slopes) -> _Slopes:
    """Gradient and hessian of each row, from those of its program and its share of the time."""
    gradient, hessian = slopes
    return (
        np.repeat(gradient, programs.counts) * shares,
        np.maximum(np.repeat(hessian, programs.counts) * shares, _LEAST_HESSIAN),
    )


_LEAST_PROGRAMS = 4  # workloads with fewer are left out
_GAP = 0.04  # log2: closer pairs are left out
_LOST = 3.0


@dataclass(frozen=True, slots=True)
class ChoiceAccuracy:
    """The times of the chosen programs, over the fastest measured of their workloads.

    workloads   how many                       mean   geometric
    p90, p99, most   of a hundred choices the 90th, the 99th, and the worst of all
    lost        share of the workloads that take more than 3 times as long
    pairs       share of the pairs of a workload in the right order
    spread      root mean square of the error of log2 seconds
    """

    workloads: int
    mean: float
    p90: float
    p99: float
    most: float
    lost: float
    pairs: float
    spread: float

    def __str__(self) -> str:
        return (
            f"{self.workloads} workloads: {self.mean:.3f} times the best, 90 % below {self.p90:.2f}"
            f", 99 % below {self.p99:.2f}, at most {self.most:.1f}, {100 * self.lost:.1f} % above "
            f"{_LOST:g}; pairs {self.pairs:.3f}, error {self.spread:.2f} (log2)"
        )


def accuracy_of(programs: Programs, scores: Column, order: Column | None = None) -> ChoiceAccuracy:
    """Judge scores (programs,), lower is better; NaN where no workload has enough programs.

    order   (programs,): the lowest is chosen; the scores themselves where None
    """
    order = scores if order is None else order
    ratios: list[float] = []
    pairs: list[float] = []
    edges = np.searchsorted(programs.groups, np.arange(programs.workloads + 1))
    for low, high in itertools.pairwise(edges):
        times, own = programs.log2_s[low:high], scores[low:high]
        chosen = np.argmin(order[low:high])
        if len(times) < _LEAST_PROGRAMS:
            continue
        ratios.append(float(2.0 ** (times[chosen] - times.min())))
        fast, slow = np.nonzero(times[:, None] < times[None] - _GAP)
        if len(fast):
            pairs.append(float(np.mean(own[fast] < own[slow])))
    return _summary(np.array(ratios), np.array(pairs), scores - programs.log2_s)


def _summary(ratios: Column, pairs: Column, errors: Column) -> ChoiceAccuracy:
    if not len(ratios):
        return ChoiceAccuracy(0, *[float("nan")] * 7)
    return ChoiceAccuracy(
        len(ratios),
        float(np.exp(np.mean(np.log(ratios)))),
        float(np.quantile(ratios, 0.9)),
        float(np.quantile(ratios, 0.99)),
        float(ratios.max()),
        float(np.mean(ratios > _LOST)),
        float(np.mean(pairs)) if len(pairs) else float("nan"),
        float(np.sqrt(np.mean(errors**2))),
    )


@dataclass(frozen=True, slots=True)
class TimeTreeSettings(GrowthSettings):
    """As `GrowthSettings`; `threads` changes how long it takes, and nothing else.

    On a fifth of 3,498 workloads, choices by 800 trees took 1.160 times the best, by these 500
    1.164, by 400 at a rate of 0.06 1.173; fewer leaves, more rows a leaf, and half of the features
    for each tree made no difference above noise.
    """

    rounds: int = 500
    learning_rate: float = 0.1
    least_rows: int = 20
    l2: float = 5.0
    feature_share: float = 0.3
    threads: int = 1
