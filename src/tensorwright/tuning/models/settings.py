"""The settings of boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LossKind(StrEnum):
    """What the trees are trained for."""

    SQUARES = "squares"
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """How trees are grown, whatever they are trained for.

    rounds, leaves      how many trees, and leaves of each; at most 32
    bins                so many different values of a feature are told apart
    least_rows, l2      what keeps leaves from following noise
    feature_share       each tree may ask for so many of the features
    """

    rounds: int = 120
    leaves: int = 31
    learning_rate: float = 0.2
    bins: int = 127
    least_rows: int = 4
    l2: float = 0.5
    feature_share: float = 0.7
    seed: int = 0


@dataclass(frozen=True, slots=True)
class BoostedSettings(GrowthSettings):
    """Of the trees of a session; each node, too, may ask for a share of the features.

    least_hessian   as `least_rows`, in hessian of the loss
    """

    loss: LossKind = LossKind.PAIRS
    least_hessian: float = 0.01
