"""How learned models are fitted: the settings of trees and of networks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeAlias

TREES_MODULE = "tensorwright.tuning.models.trees.lightgbm_trees"
NETWORK_MODULE = "tensorwright.tuning.models.embedding.torch_training"


class LossKind(StrEnum):
    """What a model is trained for: throughput, the order of pairs, or that of the fastest."""

    SQUARES = "squares"
    PAIRS = "pairs"
    LAMBDARANK = "lambdarank"


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """How trees are grown, whatever they are trained for.

    rounds, leaves      how many trees, and leaves of each
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

    module: ClassVar[str] = TREES_MODULE
    missing: ClassVar[str] = (
        "the cost model learns nothing, because LightGBM cannot be loaded ({error}): "
        "candidates are judged by the analytic model alone; install lightgbm and libgomp"
    )


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Of a program embedding.

    width   numbers of an embedding          steps   how often weights are moved
    batch   programs of a step               learning_rate, decay   of AdamW
    """

    width: int = 48
    steps: int = 300
    batch: int = 128
    learning_rate: float = 3e-3
    decay: float = 1e-3
    loss: LossKind = LossKind.PAIRS
    seed: int = 0

    module: ClassVar[str] = NETWORK_MODULE
    missing: ClassVar[str] = (
        "the program embedding learns nothing, because PyTorch cannot be loaded ({error}): "
        "what was known before goes on alone; install tensorwright[torch]"
    )


FitSettings: TypeAlias = BoostedSettings | NetworkSettings
