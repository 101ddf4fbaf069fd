"""Several cheap selections that are unlike each other: of which the true cost is asked.

Costs of nodes are estimates, so the cheapest selection need not be the fastest program.  Others are
found by taking away, each time, one choice of the cheapest and improving what is left.  Selections
that differ only in nodes that cost nothing count as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from tensorwright.rewriting.extraction.cheapest_trees import cheapest_trees
from tensorwright.rewriting.extraction.draft import Draft
from tensorwright.rewriting.extraction.local_search import cheapest_dag
from tensorwright.rewriting.extraction.problem import ExtractionProblem, Selection

_TRIES = 4  # for each selection that is wanted


def cheap_selections(problem: ExtractionProblem, count: int) -> tuple[Selection, ...]:
    """Up to so many selections, the cheapest first, no two with the same nodes of some cost.

    Raises:  ValueError where a root has no finite term.
    """
    first = cheapest_dag(problem).selection
    found = {_costly(problem, first): first}
    for name, node, start in islice(_next_steps(problem, first), _TRIES * count):
        other = cheapest_dag(_with_only(problem, name, node), start).selection
        found.setdefault(_costly(problem, other), other)
    return tuple(sorted(found.values(), key=lambda each: (each.cost, each.nodes))[:count])


def _costly(problem: ExtractionProblem, selection: Selection) -> frozenset[int]:
    return frozenset(node for node in selection.nodes if problem.cost[node])


def _next_steps(
    problem: ExtractionProblem, best: Selection
) -> Iterator[tuple[int, int, Selection]]:
    """The other nodes of the classes in use, with what is selected then: those that add least to
    the cost first.
    """
    usual, _ = cheapest_trees(problem)
    draft = Draft(problem, usual, best)
    costs: list[tuple[float, int, int]] = []
    for name, own in best.choice(problem).items():
        for node in problem.nodes_of(name):
            mark = draft.mark()
            if node != own and math.isfinite(problem.cost[node]) and draft.switch(name, node):
                costs.append((draft.cost, name, node))
                draft.undo(mark)
    for _, name, node in sorted(costs):
        mark = draft.mark()
        draft.switch(name, node)
        yield name, node, draft.selection()
        draft.undo(mark)


def _with_only(problem: ExtractionProblem, name: int, node: int) -> ExtractionProblem:
    """The problem in which a class has one node."""
    cost = list(problem.cost)
    for other in problem.nodes_of(name):
        if other != node:
            cost[other] = math.inf
    return replace(problem, cost=tuple(cost))
