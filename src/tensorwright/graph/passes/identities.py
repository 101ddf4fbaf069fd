"""Remove nodes that change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.rebuild import Copy, rewrite


def remove_identities(graph: Graph) -> tuple[Graph, int]:
    """Let the readers of a node that changes nothing read its input.

    Rewrite:  y = identity(x); f(y)    ->    f(x)
    So too casts to the same type, reshapes to the same shape, empty pads, full slices, single
    concats.
    """
    outputs = frozenset(graph.outputs)
    fixed = outputs.union(graph.inputs)

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if len(node.inputs) != 1 or len(node.outputs) != 1:
            return None
        (output,) = node.outputs
        if node.operator == "identity" and output in outputs and node.inputs[0] in fixed:
            return None  # it gives the value of another name to an output
        source = copy.type_of(node.inputs[0])
        if source != graph.types[output]:
            return None
        changes_nothing = operator_of(node).is_identity(source, node.attribute_map)
        return node.inputs if changes_nothing else None

    return rewrite(graph, rule)
