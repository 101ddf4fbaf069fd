"""The cheapest term of an e-graph, shared subterms counted once.

The problem of extraction: classes of equal terms, each with nodes of which one is taken.

    problem = ExtractionProblem.of([(0, 1.0, ()), (0, 0.5, (1,)), (1, 2.0, ())], roots=(0,))
    problem.nodes_of(0)                                       (0, 1)
    Selection.of(problem, {0: 1, 1: 2}).cost                  2.5, arguments first: (2, 1)

A node computes its class from the classes below it, at a cost.  A selection takes one node for each
class that the roots need and so is a DAG, in which each class is computed and paid for once.  The
cost of the tree, in which it is paid for at each use, is what most searches minimise instead.

The cheapest tree of each class, by Knuth's generalisation of Dijkstra's algorithm.

Classes become final from the cheapest to the most expensive; a node can be priced when all classes
below it are final.  One pass takes n log n. Cycles need no special care, because a final class
never needs itself.

Source:  Knuth, A generalization of Dijkstra's algorithm, Information Processing Letters 6(1), 1977.

A problem without the classes that some term computes for free.

    small = contracted(problem)
    small.expanded(cheapest_exact(small.problem).selection)      a selection of the problem

In the e-graph of a network most classes are constants, which are computed once in any case.  No
choice is needed for them: they are no longer below any node, and nodes that differ only in them
become one, the cheapest.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tensorwright.rewriting.dims import NeedsItselfError, arguments_first

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


_DEAREST = 1e300  # trees of networks whose results are added to themselves double with each layer


def cheapest_trees(
    problem: ExtractionProblem, costs: Sequence[float] | None = None
) -> tuple[dict[int, int], dict[int, float]]:
    """The node at the top of the cheapest tree of each class, and its cost.

    costs    of the nodes, where not those of the problem
    Classes that no finite tree computes are left out.
    """
    cost_of = problem.cost if costs is None else costs
    users: list[list[int]] = [[] for _ in problem.members]
    waits = [0] * len(cost_of)
    heap: list[tuple[float, int]] = []
    for node, cost in enumerate(cost_of):
        below = problem.below(node)
        waits[node] = len(below)
        for name in below:
            users[name].append(node)
        if not below and math.isfinite(cost):
            heap.append((cost, node))
    heapq.heapify(heap)
    choice: dict[int, int] = {}
    total_of: dict[int, float] = {}
    while heap:
        total, node = heapq.heappop(heap)
        name = problem.node_class[node]
        if name in choice:
            continue
        choice[name], total_of[name] = node, total
        for user in users[name]:
            waits[user] -= 1
            if waits[user] == 0 and math.isfinite(cost_of[user]):
                whole = cost_of[user] + sum(total_of[each] for each in problem.children[user])
                heapq.heappush(heap, (min(whole, _DEAREST), user))
    return choice, total_of


def cheapest_trees_given(problem: ExtractionProblem, selection: Selection) -> dict[int, int]:
    """The top node of the cheapest tree of each class, if the nodes of a selection cost nothing.

    A class of the selection has its node in the selection.
    """
    taken = selection.choice(problem)
    costs = [
        cost if name not in taken else 0.0 if taken[name] == node else math.inf
        for node, (name, cost) in enumerate(zip(problem.node_class, problem.cost, strict=True))
    ]
    choice, _ = cheapest_trees(problem, costs)
    return choice


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """A smaller problem, whose selections cost as much as those of the whole.

    nodes   of the whole, for each node that is left
    free    the node that is taken for each class that was left out
    """

    whole: ExtractionProblem
    problem: ExtractionProblem
    nodes: tuple[int, ...]
    free: Mapping[int, int]

    def expanded(self, selection: Selection) -> Selection:
        """The selection of the whole that one of the smaller problem stands for."""
        taken = {self.whole.node_class[self.nodes[n]]: self.nodes[n] for n in selection.nodes}
        return Selection.of(self.whole, {**self.free, **taken})

    def key(self, node: int) -> tuple[int, frozenset[int]]:
        """The class of a node of the whole and the classes below it that are paid for."""
        return self.whole.node_class[node], _paid(self.whole, node, self.free)


def contracted(problem: ExtractionProblem) -> Contraction:
    """Leave out the classes that cost nothing, and all but one of the nodes with equal needs."""
    usual, cost = cheapest_trees(problem)
    free = {name: node for name, node in usual.items() if cost[name] == 0}
    best: dict[tuple[int, frozenset[int]], int] = {}
    for node, name in enumerate(problem.node_class):
        if name not in free:
            key = name, _paid(problem, node, free)
            if key not in best or problem.cost[node] < problem.cost[best[key]]:
                best[key] = node
    nodes = tuple(sorted(best.values()))
    smaller = ExtractionProblem.of(
        [
            (
                problem.node_class[node],
                problem.cost[node],
                tuple(below for below in problem.children[node] if below not in free),
            )
            for node in nodes
        ],
        [root for root in problem.roots if root not in free],
    )
    return Contraction(problem, smaller, nodes, free)


def _paid(problem: ExtractionProblem, node: int, free: Mapping[int, int]) -> frozenset[int]:
    return frozenset(below for below in problem.children[node] if below not in free)
