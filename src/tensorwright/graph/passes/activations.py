"""Activations that exporters write as several operators become one operator again."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite


def recognise_mish(graph: Graph) -> tuple[Graph, int]:
    """Rewrite:  x * tanh(softplus(x))    ->    mish(x)

    One exponential instead of three functions. Requires: no other node reads the parts.
    """

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if node.operator != "mul":
            return None
        for x, factor in (node.inputs, node.inputs[::-1]):
            outer = copy.only(factor, "tanh")
            inner = copy.only(outer.inputs[0], "softplus") if outer else None
            if inner and inner.inputs[0] == x:
                return copy.emit("mish", (x,), node.outputs)
        return None

    return rewrite(graph, rule)
