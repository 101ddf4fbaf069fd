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
            if _inside(copy, _inside(copy, factor, "tanh"), "softplus") == x:
                return copy.emit("mish", (x,), node.outputs)
        return None

    return rewrite(graph, rule)


def _inside(copy: Copy, name: str, operator: str) -> str:
    """The operand of the operator that made a tensor with one reader; "" for another tensor."""
    made = copy.producer(name) if name else None
    is_it = made is not None and made.operator == operator and copy.only_use(name)
    return made.inputs[0] if made is not None and is_it else ""
