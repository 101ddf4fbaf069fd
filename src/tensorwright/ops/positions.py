"""Positions that are constants must lie inside of what they are read from or written to.

Positions that are computed when the program runs are taken modulo the extent: nothing checks them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import Array, Attributes, TensorType
from tensorwright.expr import Index, simplify_condition
from tensorwright.ops.attributes import int_of
from tensorwright.ops.named_sizes import shape_text, sizes_of

POSITIONS_INPUT = 1
"""Which input of such operators holds the positions."""

_ALONG_AXIS = ("gather", "gather_elements", "scatter_elements")
_IN_ROWS = ("gather_nd", "scatter_nd")
_LENGTHS = ("reverse_sequence",)
AT_POSITIONS = frozenset((*_ALONG_AXIS, *_IN_ROWS, *_LENGTHS))
"""The operators that read or write at positions which an input holds."""


def position_fault(name: str, x: TensorType, positions: Array, attributes: Attributes) -> str:
    """The message about the first position outside of x; "" where all are inside.

    name        one of `AT_POSITIONS`, which takes these inputs and complete attributes
    positions   negative ones count from the end; lengths of sequences do not
    """
    if name in _IN_ROWS:
        first = int_of(attributes, "batch_dims") if name == "gather_nd" else 0
        dimensions = range(first, first + positions.shape[-1])
    else:
        axis = int_of(attributes, "time_axis" if name in _LENGTHS else "axis")
        dimensions = range(axis % len(x.shape), axis % len(x.shape) + 1)
    if positions.size == 0:
        return ""
    rows = np.asarray(positions, np.int64).reshape(-1, len(dimensions))
    for at, dimension in enumerate(dimensions):
        extent = sizes_of(x)[dimension]
        column = rows[:, at]
        outside = np.flatnonzero(_is_outside(column, extent, is_length=name in _LENGTHS))
        if outside.size:
            what = "length" if name in _LENGTHS else "index"
            return (
                f"{what} {column[outside[0]]} is outside of dimension {dimension} of "
                f"{shape_text(sizes_of(x))}, whose extent is {extent}"
            )
    return ""


def _is_outside(column: NDArray[np.int64], extent: Index, *, is_length: bool) -> NDArray[np.bool_]:
    """Which positions are outside; of a named size, those that no number makes room for."""
    if isinstance(extent, int):
        low, high = (0, extent) if is_length else (-extent, extent - 1)
        return np.asarray((column < low) | (column > high))
    numbers, places = np.unique(column, return_inverse=True)
    needed = numbers if is_length else np.where(numbers < 0, -numbers, numbers + 1)
    impossible = [simplify_condition(extent >= int(each), {}) is False for each in needed]
    is_outside = np.array(impossible, np.bool_) | ((numbers < 0) & is_length)
    return np.asarray(is_outside[places.reshape(-1)])
