"""Put a scale or a shift per channel into the weights and the bias of the convolution or gemm
before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.channels import channel_vector, constant_operand
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import ChannelScale

Vector: TypeAlias = NDArray[np.float64]


def _bias(copy: Copy, anchor: Node, channels: int) -> Vector | None:
    """The bias per output channel that the anchor adds, zeros where it has none.

    None if it is not known, or is not one number per channel.
    """
    if len(anchor.inputs) < 3:
        return np.zeros(channels)
    held = copy.constant(anchor.inputs[2])
    if held is None or held.size != math.prod(held.shape[-1:]) or held.size not in (1, channels):
        return None
    beta = anchor.number("beta") if "beta" in anchor.attribute_map else 1.0
    flat: Vector = np.broadcast_to(held.reshape(-1), (channels,)).astype(np.float64)
    return flat * beta


def _match(copy: Copy, graph: Graph, node: Node) -> tuple[Node, ChannelScale, Vector] | None:
    """The anchor before a `mul` or `add`, its only reader, and the numbers per channel."""
    operand = constant_operand(copy, node)
    if operand is None:
        return None
    source, array = operand
    anchor = copy.producer(source)
    if anchor is None or not copy.only_use(source):
        return None
    scale = operator_of(anchor).channel_scale
    type_ = graph.types[node.outputs[0]]
    if scale is None or not type_.dtype.is_float or type_ != copy.type_of(source):
        return None
    vector = channel_vector(array, type_.shape)
    return None if vector is None else (anchor, scale, vector.astype(np.float64))


def absorb_scale(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  conv(x, w, b) * s    ->    conv(x, w * s, b * s)

    Requires: s is constant and one number per channel; w and b are constants; no other node reads
    the conv.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        matched = _match(copy, graph, node) if node.operator == "mul" else None
        if matched is None:
            return None
        anchor, scale, factor = matched
        weights = copy.constant(anchor.inputs[1])
        bias = _bias(copy, anchor, factor.size)
        if weights is None or bias is None:
            return None
        (output,) = node.outputs
        scaled = scale(weights.astype(np.float64), factor, anchor.attribute_map)
        held = copy.hold(scaled.astype(weights.dtype), f"{anchor.inputs[1]}.scaled")
        inputs = [anchor.inputs[0], held]
        if len(anchor.inputs) > 2:
            inputs.append(copy.hold((bias * factor).astype(weights.dtype), f"{output}.bias"))
        return _emit(copy, anchor, inputs, output)

    return rewrite(graph, rule)


def absorb_shift(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  conv(x, w, b) + s    ->    conv(x, w, b + s)

    Requires: s is constant and one number per channel; b is constant or absent; no other node reads
    the conv.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        matched = _match(copy, graph, node) if node.operator == "add" else None
        if matched is None:
            return None
        anchor, _, shift = matched
        bias = _bias(copy, anchor, shift.size)
        if bias is None:
            return None
        (output,) = node.outputs
        dtype = graph.types[output].dtype.numpy
        moved = copy.hold((bias + shift).astype(dtype), f"{output}.bias")
        return _emit(copy, anchor, [*anchor.inputs[:2], moved], output)

    return rewrite(graph, rule)


def _emit(copy: Copy, anchor: Node, inputs: list[str], output: str) -> Sequence[str]:
    attributes = anchor.attribute_map
    if "beta" in attributes:
        attributes["beta"] = 1.0  # it is in the bias now
    return copy.emit(anchor.operator, inputs, (output,), **attributes)
