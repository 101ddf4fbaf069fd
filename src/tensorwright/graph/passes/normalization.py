"""Normalisations as operators that other passes and the partition merge with those around them.

Batch normalisation with constant statistics is one multiplication and one addition per channel;
normalisation of groups is one of rows, and then the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import product_of, sizes_of


def lower_batch_norm(graph: Graph) -> tuple[Graph, int]:
    """Write an inference-time batch normalisation as a scale and a shift, which other passes merge
    into the operator before.

    Rewrite:  batch_norm(x, scale, bias, mean, var)    ->    x * f + (bias - mean * f)
              where f = scale / sqrt(var + epsilon)
    Requires: scale, bias, mean and var are constants.  The factors are computed in f64.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "batch_norm":
            return None
        arrays = [copy.constant(name) for name in node.inputs[1:]]
        statistics = [array.astype(np.float64) for array in arrays if array is not None]
        if len(statistics) < 4:
            return None
        scale, bias, mean, var = statistics
        epsilon = node.number("epsilon")
        factor = scale / np.sqrt(var + epsilon)
        type_ = copy.type_of(node.inputs[0])
        column = (-1, *(1,) * (len(type_.shape) - 2))
        (output,) = node.outputs
        factors = factor.reshape(column).astype(type_.dtype.numpy)
        shifts = (bias - mean * factor).reshape(column).astype(type_.dtype.numpy)
        scaled = copy.emit(
            "mul",
            (node.inputs[0], copy.hold(factors, f"{output}.scale")),
            (copy.free(f"{output}.scaled"),),
        )
        return copy.emit("add", (*scaled, copy.hold(shifts, f"{output}.shift")), node.outputs)

    return rewrite(graph, rule)


def lower_group_norm(graph: Graph) -> tuple[Graph, int]:
    """Write a normalisation of groups so that the operator behind it can compute its scale and
    shift, in its own layout.

    Rewrite:  group_norm(x, scale, bias)    ->    reshape(instance_norm(rows, 1, 0)) * scale + bias
              where rows = reshape(x, (n, groups, rest)); scale and bias have a row per channel
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "group_norm":
            return None
        x, scale, bias = node.inputs
        type_, groups = copy.type_of(x), int(node.number("groups"))
        batch, *rest = sizes_of(type_)
        (output,) = node.outputs

        def emit(operator: str, inputs: Sequence[str], part: str, **attributes: Any) -> str:
            (name,) = copy.emit(operator, inputs, (copy.free(f"{output}.{part}"),), **attributes)
            return name

        rows = emit("reshape", (x,), "rows", shape=(batch, groups, product_of(rest) // groups))
        units = [
            copy.hold(np.full(groups, number, type_.dtype.numpy), f"{output}.{name}")
            for name, number in (("ones", 1), ("zeros", 0))
        ]
        centred = emit("instance_norm", (rows, *units), "normal", epsilon=node.number("epsilon"))
        whole = emit("reshape", (centred,), "whole", shape=type_.shape)
        column = (rest[0], *(1,) * (len(rest) - 1))
        factors = emit("reshape", (scale,), "scale", shape=column)
        shifts = emit("reshape", (bias,), "shift", shape=column)
        scaled = emit("mul", (whole, factors), "scaled")
        return copy.emit("add", (scaled, shifts), node.outputs)

    return rewrite(graph, rule)
