"""Local refinement: coordinate descent over the decisions of the best measured programs.

A program is left for a neighbour that was measured to be faster, so all neighbours of the best are
proposed until one is; then that one is the centre.  Published results for such a descent by real
measurement after a short search: Canesche et al., arXiv 2406.20037.
"""

from __future__ import annotations

import numpy as np

from tensorwright.tuning.population.picking import find_new
from tensorwright.tuning.population.population import Population
from tensorwright.tuning.population.space_tables import SpaceTables
from tensorwright.tuning.population.variation import neighbourhood
from tensorwright.tuning.strategies.guide import Guide
from tensorwright.tuning.strategies.history import History

_NEAR = 1.15  # times as slow as the best: slower programs are not centres


def propose_neighbours(
    tables: SpaceTables, history: History, guide: Guide, count: int, centres: int
) -> Population:
    """Up to `count` new programs one step from the best, in the guide's order.

    At most half of them are around the first centre, while others have some.
    """
    programs, times_s = history.best(centres)
    seen = history.keys
    neighbourhoods: list[Population] = []
    for one in np.flatnonzero(times_s <= _NEAR * np.min(times_s, initial=np.inf)):
        around = neighbourhood(tables, int(programs.sketch[one]), programs.genes[one])
        around = around.take(~np.isin(around.sketch, history.dropped))
        around = find_new(around, seen)
        scores = guide.scores(around)
        best = np.argsort(-scores, kind="stable")[np.isfinite(np.sort(-scores))]
        neighbourhoods.append(around.take(best))
    if not neighbourhoods:
        return Population.empty(tables.width)
    return _shared_out(neighbourhoods, count)


def _shared_out(neighbourhoods: list[Population], count: int) -> Population:
    """Half of the remaining count to each neighbourhood in turn; the rest to the first ones."""
    parts: list[Population] = []
    rest: list[Population] = []
    room = count
    for around in neighbourhoods:
        share = min(-(-room // 2), len(around))
        parts.append(around.take(np.arange(share)))
        rest.append(around.take(np.arange(share, len(around))))
        room -= share
    joined = Population.joined([*parts, *rest])
    return joined.take(joined.first_of_each()[:count])
