"""Constants with one number per channel, as operands of `mul` and `add`."""

from __future__ import annotations

import numpy as np

from tensorwright.base import Shape
from tensorwright.graph.graph import Node
from tensorwright.graph.passes.rebuild import Copy
from tensorwright.ops import Array

CHANNEL = 1


def constant_operand(copy: Copy, node: Node) -> tuple[str, Array] | None:
    """The other input and the constant of a binary node that has exactly one constant input."""
    if len(node.inputs) != 2:
        return None
    left, right = (copy.constant(name) for name in node.inputs)
    if (left is None) == (right is None):
        return None
    if right is not None:
        return node.inputs[0], right
    return (node.inputs[1], left) if left is not None else None


def channel_vector(array: Array, shape: Shape) -> Array | None:
    """The numbers per channel, if `array` differs along channels (dimension 1) only."""
    if array.ndim > len(shape) or len(shape) < 2:
        return None
    full = (1,) * (len(shape) - array.ndim) + array.shape
    if any(n != 1 for axis, n in enumerate(full) if axis != CHANNEL):
        return None
    channels = shape[CHANNEL]
    if not isinstance(channels, int) or full[CHANNEL] not in (1, channels):
        return None
    return np.broadcast_to(array.reshape(-1), (channels,))
