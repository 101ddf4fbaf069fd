"""Simplify the graphs that nodes hold, once the graph around them is simple."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.nested.operators import map_nested, own_inputs


def simplify_nested(graph: Graph, simplify: Callable[[Graph], Graph]) -> Graph:
    """The graph with simplified graphs in its nodes.

    Rewrite:  branch(c, w, x) of constant w    ->    branch(c, x), whose graphs hold w
    So nodes of a nested graph that depend on constants only are folded.  A tensor that no graph of
    a node reads is no longer an input of the node.
    """
    if not any(node.graphs for node in graph.nodes):
        return graph
    nodes = tuple(_hold_constants(graph, node) for node in graph.nodes)
    held = map_nested(replace(graph, nodes=nodes), simplify)
    nodes = tuple(_drop_unread(node) for node in held.nodes)
    return replace(held, nodes=nodes)


def _hold_constants(graph: Graph, node: Node) -> Node:
    """The node with captured constants inside of its graphs."""
    own, captured = own_inputs(node)
    arrays = [graph.constants.get(name) for name in captured]

    def held(nested: Graph) -> Graph:
        first = len(nested.inputs) - len(captured)
        pairs = zip(nested.inputs[first:], arrays, strict=True)
        constants = {name: array for name, array in pairs if array is not None}
        inputs = tuple(name for name in nested.inputs if name not in constants)
        return replace(
            nested, inputs=inputs, constants=MappingProxyType({**nested.constants, **constants})
        )

    left = (name for name, array in zip(captured, arrays, strict=True) if array is None)
    return replace(node, inputs=(*own, *left), graphs=tuple(map(held, node.graphs)))


def _drop_unread(node: Node) -> Node:
    """The node without captured tensors that none of its graphs reads."""
    own, captured = own_inputs(node)
    is_read = [False] * len(captured)
    for nested in node.graphs:
        names = {*nested.outputs, *(name for inner in nested.nodes for name in inner.inputs)}
        for at, name in enumerate(nested.inputs[len(nested.inputs) - len(captured) :]):
            is_read[at] |= name in names
    if all(is_read):
        return node

    def without(nested: Graph) -> Graph:
        first = len(nested.inputs) - len(captured)
        inputs = (*nested.inputs[:first], *_chosen(nested.inputs[first:], is_read))
        gone = set(nested.inputs).difference(inputs)
        types = {name: type_ for name, type_ in nested.types.items() if name not in gone}
        return replace(nested, inputs=inputs, types=MappingProxyType(types))

    inputs = (*own, *_chosen(captured, is_read))
    return replace(node, inputs=inputs, graphs=tuple(map(without, node.graphs)))


def _chosen(names: Sequence[str], are_chosen: Sequence[bool]) -> tuple[str, ...]:
    return tuple(name for name, is_chosen in zip(names, are_chosen, strict=True) if is_chosen)
