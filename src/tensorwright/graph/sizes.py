"""Graphs over named sizes: numbers for them, and a check for who takes numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tensorwright.base import AttributeValue, OpenSize, TensorType, UnsupportedError
from tensorwright.expr import IndexExpr, with_sizes
from tensorwright.graph.graph import Graph


def bind_sizes(graph: Graph, values: Mapping[str, int]) -> Graph:
    """The graph with numbers for named sizes; those that are not named stay.

    Raises:  ExpressionError for a number that a size may not be.
    """

    def bound(value: AttributeValue) -> AttributeValue:
        if isinstance(value, tuple):
            return tuple(map(bound, value))
        return with_sizes(value, values) if isinstance(value, IndexExpr) else value

    def typed(given: TensorType) -> TensorType:
        shape = map(bound, given.shape)
        return TensorType(given.dtype, tuple(e for e in shape if isinstance(e, int | OpenSize)))

    nodes = (
        replace(node, attributes=tuple((name, bound(value)) for name, value in node.attributes))
        for node in graph.nodes
    )
    types = {name: typed(type_) for name, type_ in graph.types.items()}
    return replace(graph, nodes=tuple(nodes), types=MappingProxyType(types))


def require_numbers(graph: Graph, stage: str) -> Graph:
    """The graph itself, for a stage that takes numbers only.

    Raises:  UnsupportedError that names the sizes.
    """
    sizes = graph.sizes
    if not sizes:
        return graph
    names = ", ".join(each.name for each in sizes)
    given = ", ".join(f'"{each.name}": {each.least * each.divisor}' for each in sizes)
    raise UnsupportedError(
        stage=stage,
        where=f"graph {graph.name}",
        reason=f"its tensors have named sizes ({names}), and what follows computes with numbers",
        remedy=f"give a number for each: bind_sizes(graph, {{{given}}})",
    )
