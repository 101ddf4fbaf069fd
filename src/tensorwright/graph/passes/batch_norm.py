"""Batch normalisation with known statistics is one multiplication and one addition per channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite


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
