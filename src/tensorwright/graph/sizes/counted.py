"""Sizes that nodes decide when a network runs: a loop by its iterations, others by values.

Such a size has a value after its node.  So nodes that use it come later, even without a tensor from
one to the other, and the node is needed as long as one of them is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorwright.base import AttributeValue, TensorType
from tensorwright.expr import Index, IndexExpr, NamedSize, named_sizes_of
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.nested import LOOP, NESTING
from tensorwright.ops import Array, as_size, operator


def counted_size_of(node: Node) -> NamedSize | None:
    """The size that a node decides; None where it decides none, or a number stands for it."""
    if node.operator in NESTING:
        name = "trips" if node.operator == LOOP and node.attribute_map["counts"] else ""
    else:
        name = operator(node.operator).decides
    size = node.attribute_map[name] if name else None
    return size if isinstance(size, NamedSize) else None


def counted_sizes(graph: Graph) -> dict[str, Node]:
    """The node that decides each named size which no input decides, in nested graphs, too."""
    counted: dict[str, Node] = {}
    for node in graph.nodes:
        size = counted_size_of(node)
        if size is not None:
            counted[size.name] = node
        for nested in node.graphs:
            counted.update(counted_sizes(nested))
    return counted


def counted_bounds(graph: Graph) -> dict[str, Index]:
    """Upper bounds of sizes that nodes decide, where these depend on sizes of inputs."""
    limits = ((name, node.attribute_map.get("most")) for name, node in counted_sizes(graph).items())
    return {name: as_size(most) for name, most in limits if isinstance(most, IndexExpr)}


def decided_number(node: Node, types: Mapping[str, TensorType], results: Sequence[Array]) -> int:
    """The size that a node has decided, read off its outputs.

    types   of its outputs, with the size
    """
    size = counted_size_of(node)
    for name, array in zip(node.outputs, results, strict=True):
        for extent, number in zip(types[name].shape, array.shape, strict=True):
            if extent is size:
                return int(number)
    raise AssertionError(f"no output of {node.label} has the extent {size}")


def sizes_used(node: Node, types: Mapping[str, TensorType]) -> set[NamedSize]:
    """The sizes of a node's attributes and results, and of the graphs that it holds."""
    pending: list[AttributeValue] = [value for _, value in node.attributes]
    pending += [extent for name in node.outputs for extent in types[name].shape]
    used: set[NamedSize] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending.extend(value)
        elif isinstance(value, IndexExpr):
            used.update(named_sizes_of(as_size(value)))
    for nested in node.graphs:
        used.update(nested.sizes)
    return used
