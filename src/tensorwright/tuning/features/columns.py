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


_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _FLOOR, _MINIMUM, _MAXIMUM = range(7)
_ABSOLUTE, _ABOVE, _SAME, _CHOOSE = range(7, 11)
_BITS = 24  # of a place: a program has some thousand steps
_MASK = (1 << _BITS) - 1
_THIRD = 3 * _BITS


class Column:
    """One number per candidate: a place on a tape."""

    __slots__ = ("place", "tape")

    def __init__(self, tape: Tape, place: int) -> None:
        self.tape = tape
        self.place = place

    def __add__(self, other: Cell) -> Cell:
        if other.__class__ is not Column and other == 0:
            return self
        return self.tape.step(_ADD, self, other)

    __radd__ = __add__

    def __sub__(self, other: Cell) -> Cell:
        if other is self:
            return 0
        if other.__class__ is not Column and other == 0:
            return self
        return self.tape.step(_SUBTRACT, self, other)

    def __rsub__(self, other: float) -> Cell:
        return self.tape.step(_SUBTRACT, other, self)

    def __mul__(self, other: Cell) -> Cell:
        if other.__class__ is not Column:
            if other == 0:
                return 0
            if other == 1:
                return self
        return self.tape.step(_MULTIPLY, self, other)

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
    return a if _is(b, 1) or _is(a, 0) else tape.step(_DIVIDE, a, b)


def floored(a: Cell, b: Cell) -> Cell:
    """floor(a / b) for integers, b > 0."""
    tape = _tape_of(a, b)
    if tape is None:
        return a // b  # type: ignore[operator]
    return a if _is(b, 1) or _is(a, 0) else tape.step(_FLOOR, tape.step(_DIVIDE, a, b))


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
    return a if a is b else tape.step(_MINIMUM, a, b)


def larger(a: Cell, b: Cell) -> Cell:
    """The larger of two."""
    tape = _tape_of(a, b)
    if tape is None:
        return max(a, b)  # type: ignore[type-var]
    return a if a is b else tape.step(_MAXIMUM, a, b)


def absolute(a: Cell) -> Cell:
    """The magnitude of a number."""
    return a.tape.step(_ABSOLUTE, a) if isinstance(a, Column) else abs(a)


def above(a: Cell, b: Cell) -> Cell:
    """1 where a > b, else 0."""
    tape = _tape_of(a, b)
    if tape is None:
        return int(a > b)  # type: ignore[operator]
    return 0 if a is b else tape.step(_ABOVE, a, b)


def same(a: Cell, b: Cell) -> Cell:
    """1 where a = b, else 0."""
    tape = _tape_of(a, b)
    if tape is None:
        return int(a == b)
    return 1 if a is b else tape.step(_SAME, a, b)


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
    return flag.tape.step(_CHOOSE, flag, a, b)


def _is_above(a: _Array, b: _Array) -> _Array:
    return np.greater(a, b).astype(np.float64)


def _is_same(a: _Array, b: _Array) -> _Array:
    return np.equal(a, b).astype(np.float64)


def _chosen(flag: _Array, a: _Array, b: _Array) -> _Array:
    return np.where(flag != 0, a, b)


_FUNCTIONS: tuple[_Operation, ...] = (
    np.add,
    np.subtract,
    np.multiply,
    np.divide,
    np.floor,
    np.minimum,
    np.maximum,
    np.absolute,
    _is_above,
    _is_same,
    _chosen,
)


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
        self._known: dict[int, Column] = {}  # by operation and operands, packed into one number
        self._size = 1  # the place 0 stands for an operand that is not there

    def column(self, name: str) -> Column:
        """The column that is given under a name when the tape runs."""
        if name not in self._columns:
            self._columns[name] = Column(self, self._size)
            self._size += 1
        return self._columns[name]

    def step(self, operation: int, a: Cell, b: Cell | None = None, c: Cell | None = None) -> Column:
        """The result of an operation on columns and numbers."""
        key = operation << 2 * _BITS
        key |= (a.place if isinstance(a, Column) else self._place_of(a)) << _BITS
        if b is not None:
            key |= b.place if isinstance(b, Column) else self._place_of(b)
            if c is not None:
                key |= (c.place if isinstance(c, Column) else self._place_of(c)) << _THIRD
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Column(self, self._size)
            self._size += 1
        return found

    def _place_of(self, number: float) -> int:
        place = self._numbers.get(number)
        if place is None:
            place = self._numbers[number] = self._size
            self._size += 1
        return place

    def recording(self, results: Sequence[Column]) -> Recording:
        """What computes some columns, without the steps that they do not need.

        Each step is kept with the places that nothing needs after it: their memory is used again.
        """
        wanted = [column.place for column in results]
        live = bytearray(self._size)
        for place in wanted:
            live[place] = 1
        live[0] = 1
        steps: list[_Step] = []
        for key, column in reversed(self._known.items()):
            if live[column.place]:
                a, b = key >> _BITS & _MASK, key & _MASK
                c = key >> _THIRD
                ends: list[int] = []
                for place in (a, b, c):
                    if not live[place]:
                        live[place] = 1
                        ends.append(place)
                operation = _FUNCTIONS[key >> 2 * _BITS & _MASK]
                steps.append((operation, a, b, c, column.place, tuple(ends)))
        steps.reverse()
        used = tuple((n, column.place) for n, column in self._columns.items() if live[column.place])
        numbers = tuple((number, place) for number, place in self._numbers.items() if live[place])
        return Recording(self._size, used, numbers, tuple(steps), tuple(wanted))


_Step: TypeAlias = "tuple[_Operation, int, int, int, int, tuple[int, ...]]"
"""Operation, places of three operands or 0, place of the result, places that are free after it."""


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
        for operation, a, b, c, place, ends in self._steps:
            if c:
                values[place] = operation(values[a], values[b], values[c])
            elif b:
                values[place] = operation(values[a], values[b])
            else:
                values[place] = operation(values[a])
            for end in ends:
                values[end] = None
        return [values[place] for place in self._wanted]
