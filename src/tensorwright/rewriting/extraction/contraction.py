"""A problem without the classes that some term computes for free.

    small = contracted(problem)
    small.expanded(cheapest_exact(small.problem).selection)      a selection of the problem

In the e-graph of a network most classes are constants, which are computed once in any case.  No
choice is needed for them: they are no longer below any node, and nodes that differ only in them
become one, the cheapest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorwright.rewriting.extraction.cheapest_trees import cheapest_trees
from tensorwright.rewriting.extraction.problem import ExtractionProblem, Selection


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

    def contracted(self, selection: Selection) -> Selection:
        """The rest of a selection of the whole, which costs no more."""
        number_of = {self._key(node): n for n, node in enumerate(self.nodes)}
        choice: dict[int, int] = {}
        for node in selection.nodes:
            if self.whole.node_class[node] not in self.free:
                choice[self.whole.node_class[node]] = number_of[self._key(node)]
        return Selection.of(self.problem, choice)

    def _key(self, node: int) -> tuple[int, frozenset[int]]:
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
