"""The settings of boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LossKind(StrEnum):
    """What the trees are trained for."""

    SQUARES = "squares"
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class BoostedSettings:
    """How trees are grown.

    rounds, leaves      how many trees, and leaves of each; at most 32
    bins                so many different values of a feature are told apart
    least_rows, least_hessian, l2   what keeps leaves from following noise
    feature_share       each tree, and each node, may ask for so many of the features
    """

    loss: LossKind = LossKind.PAIRS
    rounds: int = 120
    leaves: int = 31
    learning_rate: float = 0.2
    bins: int = 127
    least_rows: int = 4
    least_hessian: float = 0.01
    l2: float = 0.5
    feature_share: float = 0.7
    seed: int = 0
