"""Equal values become one class: what a level found is grouped by fingerprint.

    in     applications with keys k1, k2, k1, k3; class 5 has key k3
    table  grows by a class for k1 (its first member by form), one for k2
    out    Equalities: the other k1 is of the new class, k3 of class 5

A group that holds an older class gives equalities with it.  Of another group the first member by
form becomes a class, and the rest are equalities.

How many graphs the classes stand for: every choice of equal arguments makes another graph.

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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensorwright_lab.rule_generation.enumerate.classes import (
    INPUT,
    NOWHERE,
    Batch,
    ClassTable,
    Ints,
    Places,
)
from tensorwright_lab.rule_generation.enumerate.renaming import form_of, merge
from tensorwright_lab.rule_generation.enumerate.sharing import nodes_of

Family = NDArray[np.int64]
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Equalities:
    """Applications that equal the class in `of` and are not its term."""

    batch: Batch
    of: Places

    @staticmethod
    def joined(parts: list[Equalities]) -> Equalities:
        """One of several."""
        none = np.zeros(0, np.intp)
        of = np.concatenate([none, *(each.of for each in parts)])
        return Equalities(Batch.joined([each.batch for each in parts]), of)

    def __len__(self) -> int:
        return len(self.of)


class Described(NamedTuple):
    """Forms and sequences of applications: see `renaming.py`."""

    form: NDArray[np.uint64]
    sequence: NDArray[np.int8]


def describe(table: ClassTable, batch: Batch) -> Described:
    """The terms of applications up to the names of their inputs."""
    forms, sequences = table.with_none()
    form = np.empty(len(batch), np.uint64)
    sequence = np.empty((len(batch), sequences.shape[1]), np.int8)
    for at in range(0, len(batch), _BLOCK):
        part = slice(at, at + _BLOCK)
        sides = (Described(forms[arg[part]], sequences[arg[part]]) for arg in (batch.a, batch.b))
        form[part], sequence[part] = combined(batch.take(part), *sides)
    return Described(form, sequence)


def combined(batch: Batch, a: Described, b: Described) -> Described:
    """Forms and sequences of applications from those of their arguments."""
    sequence, places = merge(a.sequence, b.sequence)
    code = batch.code.astype(np.int64) * 64 + batch.cut + 1
    return Described(form_of(code, a.form, b.form, places), sequence)


def group_equal(
    table: ClassTable, batch: Batch, level: int, family: Family, *, is_last: bool
) -> Equalities:
    """Group applications; the table grows by the new classes.

    The last level gets classes only for groups of several members.  Applications that share so
    many operators that an earlier level tried them are left out.  The order of the batch does not
    matter.
    """
    batch = batch.take(np.lexsort((batch.b, batch.a, batch.cut, batch.code)))
    nodes, count = nodes_of(table, batch, family)
    fresh = count == level
    batch, nodes = batch.take(fresh), nodes[fresh]
    described = describe(table, batch)
    of, chosen = _group(table, batch, described.form, is_last=is_last)
    _add(table, batch, chosen, described, nodes, level)
    is_member = of >= 0
    is_member[chosen] = False
    member = np.flatnonzero(is_member)
    return Equalities(batch.take(member), of[member])


def _group(
    table: ClassTable, batch: Batch, form: NDArray[np.uint64], *, is_last: bool
) -> tuple[Places, Places]:
    """The class of each application, or -1; and the applications that become classes, in order."""
    old = len(table)
    keys = np.concatenate([table.key, batch.key])
    rank = np.concatenate([np.zeros(old, np.uint64), form | np.uint64(1)])
    order = np.argsort(keys[:, 0] ^ (keys[:, 1] << np.uint64(1)))  # equal keys stand together
    starts = np.ones(len(order), np.bool_)
    first, second = keys[order, 0], keys[order, 1]
    starts[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    group = np.cumsum(starts) - 1
    least = np.minimum.reduceat(rank[order], np.flatnonzero(starts))
    candidates = np.where(rank[order] == least[group], order, len(order))
    leader = np.minimum.reduceat(candidates, np.flatnonzero(starts))
    is_new = leader >= old
    if is_last:
        is_new &= np.bincount(group) > 1
    chosen = leader[is_new] - old
    order_of_new = _places(table, batch, chosen)
    label = np.where(leader < old, leader, -1)
    label[np.flatnonzero(is_new)[order_of_new]] = old + np.arange(len(order_of_new))
    of = np.empty(len(order), np.intp)
    of[order] = label[group]
    return of[old:], chosen[order_of_new]


def _places(table: ClassTable, batch: Batch, chosen: Places) -> Places:
    """An order of new classes: shape by shape, operator by operator, as their values are made."""
    shape = table.shapes()[1][batch.kind[chosen]]
    columns = (batch.b, batch.a, batch.cut, batch.code)
    return np.lexsort((*(column[chosen] for column in columns), shape))


def _add(
    table: ClassTable,
    batch: Batch,
    chosen: Places,
    described: Described,
    nodes: NDArray[np.uint64],
    level: int,
) -> None:
    new = batch.take(chosen)
    count = len(new)
    table.append(
        {
            "code": new.code,
            "cut": new.cut,
            "a": new.a,
            "b": new.b,
            "kind": new.kind,
            "key": new.key,
            "cost": np.full(count, level, np.int8),
            "form": described.form[chosen],
            "sequence": described.sequence[chosen],
            "nodes": nodes[chosen],
            "row": np.full(count, NOWHERE, np.int32),
        }
    )


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
