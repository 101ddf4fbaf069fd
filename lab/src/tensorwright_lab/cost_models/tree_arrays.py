"""Rows of the feature set `loop-tree` as what a recurrent network over trees reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.models import Features
from tensorwright_lab.feature_sets import LEAF_FIELDS, LOOPS, TREE_FIELDS

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
