"""How many graphs the classes stand for: every choice of equal arguments makes another graph.

    relu(x) and relu(relu(x)) are one class     sizes[c] = [0, 1, 1]
    matmul of it with w                         1 term of 2 operators, 1 of 3
    graphs_of_stored(sizes)                     all terms of one operator or more

`sizes[c, s]` is the number of terms of class c with s operators.  A term of an application has as
many operators as the application at its level, and those by which its arguments are larger than
the terms of their classes.  Of the last level each application stands for the products of the
smallest terms of its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tensorwright_lab.rule_generation.enumerate.classes import INPUT, ClassTable, Ints, Places
from tensorwright_lab.rule_generation.enumerate.grouping import Equalities

Sizes = NDArray[np.float64]


class _Applications:
    """All applications of the stored levels, their classes and levels."""

    def __init__(self, table: ClassTable, equal: Sequence[Equalities]) -> None:
        own = np.flatnonzero(table.code != INPUT)
        self.a = np.concatenate([table.a[own], *(each.batch.a for each in equal)])
        self.b = np.concatenate([table.b[own], *(each.batch.b for each in equal)])
        self.of: Places = np.concatenate([own, *(each.of for each in equal)])
        levels = [np.full(len(each), at, np.int8) for at, each in enumerate(equal, 1)]
        self.level = np.concatenate([table.cost[own], *levels]).astype(np.int64)


def sizes_of(table: ClassTable, equal: Sequence[Equalities], largest: int) -> Sizes:
    """Terms of each class by operators, up to the largest number.

    equal  the equalities of each stored level
    """
    applications = _Applications(table, equal)
    sizes = np.zeros((len(table), largest + 1))
    sizes[table.code == INPUT, 0] = 1
    for size in range(1, largest + 1):
        terms = _terms(table, applications, sizes, size)
        sizes[:, size] = np.bincount(applications.of, terms, len(table))
    return sizes


def _terms(table: ClassTable, applications: _Applications, sizes: Sizes, size: int) -> Sizes:
    """How many terms of some size each application stands for."""
    total = np.zeros(len(applications.of))
    extra = size - applications.level
    for left in range(int(extra.max(initial=-1)) + 1):
        part = _larger(table, applications.a, sizes, np.full(len(total), left))
        total += part * _larger(table, applications.b, sizes, extra - left)
    return total


def _larger(table: ClassTable, arguments: Ints, sizes: Sizes, extra: NDArray[np.int64]) -> Sizes:
    """Terms of arguments with so many operators more than the term of their class."""
    size = table.cost[arguments] + extra
    valid = (arguments >= 0) & (extra >= 0) & (size < sizes.shape[1])
    counts = np.where(valid, sizes[arguments, np.where(valid, size, 0)], 0.0)
    counts[(arguments < 0) & (extra == 0)] = 1.0
    return counts


def graphs_of_stored(sizes: Sizes) -> float:
    """Terms of the stored levels with one operator or more."""
    return float(sizes[:, 1:].sum())


def smallest(table: ClassTable, sizes: Sizes) -> Sizes:
    """Terms of each class with as many operators as its own."""
    counts: Sizes = sizes[np.arange(len(table)), table.cost]
    return counts
