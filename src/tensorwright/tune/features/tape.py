"""Arithmetic on numbers or on columns of numbers, by the same functions.

A column stands for one number per candidate.  Arithmetic on plain numbers gives plain numbers at
once; arithmetic on a column appends a step to its tape, where each different step is taken once,
and gives the column of the results.  A tape runs on the columns of any candidates, again and again.

All columns hold float64: integers below 2**52 are exact in it, their floored quotients too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Cell",
    "Column",
    "Tape",
    "above",
    "absolute",
    "choose",
    "divided",
    "floored",
    "larger",
    "product_of",
    "remainder",
    "rounded_up",
    "same",
    "smaller",
    "total_of",
]

_Array: TypeAlias = NDArray[np.float64]
_Operation: TypeAlias = Callable[..., Any]


class Column:
    """One number per candidate: a place on a tape."""

    __slots__ = ("place", "tape")

    def __init__(self, tape: Tape, place: int) -> None:
        self.tape = tape
        self.place = place

    def __add__(self, other: Cell) -> Cell:
        if other.__class__ is not Column and other == 0:
            return self
        return self.tape.step(np.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: Cell) -> Cell:
        if other is self:
            return 0
        if other.__class__ is not Column and other == 0:
            return self
        return self.tape.step(np.subtract, self, other)

    def __rsub__(self, other: float) -> Cell:
        return self.tape.step(np.subtract, other, self)

    def __mul__(self, other: Cell) -> Cell:
        if other.__class__ is not Column:
            if other == 0:
                return 0
            if other == 1:
                return self
        return self.tape.step(np.multiply, self, other)

    __rmul__ = __mul__


Cell: TypeAlias = "float | Column"
"""A plain number, or a column; flags are 0 and 1."""


def _is(cell: Cell, number: int) -> bool:
    return cell.__class__ is not Column and cell == number


def _tape_of(a: Cell, b: Cell) -> Tape | None:
    if isinstance(a, Column):
        return a.tape
    return b.tape if isinstance(b, Column) else None


def divided(a: Cell, b: Cell) -> Cell:
    """a / b."""
    tape = _tape_of(a, b)
    if tape is None:
        return a / b  # type: ignore[operator]
    return a if _is(b, 1) or _is(a, 0) else tape.step(np.divide, a, b)


def floored(a: Cell, b: Cell) -> Cell:
    """floor(a / b) for integers, b > 0."""
    tape = _tape_of(a, b)
    if tape is None:
        return a // b  # type: ignore[operator]
    return a if _is(b, 1) or _is(a, 0) else tape.step(np.floor, tape.step(np.divide, a, b))


def rounded_up(a: Cell, b: Cell) -> Cell:
    """ceil(a / b) for integers, b > 0."""
    return floored(a + (b - 1), b)


def remainder(a: Cell, b: Cell) -> Cell:
    """a modulo b for integers, b > 0."""
    return a - b * floored(a, b)


def smaller(a: Cell, b: Cell) -> Cell:
    """The smaller of two."""
    tape = _tape_of(a, b)
    if tape is None:
        return min(a, b)  # type: ignore[type-var]
    return a if a is b else tape.step(np.minimum, a, b)


def larger(a: Cell, b: Cell) -> Cell:
    """The larger of two."""
    tape = _tape_of(a, b)
    if tape is None:
        return max(a, b)  # type: ignore[type-var]
    return a if a is b else tape.step(np.maximum, a, b)


def absolute(a: Cell) -> Cell:
    """The magnitude of a number."""
    return a.tape.step(np.absolute, a) if isinstance(a, Column) else abs(a)


def above(a: Cell, b: Cell) -> Cell:
    """1 where a > b, else 0."""
    tape = _tape_of(a, b)
    if tape is None:
        return int(a > b)  # type: ignore[operator]
    return 0 if a is b else tape.step(_above, a, b)


def same(a: Cell, b: Cell) -> Cell:
    """1 where a = b, else 0."""
    tape = _tape_of(a, b)
    if tape is None:
        return int(a == b)
    return 1 if a is b else tape.step(_same, a, b)


def either(a: Cell, b: Cell) -> Cell:
    """1 where one of two flags is, else 0."""
    if _is(a, 1) or _is(b, 0):
        return a
    return b if _is(a, 0) or _is(b, 1) else larger(a, b)


def any_flag(flags: Sequence[Cell]) -> Cell:
    """1 where one of some flags is, else 0."""
    found: Cell = 0
    for flag in flags:
        found = either(found, flag)
    return found


def choose(flag: Cell, a: Cell, b: Cell) -> Cell:
    """a where the flag is 1, else b."""
    if not isinstance(flag, Column):
        return a if flag else b
    if a is b or (not isinstance(a, Column) and not isinstance(b, Column) and a == b):
        return a
    if _is(b, 0):
        return flag * a
    return flag.tape.step(_choose, flag, a, b)


def _above(a: _Array, b: _Array) -> _Array:
    return np.greater(a, b).astype(np.float64)


def _same(a: _Array, b: _Array) -> _Array:
    return np.equal(a, b).astype(np.float64)


def _choose(flag: _Array, a: _Array, b: _Array) -> _Array:
    return np.where(flag != 0, a, b)


def total_of(cells: Sequence[Cell]) -> Cell:
    """The sum of some numbers."""
    total: Cell = 0
    for cell in cells:
        total = total + cell
    return total


def product_of(cells: Sequence[Cell]) -> Cell:
    """The product of some numbers."""
    product: Cell = 1
    for cell in cells:
        product = product * cell
    return product


class Tape:
    """Steps of arithmetic on columns; grows while formulas are written, then runs.

    Mutable until its last formula is written.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}
        self._numbers: dict[float, int] = {}
        self._known: dict[tuple[_Operation, tuple[int, ...]], Column] = {}
        self._size = 0

    def column(self, name: str) -> Column:
        """The column that is given under a name when the tape runs."""
        if name not in self._columns:
            self._columns[name] = Column(self, self._new())
        return self._columns[name]

    def step(self, operation: _Operation, *operands: Cell) -> Column:
        """The result of an operation of NumPy on columns and numbers."""
        places = tuple(
            [cell.place if isinstance(cell, Column) else self._place_of(cell) for cell in operands]
        )
        key = operation, places
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Column(self, self._size)
            self._size += 1
        return found

    def _place_of(self, number: float) -> int:
        if number not in self._numbers:
            self._numbers[number] = self._new()
        return self._numbers[number]

    def _new(self) -> int:
        self._size += 1
        return self._size - 1

    def recording(self, results: Sequence[Column]) -> Recording:
        """What computes some columns, without the steps that they do not need.

        Each step is kept with the places that nothing needs after it: their memory is used again.
        """
        wanted = [column.place for column in results]
        live = bytearray(self._size)
        for place in wanted:
            live[place] = 1
        steps: list[_Step] = []
        for (operation, operands), column in reversed(self._known.items()):
            if live[column.place]:
                ends = tuple([place for place in dict.fromkeys(operands) if not live[place]])
                for place in ends:
                    live[place] = 1
                steps.append((operation, operands, column.place, ends))
        names = tuple((n, column.place) for n, column in self._columns.items())
        used = tuple((name, place) for name, place in names if live[place])
        numbers = tuple((number, place) for number, place in self._numbers.items() if live[place])
        return Recording(self._size, used, numbers, tuple(reversed(steps)), tuple(wanted))


