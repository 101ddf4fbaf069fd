"""Losses of the time model's trees: errors of log2 of the seconds of programs.

The seconds of a program are the sum of those of its statements, so a statement's row gets the
program's slope times the share of the time that it takes.

An error has two parts: that of the workload, which all its programs have in common, and that of the
program against the others.  Choosing among the programs of a workload needs the second alone, so
that counts more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

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
