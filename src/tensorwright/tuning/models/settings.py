"""Settings of learned models: those of all, and those of trees."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

TREES_MODULE = "tensorwright.tuning.models.trees.lightgbm_trees"


class LossKind(StrEnum):
    """The loss of a model: of throughput, of the order of pairs, or of the order of the fastest."""

    SQUARES = "squares"
    PAIRS = "pairs"
    LAMBDARANK = "lambdarank"


class FitSettings(Protocol):
    """How a learned model is fitted.

    module    whose `fit` fits it, imported by name when something is fitted
    missing   what is told where its library cannot be loaded
    reads     the features that it needs; any if ""
    """

    module: ClassVar[str]
    missing: ClassVar[str]
    reads: ClassVar[str]

    @property
    def loss(self) -> LossKind:
        """The loss of the training."""

    @property
    def seed(self) -> int:
        """The seed of every random choice."""


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """How trees are grown, whatever they are trained for.

    rounds, leaves      how many trees, and leaves of each
    bins                the different values of a feature that are distinguished
    least_rows, l2      what keeps leaves from following noise
    feature_share       the share of the features that each tree may use
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
    """The settings of a session's trees; each node, too, may use a share of the features.

    least_hessian   as `least_rows`, in hessian of the loss
    """

    loss: LossKind = LossKind.PAIRS
    least_hessian: float = 0.01

    module: ClassVar[str] = TREES_MODULE
    missing: ClassVar[str] = (
        "the cost model learns nothing, because LightGBM cannot be loaded ({error}): "
        "candidates are judged by the analytic model alone; install lightgbm and libgomp"
    )
    reads: ClassVar[str] = ""
