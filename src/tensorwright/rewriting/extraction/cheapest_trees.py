"""The cheapest tree of each class, by Knuth's generalisation of Dijkstra's algorithm.

Classes become final from the cheapest to the most expensive; a node can be priced when all classes
below it are final.  One pass takes n log n. Cycles need no special care, because a final class
never needs itself.

Source:  Knuth, A generalization of Dijkstra's algorithm, Information Processing Letters 6(1), 1977.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from tensorwright.rewriting.extraction.problem import ExtractionProblem, Selection

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