_Step: TypeAlias = "tuple[_Operation, tuple[int, ...], int, tuple[int, ...]]"


class Recording:
    """The steps that compute some columns; immutable."""

    __slots__ = ("_names", "_numbers", "_size", "_steps", "_wanted")

    def __init__(
        self,
        size: int,
        names: tuple[tuple[str, int], ...],
        numbers: tuple[tuple[float, int], ...],
        steps: tuple[_Step, ...],
        wanted: tuple[int, ...],
    ) -> None:
        self._size = size
        self._names = names
        self._numbers = numbers
        self._steps = steps
        self._wanted = wanted

    def __len__(self) -> int:
        return len(self._steps)

    def run(self, columns: Mapping[str, NDArray[Any]]) -> list[Any]:
        """The results for the candidates whose decisions are given."""
        values: list[Any] = [None] * self._size
        for name, place in self._names:
            values[place] = np.asarray(columns[name], np.float64)
        for number, place in self._numbers:
            values[place] = np.float64(number)
        for operation, operands, place, ends in self._steps:
            if len(operands) == 2:
                a, b = operands
                values[place] = operation(values[a], values[b])
            else:
                values[place] = operation(*[values[each] for each in operands])
            for end in ends:
                values[end] = None
        return [values[place] for place in self._wanted]
