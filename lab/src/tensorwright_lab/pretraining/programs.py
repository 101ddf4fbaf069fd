"""Measured programs as the arrays that trees are fitted to.

The measured programs of a network as plain arrays: a file of NumPy's, nothing is unpickled.

Features take a while to compute and do not depend on the machine: they are kept beside the records.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import RecordError, write_atomically
from tensorwright.machine import Machine
from tensorwright.tuning.datasets import Dataset
from tensorwright.tuning.features import FEATURE_NAMES
from tensorwright.tuning.models import Features
from tensorwright.tuning.time_model import ROW_NAMES, rows_of


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredWorkload:
    """The programs of one workload, measured under one set of conditions.

    key, name     of the workload              family       of the network that it is from
    features      (statements of all programs, features)
    counts        (programs,): how many statements each has
    times_s       (programs,)                  is_censored  (programs,): dropped early
    default       number of the program by rule; -1 where it did not run
    """

    key: str
    name: str
    family: str
    features: Features
    counts: NDArray[np.int64]
    times_s: NDArray[np.float64]
    is_censored: NDArray[np.bool_]
    default: int

    @classmethod
    def of(cls, data: Dataset, key: str, name: str, family: str, default_trace: str) -> Self:
        """From a dataset of one workload, at least one sample."""
        traces = [record.trace for record in data.records]
        return cls(
            key,
            name,
            family,
            np.concatenate([sample.features for sample in data.samples], dtype=np.float32),
            np.array([len(sample.features) for sample in data.samples], np.int64),
            np.array([sample.time_s for sample in data.samples]),
            np.array([sample.is_censored for sample in data.samples]),
            traces.index(default_trace) if default_trace in traces else -1,
        )


_TEXTS = ("key", "name", "family")
_ARRAYS = ("features", "counts", "times_s", "is_censored")


def write_features(path: Path, workloads: Sequence[MeasuredWorkload]) -> None:
    """Write the workloads of one network, whole or not at all.  Raises: OutputError."""
    arrays: dict[str, NDArray[np.generic]] = {
        "defaults": np.array([each.default for each in workloads], np.int64)
    }
    for name in _TEXTS:
        arrays[name] = np.array([getattr(each, name) for each in workloads], np.str_)
    for number, each in enumerate(workloads):
        arrays |= {f"{name}_{number}": getattr(each, name) for name in _ARRAYS}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_atomically(path, buffer.getvalue())


def read_features(path: Path) -> tuple[MeasuredWorkload, ...]:
    """Read what `write_features` wrote.

    Raises:  RecordError for a file that is damaged or has other features.
    """
    try:
        content = io.BytesIO(path.read_bytes())
        with np.load(content, allow_pickle=False) as file:
            workloads = tuple(_workload(file, number) for number in range(len(file["defaults"])))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise _error(path, str(error)) from None
    if any(each.features.shape[1] != len(FEATURE_NAMES) for each in workloads):
        raise _error(path, "it has other features than this version")
    return workloads


def _workload(file: np.lib.npyio.NpzFile, number: int) -> MeasuredWorkload:
    key, name, family = (str(file[text][number]) for text in _TEXTS)
    features, counts, times_s, is_censored = (file[f"{name}_{number}"] for name in _ARRAYS)
    default = int(file["defaults"][number])
    return MeasuredWorkload(key, name, family, features, counts, times_s, is_censored, default)


def _error(path: Path, reason: str) -> RecordError:
    return RecordError(
        stage="time model",
        where=f"file {path}",
        reason=reason,
        remedy="remove it; it is made again from the records",
    )


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
