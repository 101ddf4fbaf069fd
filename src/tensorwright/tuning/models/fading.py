"""When a model is fitted again, and how much its prior still counts.

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

from tensorwright.base import LaboratoryPart
from tensorwright.tuning.models.losses import Column
from tensorwright.tuning.models.training import TrainingSet


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
