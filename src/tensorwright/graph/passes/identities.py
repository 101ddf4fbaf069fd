"""Remove nodes that no output depends on, and nodes that change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from tensorwright.base import DType
from tensorwright.expr import NamedSize
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.passes.rebuild import Copy, rewrite
from tensorwright.graph.sizes import counted_size_of, sizes_used

_HELD = frozenset(
    {
        *((DType.BOOL, held) for held in DType),
        (DType.I32, DType.I64),
        (DType.I32, DType.F64),
        (DType.F16, DType.F32),
        (DType.F32, DType.F64),
    }
)
"""(a type, one that holds all of its numbers)."""


def remove_identities(graph: Graph) -> tuple[Graph, int]:
    """Let the readers of a node that changes nothing read its input.

    Rewrite:  y = identity(x); f(y)    ->    f(x)
    The same for casts to the same type, reshapes to the same shape, empty pads, full slices, single
    concats, and casts there and back through a type that holds all numbers of the first.
    """
    outputs = frozenset(graph.outputs)
    fixed = outputs.union(graph.inputs)

    def rule(copy: Copy, node: Node) -> Sequence[str] | None:
        if len(node.inputs) != 1 or len(node.outputs) != 1:
            return None
        (output,) = node.outputs
        if node.operator == "cast":
            before = copy.producer(node.inputs[0])
            if before is not None and before.operator == "cast":
                first, held = (copy.type_of(each.inputs[0]) for each in (before, node))
                if first == graph.types[output] and (first.dtype, held.dtype) in _HELD:
                    return before.inputs
        if node.operator == "identity" and output in outputs and node.inputs[0] in fixed:
            return None  # it gives the value of another name to an output
        source = copy.type_of(node.inputs[0])
        if source != graph.types[output]:
            return None
        changes_nothing = operator_of(node).is_identity(source, node.attribute_map)
        return node.inputs if changes_nothing else None

    return rewrite(graph, rule)


def remove_dead_code(graph: Graph) -> tuple[Graph, int]:
    """Drop nodes and constants that no output depends on; inputs stay, they are the signature.

    A node that decides a size is needed where the size is.  The count is that of the nodes.
    """
    needed = set(graph.outputs)
    deciding = {
        node.outputs[0]: size for node in graph.nodes if (size := counted_size_of(node)) is not None
    }
    sizes: set[NamedSize] = set()
    kept = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs) or deciding.get(node.outputs[0]) in sizes:
            kept.append(node)
            needed.update(node.inputs)
            sizes.update(sizes_used(node, graph.types) if deciding else ())
    dropped = len(graph.nodes) - len(kept)
    constants = {name: array for name, array in graph.constants.items() if name in needed}
    if not dropped and len(constants) == len(graph.constants):
        return graph, 0
    alive = {*graph.inputs, *constants, *(name for node in kept for name in node.outputs)}
    return (
        replace(
            graph,
            nodes=tuple(reversed(kept)),
            constants=MappingProxyType(constants),
            types=MappingProxyType({n: t for n, t in graph.types.items() if n in alive}),
            layouts=MappingProxyType({n: v for n, v in graph.layouts.items() if n in alive}),
        ),
        dropped,
    )
