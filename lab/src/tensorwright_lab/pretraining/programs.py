"""Measured programs as the arrays that trees are fitted to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.machine import Machine
from tensorwright.tuning.models import Features
from tensorwright.tuning.time_model import ROW_NAMES, rows_of
from tensorwright_lab.pretraining.feature_files import MeasuredWorkload

Column = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """Programs of many workloads, those of one next to each other.

    rows         (rows, columns), a row for each statement, those of a program in order
    base         (rows,): log2 of the seconds that the roofline gives the statement
    floor        (rows,): log2 of the seconds that it is never expected to fall short of
    counts       (programs,): how many statements each has
    groups       (programs,): the number of its workload, ascending
    log2_s       (programs,): log2 of the measured seconds
    is_censored  (programs,): it takes at least so long
    is_default   (programs,): it is the schedule by rule
    """

    rows: Features
    base: Column
    floor: Column
    counts: Ints
    groups: Ints
    log2_s: Column
    is_censored: NDArray[np.bool_]
    is_default: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def owner(self) -> Ints:
        """(rows,): the number of the program that a row belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def workloads(self) -> int:
        """How many workloads there are."""
        return int(self.groups[-1]) + 1 if len(self.groups) else 0

    @property
    def least_log2_s(self) -> Column:
        """(programs,): the log2 of the seconds of the fastest program of its workload."""
        return least_of(self.groups, self.log2_s)[self.groups]

    def total(self, values: Column) -> tuple[Column, Column]:
        """log2 of the seconds of programs, from what trees add to the base of each row (rows,).

        Returns:  (programs,), and (rows,): what share of its program's time a statement takes
        """
        terms = self.base + values
        starts = np.cumsum(self.counts) - self.counts
        most = np.maximum.reduceat(terms, starts)
        shares = np.exp2(terms - np.repeat(most, self.counts))
        sums = np.add.reduceat(shares, starts)
        return most + np.log2(sums), shares / np.repeat(sums, self.counts)


def least_of(groups: Ints, values: Column) -> Column:
    """(groups,): the least of the values of each group."""
    least = np.full(int(groups.max()) + 1, np.inf)
    np.minimum.at(least, groups, values)
    return least


def programs_of(measured: Iterable[tuple[MeasuredWorkload, Machine]]) -> Programs:
    """Put workloads into arrays, each with the machine that it was measured on.

    What is predicted for a program does not depend on which others are beside it.
    """
    parts: list[_Part] = [
        _part(number, workload, machine) for number, (workload, machine) in enumerate(measured)
    ]
    if not parts:
        none = np.empty(0, np.int64)
        rows = np.empty((0, len(ROW_NAMES)), np.float32)
        flags = np.empty(0, np.bool_)
        nothing = np.empty(0)
        return Programs(rows, nothing, nothing, none, none, nothing, flags, flags)
    return Programs(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.base for part in parts]),
        np.concatenate([part.floor for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.groups for part in parts]),
        np.log2(np.concatenate([part.times_s for part in parts])),
        np.concatenate([part.is_censored for part in parts]),
        np.concatenate([part.is_default for part in parts]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    rows: Features
    base: Column
    floor: Column
    counts: Ints
    groups: Ints
    times_s: Column
    is_censored: NDArray[np.bool_]
    is_default: NDArray[np.bool_]


def _part(number: int, workload: MeasuredWorkload, machine: Machine) -> _Part:
    """The programs of one workload, those with equal numbers of statements together."""
    starts = np.cumsum(workload.counts) - workload.counts
    order: list[Ints] = []
    rows: list[Features] = []
    base: list[Column] = []
    floor: list[Column] = []
    for count in np.unique(workload.counts):
        places = np.flatnonzero(workload.counts == count)
        table = rows_of(workload.features[starts[places][:, None] + np.arange(count)], machine)
        order.append(places)
        rows.append(table.rows)
        base.append(table.base.ravel().astype(np.float64))
        floor.append(table.floor.ravel().astype(np.float64))
    placed = np.concatenate(order)
    return _Part(
        np.concatenate(rows),
        np.concatenate(base),
        np.concatenate(floor),
        workload.counts[placed],
        np.full(len(placed), number, np.int64),
        workload.times_s[placed],
        workload.is_censored[placed],
        placed == workload.default,
    )
