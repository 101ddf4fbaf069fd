"""Give tensors other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tensorwright.base import InternalError
from tensorwright.graph.graph import Graph


def rename_tensors(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The same graph under new names; a tensor that is not in `names` keeps its own, numbered where
    that is taken.

    Raises:  InternalError if two tensors would get one name.
    """
    if len(set(names.values())) < len(names):
        raise InternalError(
            stage="graph", where=f"graph {graph.name}", reason="two tensors get one name"
        )
    full = dict(names)
    taken = set(names.values())
    for old in graph.types:
        if old in full:
            continue
        new, number = old, 0
        while new in taken:
            new, number = f"{old}_{number}", number + 1
        full[old] = new
        taken.add(new)
    nodes = tuple(
        replace(
            node,
            inputs=tuple(full[name] for name in node.inputs),
            outputs=tuple(full[name] for name in node.outputs),
        )
        for node in graph.nodes
    )
    return Graph(
        graph.name,
        tuple(full[name] for name in graph.inputs),
        MappingProxyType({full[name]: array for name, array in graph.constants.items()}),
        nodes,
        tuple(full[name] for name in graph.outputs),
        MappingProxyType({full[name]: type_ for name, type_ in graph.types.items()}),
        MappingProxyType({full[name]: layout for name, layout in graph.layouts.items()}),
    )
