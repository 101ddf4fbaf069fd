"""Several cheap selections that are unlike each other: of which the true cost is asked.

Costs of nodes are estimates, so the cheapest selection need not be the fastest program.  Others are
found by letting a class, each time, keep another node than that of the cheapest and improving the
rest.  Selections whose nodes cost the same, one by one, count as one: sums in another order, say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from tensorwright.rewriting.extraction.draft import Draft
from tensorwright.rewriting.extraction.local_search import LocalSearcher
from tensorwright.rewriting.extraction.problem import ExtractionProblem, Selection

_TRIES = 4  # for each selection that is wanted
_ALIKE = 1e-6  # of the whole: costs that differ by less are the same


def cheap_selections(problem: ExtractionProblem, count: int) -> tuple[Selection, ...]:
    """Up to so many selections, the cheapest first, no two whose nodes cost the same.

    Raises:  ValueError where a root has no finite term.
    """
    searcher = LocalSearcher(problem)
    first = searcher.improve().selection
    if count == 1:
        return (first,)
    unit = _ALIKE * max(first.cost, 1e-30)
    found = {_costs(problem, first, unit): first}
    starts = list(islice(_next_steps(searcher.draft, first), _TRIES * count))
    for name, start in starts:
        other = searcher.improve(start, name).selection
        found.setdefault(_costs(problem, other, unit), other)
    return tuple(sorted(found.values(), key=lambda each: (each.cost, each.nodes))[:count])


def _costs(problem: ExtractionProblem, selection: Selection, unit: float) -> tuple[int, ...]:
    """What the nodes cost, in ascending order; those that cost nothing do not count."""
    return tuple(sorted(filter(None, (round(problem.cost[n] / unit) for n in selection.nodes))))


def _next_steps(draft: Draft, best: Selection) -> Iterator[tuple[int, Selection]]:
    """Selections in which a class in use has another node, those that add least to the cost first;
    not those that change no cost.
    """
    problem = draft.problem
    draft.begin(best)
    own_cost = draft.cost
    least = _ALIKE * max(own_cost, 1e-30)
    costs: list[tuple[float, int, int]] = []
    for name, own in best.choice(problem).items():
        for node in problem.nodes_of(name):
            mark = draft.mark()
            if node != own and math.isfinite(problem.cost[node]) and draft.switch(name, node):
                if abs(draft.cost - own_cost) > least:
                    costs.append((draft.cost, name, node))
                draft.undo(mark)
    for _, name, node in sorted(costs):
        mark = draft.mark()
        draft.switch(name, node)
        yield name, draft.selection()
        draft.undo(mark)
