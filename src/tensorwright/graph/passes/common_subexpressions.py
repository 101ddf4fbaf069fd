"""Compute equal nodes once."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.graph.printing import digest

# Larger constants are compared by identity: hashing weights costs more than it saves.
_SMALL_BYTES = 1 << 16


def merge_common_subexpressions(graph: Graph) -> tuple[Graph, int]:
    """Merge nodes with the same operator, inputs and attributes.

    Rewrite:  a = f(x); b = f(x); g(a, b)    ->    a = f(x); g(a, a)
    Constants count as the same input where they are the same small array.
    """
    keys: dict[str, object] = {}
    for name, array in graph.constants.items():
        keys[name] = digest(array) if array.nbytes <= _SMALL_BYTES else name
    seen: dict[object, tuple[str, ...]] = {}

    def rule(_: Copy, node: Node) -> Sequence[str] | None:
        inputs = tuple(keys.get(name, name) for name in node.inputs)
        # repr tells 0.0 from -0.0 and 1 from True, and finds nan equal to nan
        key = (node.operator, inputs, repr(node.attributes), node.graphs)
        first = seen.setdefault(key, node.outputs)
        return None if first == node.outputs else first

    return rewrite(graph, rule)
