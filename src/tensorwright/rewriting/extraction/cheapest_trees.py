"""The cheapest tree of each class, by Knuth's generalisation of Dijkstra's algorithm.

Classes are settled from the cheapest to the dearest; a node can be priced when all classes below it
are settled.  One pass, in n log n; cycles need no care, for what is settled never needs itself.

Source:  Knuth, A generalization of Dijkstra's algorithm, Information Processing Letters 6(1), 1977.
"""

from __future__ import annotations

import heapq
import math

from tensorwright.rewriting.extraction.problem import ExtractionProblem

_DEAREST = 1e300  # trees of networks whose results are added to themselves double with each layer


def cheapest_trees(problem: ExtractionProblem) -> tuple[dict[int, int], dict[int, float]]:
    """The node at the top of the cheapest tree of each class, and its cost.

    Classes that no finite tree computes are left out.
    """
    users: list[list[int]] = [[] for _ in problem.members]
    waits = [0] * len(problem.cost)
    heap: list[tuple[float, int]] = []
    for node, cost in enumerate(problem.cost):
        below = problem.below(node)
        waits[node] = len(below)
        for name in below:
            users[name].append(node)
        if not below and math.isfinite(cost):
            heap.append((cost, node))
    heapq.heapify(heap)
    choice: dict[int, int] = {}
    costs: dict[int, float] = {}
    while heap:
        total, node = heapq.heappop(heap)
        name = problem.node_class[node]
        if name in choice:
            continue
        choice[name], costs[name] = node, total
        for user in users[name]:
            waits[user] -= 1
            if waits[user] == 0 and math.isfinite(problem.cost[user]):
                whole = problem.cost[user] + sum(costs[each] for each in problem.children[user])
                heapq.heappush(heap, (min(whole, _DEAREST), user))
    return choice, costs
