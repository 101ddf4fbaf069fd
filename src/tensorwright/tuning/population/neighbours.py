"""Which rows of a choice are next to each other: the steps of mutation and of local refinement.

Two rows are neighbours if one factor moves between two levels (the product of both columns stays),
or if one column alone changes, which moves a factor between that level and the outermost loop; and
if no other row lies between them.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.int64]


def neighbour_pairs(table: NDArray[np.int64]) -> Pairs:
    """All pairs (row, neighbour), each once in both directions, ascending.

    Shapes:  table (rows, names) -> (pairs, 2)
    """
    count, levels = table.shape
    parts = [_adjacent(np.delete(table, level, 1), table[:, level]) for level in range(levels)]
    for one, other in itertools.combinations(range(levels), 2):
        product = table[:, one] * table[:, other]
        fixed = np.column_stack([np.delete(table, (one, other), 1), product])
        parts.append(_adjacent(fixed, table[:, one]))
    pairs = np.concatenate([*parts, np.empty((0, 2), np.int64)])
    both = np.concatenate([pairs, pairs[:, ::-1]])
    numbers = np.unique(both[:, 0] * count + both[:, 1])
    return np.column_stack([numbers // count, numbers % count])


def _adjacent(fixed: NDArray[np.int64], moving: NDArray[np.int64]) -> Pairs:
    """Pairs of rows that agree in all fixed columns and follow each other in the moving one."""
    order = np.lexsort((moving, *fixed.T))
    sorted_rows = fixed[order]
    is_same = np.all(sorted_rows[1:] == sorted_rows[:-1], axis=1)
    return np.column_stack([order[:-1], order[1:]])[is_same]
