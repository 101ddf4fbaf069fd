"""The quality of choices by predictions: the cost of errors, not their size."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from tensorwright_lab.pretraining.programs import Column, Programs

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
