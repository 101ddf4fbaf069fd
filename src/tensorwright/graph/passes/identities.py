"""Remove nodes that change nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.ops import TensorType


def _changes_nothing(node: Node, source: TensorType, result: TensorType) -> bool:
    """Whether the output is the first input, element for element."""
    match node.operator:
        case "identity":
            return True
        case "cast" | "reshape" | "squeeze" | "unsqueeze" | "expand" | "tile" | "sum" | "mean":
            return source == result and len(node.inputs) == 1
        case "concat" | "min" | "max":
            return len(node.inputs) == 1
        case "split":
            return len(node.outputs) == 1
        case "transpose":
            perm = node.ints("perm") or tuple(reversed(range(len(source.shape))))
            kept = [n for n in perm if source.shape[n] != 1]
            return source == result and kept == sorted(kept)
        case "pad":
            return not any(node.ints("pads"))
        case "slice":
            return source == result and all(step == 1 for step in node.ints("steps"))
        case "clip":
            return node.number("min") == -math.inf and node.number("max") == math.inf
    return False


def remove_identities(graph: Graph) -> tuple[Graph, int]:
    """Let the readers of a node that changes nothing read its input.

    Rewrite:  y = identity(x); f(y)    ->    f(x)
    So too casts to the same type, reshapes to the same shape, empty pads, full slices, single
    concats.
    """
    outputs = frozenset(graph.outputs)
    fixed = outputs.union(graph.inputs)

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if not node.inputs or len(node.outputs) != 1:
            return None
        (output,) = node.outputs
        if node.operator == "identity" and output in outputs and node.inputs[0] in fixed:
            return None  # it gives the value of another name to an output
        source, result = copy.type_of(node.inputs[0]), graph.types[node.outputs[0]]
        return node.inputs[:1] if _changes_nothing(node, source, result) else None

    return rewrite(graph, rule)
