"""Tensors that are computed from indices alone: each reader computes them; none is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of


def generate_for_each_reader(graph: Graph) -> Graph:
    """Copy each node that reads nothing for each of its readers, whose groups can then take it.

    Rewrite:  c = full(); f(c); g(c)    ->    c = full(); f(c); d = full(); g(d)
    The graph is returned as it is if no such node has several readers.
    """
    reads = Counter(name for node in graph.nodes for name in dict.fromkeys(node.inputs))
    reads.update(graph.outputs)
    shared = {
        node.outputs[0]: node
        for node in graph.nodes
        if not node.inputs and operator_of(node).meaning is not None and reads[node.outputs[0]] > 1
    }
    if not shared:
        return graph
    types, layouts = dict(graph.types), dict(graph.layouts)
    taken = set(graph.outputs).intersection(shared)  # an output keeps the original
    nodes: list[Node] = []
    for node in graph.nodes:
        renamed: dict[str, str] = {}
        for name in dict.fromkeys(node.inputs):
            if name not in shared:
                continue
            if name not in taken:
                taken.add(name)
                continue
            renamed[name] = copy = _free(name, types)
            types[copy] = types[name]
            if name in layouts:
                layouts[copy] = layouts[name]
            nodes.append(replace(shared[name], outputs=(copy,)))
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        nodes.append(replace(node, inputs=inputs) if renamed else node)
    return replace(
        graph,
        nodes=tuple(nodes),
        types=MappingProxyType(types),
        layouts=MappingProxyType(layouts),
    )


def _free(name: str, taken: Mapping[str, object]) -> str:
    number = 1
    while f"{name}.{number}" in taken:
        number += 1
    return f"{name}.{number}"
