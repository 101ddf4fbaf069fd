"""Drop what no output depends on."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from tensorwright.graph.graph import Graph


def remove_dead_code(graph: Graph) -> tuple[Graph, int]:
    """Drop nodes and constants that no output depends on; inputs stay, they are the signature.

    The count is that of the nodes.
    """
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
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
