"""Compute at compile time what depends on constants only."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.interpret import run_node
from tensorwright.graph.passes.rebuild import Copy, rewrite

_SMALL_BYTES = 1 << 20


def fold_constants(graph: Graph) -> tuple[Graph, int]:
    """Replace nodes whose inputs are all constants by constants.

    Not where the result is over a megabyte and much larger than the inputs, as an `expand` may be.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        arrays = tuple(copy.constant(name) for name in node.inputs)
        known = tuple(array for array in arrays if array is not None)
        if len(known) < len(arrays):
            return None
        size = sum(graph.types[name].size_bytes for name in node.outputs)
        if size > _SMALL_BYTES and size > 2 * sum(array.nbytes for array in known):
            return None
        results = run_node(node, known)
        return tuple(
            copy.builder.constant(array, name)
            for name, array in zip(node.outputs, results, strict=True)
        )

    return rewrite(graph, rule)
