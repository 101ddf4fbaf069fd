"""Merge chains of reshapes and of transpositions."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import Movement


def merge_reshapes(graph: Graph) -> tuple[Graph, int]:
    """One reshape for a chain of reshape, squeeze and unsqueeze.

    Rewrite:  reshape(squeeze(x), s)    ->    reshape(x, s)
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if operator_of(node).movement is not Movement.RESHAPE:
            return None
        before = copy.producer(node.inputs[0])
        chained = before is not None and before.operator == "reshape"
        if node.operator == "reshape" and not chained:
            return None
        source = before.inputs[0] if before is not None and chained else node.inputs[0]
        shape = graph.types[node.outputs[0]].shape
        return copy.emit("reshape", (source,), node.outputs, shape=shape)

    return rewrite(graph, rule)


def merge_transposes(graph: Graph) -> tuple[Graph, int]:
    """One transposition for two; one that moves only extents of 1 is a reshape.

    Rewrite:  transpose(transpose(x, p), q)    ->    transpose(x, [p[i] for i in q])
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "transpose":
            return None
        shape = copy.type_of(node.inputs[0]).shape
        perm = node.ints("perm") or tuple(reversed(range(len(shape))))
        kept = [n for n in perm if shape[n] != 1]
        if kept == sorted(kept):
            target = graph.types[node.outputs[0]].shape
            return copy.emit("reshape", node.inputs, node.outputs, shape=target)
        before = copy.producer(node.inputs[0])
        if before is None or before.operator != "transpose":
            return None
        first = before.ints("perm") or tuple(reversed(range(len(shape))))
        both = tuple(first[n] for n in perm)
        return copy.emit("transpose", before.inputs, node.outputs, perm=both)

    return rewrite(graph, rule)
