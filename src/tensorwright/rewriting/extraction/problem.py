"""The problem of extraction: classes of equal terms, each with nodes of which one is taken.

    problem = ExtractionProblem.of([(0, 1.0, ()), (0, 0.5, (1,)), (1, 2.0, ())], roots=(0,))
    problem.nodes_of(0)                                       (0, 1)
    Selection.of(problem, {0: 1, 1: 2}).cost                  2.5, arguments first: (2, 1)

A node computes its class from the classes below it, at a cost.  A selection takes one node for each
class that the roots need and so is a DAG, in which each class is computed and paid for once.  The
cost of the tree, in which it is paid for at each use, is what most searches minimise instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tensorwright.rewriting.traversal import NeedsItselfError, arguments_first

Choice: TypeAlias = Mapping[int, int]
"""The node taken for each class."""


@dataclass(frozen=True, slots=True, eq=False)
class ExtractionProblem:
    """Nodes, numbered from 0, of classes, numbered from 0.

    node_class   the class of each node
    cost         of each node; never below zero; not finite where it must not be taken
    children     the classes below each node, in order, repeated where used twice
    roots        the classes that are wanted
    members      the nodes of each class
    """

    node_class: tuple[int, ...]
    cost: tuple[float, ...]
    children: tuple[tuple[int, ...], ...]
    roots: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(
        nodes: Iterable[tuple[int, float, Sequence[int]]], roots: Sequence[int]
    ) -> ExtractionProblem:
        """From (class, cost, children) of each node.

        Raises:  ValueError for a negative cost.
        """
        listed = tuple(nodes)
        largest = max((each for name, _, below in listed for each in (name, *below)), default=-1)
        members: list[list[int]] = [[] for _ in range(max(largest, *roots, -1) + 1)]
        for node, (name, cost, _) in enumerate(listed):
            if cost < 0 or math.isnan(cost):
                raise ValueError(f"node {node} costs {cost}")
            members[name].append(node)
        return ExtractionProblem(
            tuple(name for name, _, _ in listed),
            tuple(float(cost) for _, cost, _ in listed),
            tuple(tuple(below) for _, _, below in listed),
            tuple(dict.fromkeys(roots)),
            tuple(map(tuple, members)),
        )

    def nodes_of(self, name: int) -> tuple[int, ...]:
        """The nodes of a class."""
        return self.members[name]

    def below(self, node: int) -> tuple[int, ...]:
        """The classes below a node, each once."""
        return tuple(dict.fromkeys(self.children[node]))


@dataclass(frozen=True, slots=True)
class Selection:
    """One node for each class that is needed, arguments first, and what they cost together."""

    nodes: tuple[int, ...]
    cost: float

    @staticmethod
    def of(problem: ExtractionProblem, choice: Choice) -> Selection:
        """The part of a choice that the roots need.

        Raises:  KeyError for a class without a node, ValueError for a class that needs itself.
        """
        order = arguments_first(problem.roots, lambda name: problem.below(choice[name]))
        try:
            nodes = tuple(choice[name] for name in order)
        except NeedsItselfError as loop:
            raise ValueError(f"class {loop.name} needs itself") from None
        return Selection(nodes, math.fsum(problem.cost[node] for node in nodes))

    def choice(self, problem: ExtractionProblem) -> dict[int, int]:
        """The node of each class that is needed."""
        return {problem.node_class[node]: node for node in self.nodes}

    def tree_cost(self, problem: ExtractionProblem) -> float:
        """The cost of the tree, each class paid for at each use; infinite beyond all floats."""
        cost: dict[int, float] = {}
        for node in self.nodes:
            below = (cost[each] for each in problem.children[node])
            cost[problem.node_class[node]] = problem.cost[node] + sum(below)
        return sum(cost[root] for root in problem.roots)


def cyclic_parts(problem: ExtractionProblem) -> tuple[int, ...]:
    """For each class a number that it shares with those that it may need and that may need it."""
    edges = [
        (name, below)
        for node, name in enumerate(problem.node_class)
        for below in problem.below(node)
    ]
    return strong_parts(len(problem.members), edges)


def strong_parts(size: int, edges: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """The strongly connected component of each of `size` vertices."""
    rows, columns = zip(*edges, strict=True) if edges else ((), ())
    graph = coo_array((np.ones(len(edges), np.int8), (rows, columns)), shape=(size, size))
    _, parts = connected_components(graph.tocsr(), directed=True, connection="strong")
    return tuple(parts.tolist())
