"""The table of equivalence classes: every tensor value once, with its cheapest term.

    class 0    an input: code INPUT, a -1, b -1
    class 9    matmul(x1, w1): code of matmul, a 0, b 3, cost 1, its fingerprint
    Kind       shape (2, 4), split points ((), ()), no weight

A row is a class; its columns are arrays that grow by one level at a time.  The term of a class is
an application (`code`, `cut`) to classes `a` and `b` (-1 where there is none), or an input: then
`code` is INPUT and the number of the class is that of the input.  `nodes` are the operators of the
term, shared ones once, as hashes: its graph is their set.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewriting.operators import IntShape
from tensorwright_lab.rule_generation.enumerate.renaming import WIDTH
from tensorwright_lab.rule_generation.operator_facts import SplitPoints

INPUT = -1
NOWHERE = -1
"""The kind of what is never an argument, the row of a class without a stored value."""
MAX_OPERATORS = 5
"""Operators of a term at most."""
Ints: TypeAlias = NDArray[np.int32]
Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Kind:
    """Facts about a tensor besides its value: shape, split points, whether it is a weight."""

    shape: IntShape
    split_points: SplitPoints
    is_weight: bool


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Applications found at one level, as columns; `key` has one word for each sample."""

    code: Ints
    cut: Ints
    a: Ints
    b: Ints
    kind: Ints
    key: NDArray[np.uint64]

    @staticmethod
    def joined(batches: list[Batch]) -> Batch:
        """One batch of several."""
        if not batches:
            none = np.zeros(0, np.int32)
            return Batch(none, none, none, none, none, np.zeros((0, 2), np.uint64))
        columns = zip(*(each.columns().values() for each in batches), strict=True)
        return Batch(*map(np.concatenate, columns))

    def take(self, rows: NDArray[Any] | slice) -> Batch:
        """Some of the rows."""
        return Batch(*(column[rows] for column in self.columns().values()))

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name."""
        return {each.name: getattr(self, each.name) for each in fields(Batch)}

    def __len__(self) -> int:
        return len(self.code)


Applied: TypeAlias = tuple[int, int, int, int]
"""Code, cut, and the classes of the arguments, -1 for none."""


def applied_at(columns: Batch | ClassTable, row: int) -> Applied:
    """The application in a row."""
    cut, a, b = int(columns.cut[row]), int(columns.a[row]), int(columns.b[row])
    return int(columns.code[row]), cut, a, b


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """The different numbers of a column, rising.

    By sorting: NumPy's `unique` of numbers alone hashes them, which takes ten times as long.
    """
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def _empty(dtype: type, width: int = 0) -> Any:
    return np.zeros((0, width) if width else 0, dtype)


@dataclass(slots=True)
class ClassTable:
    """The classes found so far; a session owns and grows it.

    cost      operators of the term
    form      the term up to the names of its inputs, and `sequence` these inputs: see `renaming.py`
    row       where its value is among the stored ones of its shape; NOWHERE at the last level
    """

    code: Ints = field(default_factory=lambda: _empty(np.int32))
    cut: Ints = field(default_factory=lambda: _empty(np.int32))
    a: Ints = field(default_factory=lambda: _empty(np.int32))
    b: Ints = field(default_factory=lambda: _empty(np.int32))
    kind: Ints = field(default_factory=lambda: _empty(np.int32))
    key: NDArray[np.uint64] = field(default_factory=lambda: _empty(np.uint64, 2))
    cost: NDArray[np.int8] = field(default_factory=lambda: _empty(np.int8))
    form: NDArray[np.uint64] = field(default_factory=lambda: _empty(np.uint64))
    sequence: NDArray[np.int8] = field(default_factory=lambda: _empty(np.int8, WIDTH))
    nodes: NDArray[np.uint64] = field(default_factory=lambda: _empty(np.uint64, MAX_OPERATORS))
    row: Ints = field(default_factory=lambda: _empty(np.int32))
    kinds: list[Kind] = field(default_factory=list)
    kind_numbers: dict[Kind, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.code)

    def kind_number(self, kind: Kind) -> int:
        """The number of a kind; a new one gets the next."""
        if kind not in self.kind_numbers:
            self.kind_numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        return self.kind_numbers[kind]

    def append(self, columns: dict[str, NDArray[Any]]) -> None:
        """Add classes."""
        for name, more in columns.items():
            setattr(self, name, np.concatenate([getattr(self, name), more]))

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name."""
        names = [each.name for each in fields(self) if not each.name.startswith("kind_")]
        return {name: getattr(self, name) for name in names if name != "kinds"}

    def shapes(self) -> tuple[list[IntShape], Ints]:
        """The shapes in a fixed order, and the number of its shape for each kind."""
        listed = list(dict.fromkeys(kind.shape for kind in self.kinds))
        numbers = {shape: at for at, shape in enumerate(listed)}
        return listed, np.array([numbers[kind.shape] for kind in self.kinds], np.int32)

    def stored(self) -> dict[IntShape, Places]:
        """The classes with stored values by shape, in rising order."""
        listed, by_kind = self.shapes()
        chosen = np.flatnonzero(self.row >= 0)
        own = by_kind[self.kind[chosen]]
        return {
            shape: chosen[own == at] for at, shape in enumerate(listed) if bool((own == at).any())
        }

    def with_none(self) -> tuple[NDArray[np.uint64], NDArray[np.int8]]:
        """Forms and sequences with one more row, that of argument -1."""
        none = np.full((1, WIDTH), -1, np.int8)
        return np.append(self.form, np.uint64(0)), np.concatenate([self.sequence, none])
