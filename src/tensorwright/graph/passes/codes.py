"""Codes of quantised networks: what is done with them is done in floats, where that is exact."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tensorwright.base import DType
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import Array

_EXACT = 1 << 24  # whole numbers up to this one are floats
_MOST_CODE = 255
_PRODUCTS = {"conv_integer": "conv", "matmul_integer": "matmul"}


def round_in_floats(graph: Graph) -> tuple[Graph, int]:
    """A tensor that is quantised and at once no longer so is rounded, and never an integer.

    Rewrite:  dequantize(quantize(x, s, z), s, z)    ->    clip(round(x / s), low - z, high - z) * s
    The values are the same: codes and what they are moved by are small enough for f32. Requires:
    one scale for all elements, and a zero point that is known.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        made = copy.producer(node.inputs[0]) if node.operator == "dequantize_linear" else None
        if made is None or made.operator != "quantize_linear":
            return None
        x, *theirs = made.inputs
        if not _are_equal(copy, theirs, node.inputs[1:]) or prod(copy.type_of(theirs[0]).shape) > 1:
            return None
        zero = copy.constant(theirs[1]) if len(theirs) > 1 else np.zeros(1, np.int64)
        if zero is None or zero.size != 1 or copy.type_of(x) != graph.types[node.outputs[0]]:
            return None
        codes, shift = copy.type_of(node.inputs[0]).dtype, int(zero.reshape(())[()])
        result = node.outputs[0]
        scale = _number(copy, theirs[0], f"{result}.scale")
        names = (copy.free(f"{result}.{part}") for part in ("steps", "whole", "inside"))
        steps, whole, inside = names
        copy.emit("div", (x, scale), (steps,))
        copy.emit("round", (steps,), (whole,))
        low, high = float(codes.lowest) - shift, float(codes.highest) - shift
        copy.emit("clip", (whole,), (inside,), min=low, max=high)
        return copy.emit("mul", (inside, scale), node.outputs)

    return rewrite(graph, rule)


def multiply_codes_in_floats(graph: Graph) -> tuple[Graph, int]:
    """Products of bytes that become floats afterwards are sums of floats.

    Rewrite:  cast(conv_integer(x, w, a, b), f32)    ->    conv(f32(x) - f32(a), f32(w - b))
    Floats are multiplied and added as fast as integers are, or faster. Requires: the weights are
    constant, and so small that every sum of their products with codes is a float.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "cast" or node.attribute_map["to"] is not DType.F32:
            return None
        made = copy.producer(node.inputs[0])
        if made is None or made.operator not in _PRODUCTS or not copy.only_use(node.inputs[0]):
            return None
        has_one_zero = all(prod(copy.type_of(name).shape) == 1 for name in made.inputs[2:3])
        weights = _exact_weights(copy, made)
        if weights is None or not has_one_zero:
            return None
        data = _codes_less_zero(copy, made, f"{node.outputs[0]}.codes")
        held = copy.hold(weights, f"{made.inputs[1]}.f32")
        operator = _PRODUCTS[made.operator]
        return copy.emit(operator, (data, held), node.outputs, **made.attribute_map)

    return rewrite(graph, rule)


def _exact_weights(copy: Copy, node: Node) -> Array | None:
    """The weights of a product less their zero points, in f32; None where sums may be rounded."""
    codes = copy.constant(node.inputs[1])
    zero = copy.constant(node.inputs[3]) if len(node.inputs) > 3 else np.zeros((), np.int64)
    if codes is None or zero is None:
        return None
    is_convolution = node.operator == "conv_integer"
    shift = zero.astype(np.int64)
    if is_convolution and shift.size > 1:
        shift = shift.reshape(-1, *(1,) * (codes.ndim - 1))
    weights = codes.astype(np.int64) - shift
    summed = tuple(range(1, codes.ndim)) if is_convolution else max(codes.ndim - 2, 0)
    if not weights.size or abs(weights).sum(axis=summed).max() * _MOST_CODE >= _EXACT:
        return None
    floats: Array = weights.astype(np.float32)
    return floats


def _codes_less_zero(copy: Copy, node: Node, wish: str) -> str:
    """The data of a product less its zero point, in f32; codes that are made here are not."""
    made = copy.producer(node.inputs[0])
    if made is not None and made.operator == "quantize_linear" and _has_one_scale(copy, made):
        codes = copy.type_of(node.inputs[0]).dtype
        scale = _number(copy, made.inputs[1], f"{wish}.scale")
        (steps,) = copy.emit("div", (made.inputs[0], scale), (copy.free(f"{wish}.steps"),))
        (whole,) = copy.emit("round", (steps,), (copy.free(f"{wish}.whole"),))
        if len(made.inputs) > 2:
            shift = _number(copy, made.inputs[2], f"{wish}.shift")
            (whole,) = copy.emit("add", (whole, shift), (copy.free(f"{wish}.shifted"),))
        low, high = float(codes.lowest), float(codes.highest)
        (whole,) = copy.emit("clip", (whole,), (copy.free(f"{wish}.inside"),), min=low, max=high)
    else:
        wishes = (copy.free(f"{wish}.whole"),)
        (whole,) = copy.emit("cast", node.inputs[:1], wishes, to=DType.F32)
    if len(node.inputs) < 3:
        return whole
    zero = _number(copy, node.inputs[2], f"{wish}.zero")
    return copy.emit("sub", (whole, zero), (copy.free(f"{wish}.moved"),))[0]


def _number(copy: Copy, name: str, wish: str) -> str:
    """A tensor of one element as a number in f32."""
    (number,) = copy.emit("reshape", (name,), (copy.free(wish),), shape=())
    if copy.type_of(number).dtype is DType.F32:
        return number
    return copy.emit("cast", (number,), (copy.free(f"{wish}.f32"),), to=DType.F32)[0]


def _has_one_scale(copy: Copy, node: Node) -> bool:
    """Whether f32 becomes codes by one scale and one zero point."""
    kind = copy.type_of(node.inputs[0]).dtype
    return kind is DType.F32 and all(prod(copy.type_of(n).shape) == 1 for n in node.inputs[1:])


def _are_equal(copy: Copy, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether tensors are the same, or constants alike."""
    if len(left) != len(right):
        return False
    for ours, theirs in zip(left, right, strict=True):
        pair = copy.constant(ours), copy.constant(theirs)
        if ours != theirs and (
            pair[0] is None or pair[1] is None or not np.array_equal(pair[0], pair[1])
        ):
            return False
    return True
