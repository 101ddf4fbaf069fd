"""Concatenations that need no kernel: their parts are written into the memory of the whole."""

from __future__ import annotations

from tensorwright.graph.graph import Graph
from tensorwright.graph.infer import operator_of
from tensorwright.graph.partition.steps import ConcatInPlace
from tensorwright.graph.partition.views import concat_offsets, view_offsets


def elide_concats(graph: Graph) -> tuple[ConcatInPlace, ...]:
    """The concats of a graph that are free under its layouts, in order.

    A concat is free if its dimension is the outermost one in memory, its parts begin at aligned
    bytes, and all parts are different.  Each part must be computed by a kernel, or be such a concat
    itself, as in DenseNet.  A part must not be an output of the graph, or a part of another concat.
    """
    producers = graph.producers()
    placed: set[str] = set(graph.outputs)
    wholes: set[str] = set()
    elided: list[ConcatInPlace] = []

    def is_free_to_place(name: str) -> bool:
        if name in placed or name not in producers:
            return False
        node = producers[name]
        if name in wholes:
            return True
        has_kernel = operator_of(node).meaning is not None
        return has_kernel and view_offsets(graph, node) is None

    for node in graph.nodes:
        offsets = concat_offsets(graph, node)
        is_repeated = len(set(node.inputs)) < len(node.inputs)
        if offsets is None or is_repeated or not all(map(is_free_to_place, node.inputs)):
            continue
        placed.update(node.inputs)
        wholes.add(node.outputs[0])
        parts = tuple(zip(node.inputs, offsets, strict=True))
        elided.append(ConcatInPlace(node.outputs[0], parts, node))
    return tuple(elided)
