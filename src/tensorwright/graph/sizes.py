"""Graphs over named sizes: numbers for them, and a check for who takes numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tensorwright.base import AttributeValue, ModelError, TensorType, UnsupportedError, UsageError
from tensorwright.expr import IndexExpr, with_sizes
from tensorwright.graph.graph import Graph


def bind_sizes(graph: Graph, values: Mapping[str, int]) -> Graph:
    """The graph with numbers for named sizes; those that are not named stay.

    Raises:  ExpressionError for a number that a size may not be; UsageError for a name that no size
             of the graph has; ModelError where an extent would be negative.
    """

    def bound(value: AttributeValue) -> AttributeValue:
        if isinstance(value, tuple):
            return tuple(map(bound, value))
        return with_sizes(value, values) if isinstance(value, IndexExpr) else value

    def typed(name: str, given: TensorType) -> TensorType:
        shape = tuple(with_sizes(e, values) if isinstance(e, IndexExpr) else e for e in given.shape)
        if any(isinstance(extent, int) and extent < 0 for extent in shape):
            given_text = ", ".join(f"{size} = {number}" for size, number in values.items())
            raise ModelError(
                stage="sizes",
                where=f"tensor {name}: {given}",
                reason=f"with {given_text} an extent is negative",
                remedy="give larger numbers",
            )
        return TensorType(given.dtype, shape)

    names = [size.name for size in graph.sizes]
    unknown = [name for name in values if name not in names]
    if unknown:
        raise UsageError(
            stage="sizes",
            where=f"graph {graph.name}",
            reason=f"it has no size of the name {', '.join(map(str, unknown))}",
            remedy="its sizes are " + (", ".join(names) or "all numbers"),
        )
    nodes = (
        replace(
            node,
            attributes=tuple((name, bound(value)) for name, value in node.attributes),
            graphs=tuple(bind_sizes(each, _of_graph(each, values)) for each in node.graphs),
        )
        for node in graph.nodes
    )
    types = {name: typed(name, type_) for name, type_ in graph.types.items()}
    return replace(graph, nodes=tuple(nodes), types=MappingProxyType(types))


def _of_graph(graph: Graph, values: Mapping[str, int]) -> dict[str, int]:
    names = [size.name for size in graph.sizes]
    return {name: number for name, number in values.items() if name in names}


def require_numbers(graph: Graph, stage: str) -> Graph:
    """The graph itself, for a stage that takes numbers only.

    Raises:  UnsupportedError that names the sizes.
    """
    sizes = graph.sizes
    if not sizes:
        return graph
    names = ", ".join(each.name for each in sizes)
    numbers = [(each.name, each.least * each.divisor) for each in sizes]
    option = ",".join(f"{name}:{number}" for name, number in numbers)
    given = ", ".join(f'"{name}": {number}' for name, number in numbers)
    raise UnsupportedError(
        stage=stage,
        where=f"graph {graph.name}",
        reason=f"its tensors have named sizes ({names}), and what follows computes with numbers",
        remedy=f'give a number for each, your own ones: --input-shapes "{option}", '
        f"input_shapes={{{given}}}, or bind_sizes(graph, {{{given}}})",
    )
