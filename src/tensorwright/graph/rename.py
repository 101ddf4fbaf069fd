"""Give tensors other names, and compare graphs up to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

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


def are_alike(one: Graph, other: Graph) -> bool:
    """Whether two graphs are the same but for the names of tensors between inputs and outputs."""
    ends = ((*one.inputs, *one.outputs), (*other.inputs, *other.outputs))
    if (one.inputs, one.outputs) != (other.inputs, other.outputs):
        return False
    if len(one.nodes) != len(other.nodes):
        return False
    pairs = list(zip(*ends, strict=True))
    for mine, its in zip(one.nodes, other.nodes, strict=True):
        if (mine.operator, mine.attributes) != (its.operator, its.attributes):
            return False
        if len(mine.graphs) != len(its.graphs) or not all(map(are_alike, mine.graphs, its.graphs)):
            return False
        if (len(mine.inputs), len(mine.outputs)) != (len(its.inputs), len(its.outputs)):
            return False
        pairs += zip((*mine.inputs, *mine.outputs), (*its.inputs, *its.outputs), strict=True)
    names = dict(pairs)
    if any(names[mine] != its for mine, its in pairs) or len(set(names.values())) < len(names):
        return False
    return all(_tensors_alike(one, mine, other, its) for mine, its in names.items())


def _tensors_alike(one: Graph, mine: str, other: Graph, its: str) -> bool:
    """Whether tensors have one type and layout and, if they are constants, one value."""
    if one.types[mine] != other.types[its] or one.layouts.get(mine) != other.layouts.get(its):
        return False
    if mine not in one.constants or its not in other.constants:
        return (mine in one.constants) == (its in other.constants)
    return np.array_equal(one.constants[mine], other.constants[its], equal_nan=True)
