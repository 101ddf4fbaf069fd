"""What a program embedding reads, from rows of the feature set `loop-tree`; how it is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.models import Features, LossKind
from tensorwright_lab.feature_sets import LEAF_FIELDS, LOOP_TREE, LOOPS, TREE_FIELDS


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


Flags = NDArray[np.bool_]

_PLACE = 2  # fields that say where in the tree a loop is
LOOP_WIDTH = len(TREE_FIELDS) - _PLACE
LEAF_WIDTH = len(LEAF_FIELDS)


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Programs of equal numbers of rows, each a statement with its loops, outermost first.

    loops     (programs, rows, LOOPS, LOOP_WIDTH)     leaves    (programs, rows, LEAF_WIDTH)
    is_there  (programs, rows, LOOPS)                 is_row    (programs, rows): no padding
    shares    (programs, LOOPS, rows, rows): 1 / (how many statements are in the loop of the first
              row) where the second is in it; the first row alone where it has no loop there
    """

    loops: Features
    leaves: Features
    is_there: Flags
    is_row: Flags
    shares: Features


def trees_of(features: Features, is_row: Flags | None = None) -> Trees:
    """Shapes:  features (programs, rows, columns of `loop-tree`)."""
    programs, rows, _ = features.shape
    flat = features[..., : LOOPS * len(TREE_FIELDS)]
    table = flat.reshape(programs, rows, LOOPS, len(TREE_FIELDS))
    if is_row is None:
        is_row = np.ones((programs, rows), np.bool_)
    is_there = (table[..., 0] > 0) & is_row[:, :, None]
    first = np.moveaxis(np.where(is_there, table[..., 1], -1 - np.arange(rows)[:, None]), 2, 1)
    together = (first[..., :, None] == first[..., None, :]).astype(np.float32)
    shares = together / together.sum(axis=-1, keepdims=True)
    leaves = features[..., LOOPS * len(TREE_FIELDS) :]
    return Trees(table[..., _PLACE:], leaves, is_there, is_row, shares)
