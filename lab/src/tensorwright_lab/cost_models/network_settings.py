"""How a program embedding is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tensorwright.tuning.models import LossKind
from tensorwright_lab.feature_sets import LOOP_TREE


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Numbers of the network and of its training.

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

    module: ClassVar[str] = "tensorwright_lab.cost_models.torch_training"
    missing: ClassVar[str] = (
        "the program embedding learns nothing, because PyTorch cannot be loaded ({error}): "
        "what was known before goes on alone; install tensorwright[torch]"
    )
    reads: ClassVar[str] = LOOP_TREE.name
