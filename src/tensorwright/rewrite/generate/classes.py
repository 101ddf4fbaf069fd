"""The table of equivalence classes: every tensor value once, with its cheapest term.

A row is a class; its columns are arrays that grow by one level at a time.  The term of a class is
an application (`code`, `place`) to classes `a` and `b` (-1 where there is none), or an input.
`nodes` are the operators of the term, shared ones once, as hashes: its graph is their set.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorwright.rewrite.generate.forms import WIDTH
from tensorwright.rewrite.generate.kernels import SAMPLES, Values
from tensorwright.rewrite.generate.seams import Seams
from tensorwright.rewrite.operators import IntShape

__all__ = ["INPUT", "Batch", "ClassTable", "Kind"]

INPUT = -1
Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of a tensor besides its value: shape, seams, and whether it is a weight."""

    shape: IntShape
    seams: Seams
    is_weight: bool


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Applications found at one level, as columns."""

    code: Ints
    place: Ints
    a: Ints
    b: Ints
    kind: Ints
    key: NDArray[np.uint64]

    @staticmethod
    def joined(batches: list[Batch]) -> Batch:
        """One batch of several."""
        names = [each.name for each in fields(Batch)]
        return Batch(*(np.concatenate([getattr(b, name) for b in batches]) for name in names))

    def take(self, rows: NDArray[Any]) -> Batch:
        """Some of the rows."""
        return Batch(*(getattr(self, each.name)[rows] for each in fields(Batch)))

    def __len__(self) -> int:
        return len(self.code)


def _empty(dtype: type, width: int = 0) -> Any:
    return np.zeros((0, width) if width else 0, dtype)


@dataclass(slots=True)
class ClassTable:
    """The classes found so far; a session owns and grows it."""

    code: Ints = field(default_factory=lambda: _empty(np.int32))
    place: Ints = field(default_factory=lambda: _empty(np.int32))
    a: Ints = field(default_factory=lambda: _empty(np.int32))
    b: Ints = field(default_factory=lambda: _empty(np.int32))
    kind: Ints = field(default_factory=lambda: _empty(np.int32))
    key: NDArray[np.uint64] = field(default_factory=lambda: _empty(np.uint64, 2))
    cost: NDArray[np.int8] = field(default_factory=lambda: _empty(np.int8))
    form: NDArray[np.uint64] = field(default_factory=lambda: _empty(np.uint64))
    sequence: NDArray[np.int8] = field(default_factory=lambda: _empty(np.int8, WIDTH))
    nodes: NDArray[np.uint64] = field(default_factory=lambda: _empty(np.uint64, 8))
    graphs: NDArray[np.float64] = field(default_factory=lambda: _empty(np.float64))
    row: Ints = field(default_factory=lambda: _empty(np.int32))
    values: dict[IntShape, Values] = field(default_factory=dict)
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
        """Add classes; `row` is -1 until they get values."""
        for name, more in columns.items():
            setattr(self, name, np.concatenate([getattr(self, name), more]))

    def store(self, classes: Ints, shape: IntShape, values: Values) -> None:
        """Keep the values of classes of one shape."""
        old = self.values.get(shape)
        first = 0 if old is None else len(old)
        self.values[shape] = values if old is None else np.concatenate([old, values])
        self.row[classes] = np.arange(first, first + len(values))

    def values_of(self, classes: NDArray[Any], shape: IntShape) -> Values:
        """The values of classes of one shape, (count, SAMPLES, size)."""
        held = self.values.get(shape)
        if held is None:
            return np.zeros((0, SAMPLES, int(np.prod(shape, dtype=np.int64))), np.uint32)
        chosen: Values = held[self.row[classes]]
        return chosen
