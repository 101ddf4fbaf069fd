"""Merge scales and shifts by constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.channels import constant_operand
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import Array


def _combined(fn: np.ufunc, a: Array, b: Array) -> Array:
    wide = fn(a.astype(np.float64), b.astype(np.float64))
    return np.asarray(wide).astype(a.dtype)


def merge_affine(graph: Graph) -> tuple[Graph, int]:
    """One multiplication and one addition for a chain of both, floats only.

    Rewrite:  (x * a) * b    ->    x * (a * b)
              (x + a) + b    ->    x + (a + b)
              (x + a) * b    ->    x * b + (a * b)
    Requires: a and b are constants; no other node reads the inner value; the shapes do not grow.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        outer = constant_operand(copy, node) if node.operator in ("mul", "add") else None
        if outer is None or not graph.types[node.outputs[0]].dtype.is_float:
            return None
        before = copy.producer(outer[0])
        if before is None or before.operator not in ("mul", "add") or not copy.only_use(outer[0]):
            return None
        inner = constant_operand(copy, before)
        kinds = (before.operator, node.operator)
        if inner is None or kinds == ("mul", "add"):
            return None
        if not copy.type_of(inner[0]) == copy.type_of(outer[0]) == graph.types[node.outputs[0]]:
            return None
        (output,) = node.outputs
        if kinds == ("add", "mul"):
            shift = copy.hold(_combined(np.multiply, inner[1], outer[1]), f"{output}.shift")
            factor = copy.hold(outer[1], f"{output}.scale")
            scaled = copy.emit("mul", (inner[0], factor), (copy.free(f"{output}.scaled"),))
            return copy.emit("add", (*scaled, shift), node.outputs)
        fn = np.multiply if node.operator == "mul" else np.add
        merged = copy.hold(_combined(fn, inner[1], outer[1]), f"{output}.constant")
        return copy.emit(node.operator, (inner[0], merged), node.outputs)

    return rewrite(graph, rule)
