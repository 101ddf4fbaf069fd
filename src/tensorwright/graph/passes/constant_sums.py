"""Sums of constants times computed numbers: axes that only the constants have are summed first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorwright.base import Shape
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.channels import constant_operand
from tensorwright.graph.passes.rebuild import Copy, rewrite

_MOST_POWER = 4  # of higher ones a factor alone may overflow


def sum_constants(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  sum over c, k of (w[o, c, k] * s[c])^p    ->    sum over c of v[o, c] * s[c]^p
              where v[o, c] = sum over k of w[o, c, k]^p
    Requires: w is constant; p is a whole number from 1 to 4; the sum is shorter then.  v is
              computed in f64.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "reduce_sum" or not graph.types[node.outputs[0]].dtype.is_float:
            return None
        base, power = _power(copy, node.inputs[0])
        product = copy.producer(base)
        if product is None or product.operator != "mul" or not power:
            return None
        operand = constant_operand(copy, product)
        if operand is None:
            return None
        computed, constant = operand
        rank = len(copy.type_of(base).shape)
        axes = {axis % rank for axis in node.ints("axes")} or set(range(rank))
        varying = _long(copy.type_of(computed).shape, rank)
        first = axes - varying
        if not first & _long(constant.shape, rank):
            return None
        own = tuple(axis - rank + constant.ndim for axis in first if axis >= rank - constant.ndim)
        wide = np.sum(constant.astype(np.float64) ** power, axis=own, keepdims=True)
        (output,) = node.outputs
        held = copy.hold(wide.astype(constant.dtype), f"{output}.constant")
        return _emit(copy, graph, node, (held, computed), power, tuple(sorted(axes - first)))

    return rewrite(graph, rule)


def _emit(
    copy: Copy,
    graph: Graph,
    node: Node,
    operands: tuple[str, str],
    power: int,
    axes: tuple[int, ...],
) -> Sequence[str]:
    (output,) = node.outputs
    held, computed = operands
    type_ = graph.types[output]
    if power > 1:
        exponent = copy.hold(np.asarray(power, type_.dtype.numpy), f"{output}.power")
        wish = copy.free(f"{output}.factor")
        (computed,) = copy.emit("pow", (computed, exponent), (wish,))
    result = copy.emit("mul", (held, computed), (copy.free(f"{output}.terms"),))
    if axes:
        wish = copy.free(f"{output}.sum")
        result = copy.emit("reduce_sum", result, (wish,), axes=axes, keepdims=True)
    return copy.emit("reshape", result, node.outputs, shape=type_.shape)


def _power(copy: Copy, name: str) -> tuple[str, int]:
    """The base and the exponent of a power; exponent 1 for other tensors, 0 for other exponents."""
    node = copy.producer(name)
    if node is not None and node.operator == "mul" and node.inputs[0] == node.inputs[1]:
        return node.inputs[0], 2
    if node is None or node.operator != "pow":
        return name, 1
    exponent = copy.constant(node.inputs[1])
    if exponent is None or exponent.size != 1:
        return name, 1
    value = float(exponent.reshape(()))
    is_whole = value in range(1, _MOST_POWER + 1)
    return node.inputs[0], int(value) if is_whole else 0


def _long(shape: Shape, rank: int) -> set[int]:
    """The dimensions longer than 1, of a shape that is read as one of more dimensions."""
    return {n + rank - len(shape) for n, extent in enumerate(shape) if extent != 1}
