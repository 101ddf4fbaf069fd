"""What exporters write out in parts, in fewer operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite


def recognise_mish(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  x * tanh(softplus(x))    ->    mish(x)

    One exponential instead of three functions. Requires: nobody else reads the parts.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "mul":
            return None
        for x, factor in (node.inputs, node.inputs[::-1]):
            if _inside(copy, _inside(copy, factor, "tanh"), "softplus") == x:
                return copy.emit("mish", (x,), node.outputs)
        return None

    return rewrite(graph, rule)


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
        scale = copy.emit("reshape", theirs[:1], (copy.free(f"{theirs[0]}.number"),), shape=())[0]
        result = node.outputs[0]
        names = (copy.free(f"{result}.{part}") for part in ("steps", "whole", "inside"))
        steps, whole, inside = names
        copy.emit("div", (x, scale), (steps,))
        copy.emit("round", (steps,), (whole,))
        low, high = float(codes.lowest) - shift, float(codes.highest) - shift
        copy.emit("clip", (whole,), (inside,), min=low, max=high)
        return copy.emit("mul", (inside, scale), node.outputs)

    return rewrite(graph, rule)


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


def _inside(copy: Copy, name: str, operator: str) -> str:
    """What an operator was applied to, "" where the tensor is not its result alone."""
    made = copy.producer(name) if name else None
    is_it = made is not None and made.operator == operator and copy.only_use(name)
    return made.inputs[0] if made is not None and is_it else ""
