"""Arithmetic on numbers or on columns of numbers, by the same functions.

A column stands for one number per candidate.  Arithmetic on plain numbers gives plain numbers at
once; arithmetic on a column adds a step to its graph, where each different step stands once, and
gives the column of the results.  Its program runs on the columns of any candidates, again and
again.

All columns hold float64: integers below 2**52 are exact in it, their floored quotients too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Array: TypeAlias = NDArray[np.float64]
_Operation: TypeAlias = Callable[..., Any]


_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _FLOOR, _MINIMUM, _MAXIMUM = range(7)
_ABSOLUTE, _ABOVE, _SAME, _CHOOSE = range(7, 11)
_BITS = 24  # of a register: a program has some thousand steps
_MASK = (1 << _BITS) - 1
_THIRD = 3 * _BITS


class Column:
    """One number per candidate: the result of a step of a graph."""

    __slots__ = ("graph", "register")

    def __init__(self, graph: ColumnGraph, register: int) -> None:
        self.graph = graph
        self.register = register

    def __add__(self, other: Cell) -> Cell:
        if other.__class__ is not Column and other == 0:
            return self
        return self.graph.step(_ADD, self, other)

    __radd__ = __add__

    def __sub__(self, other: Cell) -> Cell:
        if other is self:
            return 0
        if other.__class__ is not Column and other == 0:
            return self
        return self.graph.step(_SUBTRACT, self, other)

    def __rsub__(self, other: float) -> Cell:
        return self.graph.step(_SUBTRACT, other, self)

    def __mul__(self, other: Cell) -> Cell:
        if other.__class__ is not Column:
            if other == 0:
                return 0
            if other == 1:
                return self
        return self.graph.step(_MULTIPLY, self, other)

    __rmul__ = __mul__


Cell: TypeAlias = "float | Column"
"""A plain number, or a column; flags are 0 and 1."""


def _is(cell: Cell, number: int) -> bool:
    return cell.__class__ is not Column and cell == number


def _graph_of(a: Cell, b: Cell) -> ColumnGraph | None:
    if isinstance(a, Column):
        return a.graph
    return b.graph if isinstance(b, Column) else None


def divided(a: Cell, b: Cell) -> Cell:
    """a / b."""
    graph = _graph_of(a, b)
    if graph is None:
        return a / b  # type: ignore[operator]
    return a if _is(b, 1) or _is(a, 0) else graph.step(_DIVIDE, a, b)


def floored(a: Cell, b: Cell) -> Cell:
    """floor(a / b) for integers, b > 0."""
    graph = _graph_of(a, b)
    if graph is None:
        return a // b  # type: ignore[operator]
    return a if _is(b, 1) or _is(a, 0) else graph.step(_FLOOR, graph.step(_DIVIDE, a, b))


def rounded_up(a: Cell, b: Cell) -> Cell:
    """ceil(a / b) for integers, b > 0."""
    return floored(a + (b - 1), b)


def remainder(a: Cell, b: Cell) -> Cell:
    """a modulo b for integers, b > 0."""
    return a - b * floored(a, b)


def smaller(a: Cell, b: Cell) -> Cell:
    """The smaller of two."""
    graph = _graph_of(a, b)
    if graph is None:
        return min(a, b)  # type: ignore[type-var]
    return a if a is b else graph.step(_MINIMUM, a, b)


def larger(a: Cell, b: Cell) -> Cell:
    """The larger of two."""
    graph = _graph_of(a, b)
    if graph is None:
        return max(a, b)  # type: ignore[type-var]
    return a if a is b else graph.step(_MAXIMUM, a, b)


def absolute(a: Cell) -> Cell:
    """The magnitude of a number."""
    return a.graph.step(_ABSOLUTE, a) if isinstance(a, Column) else abs(a)


def above(a: Cell, b: Cell) -> Cell:
    """1 where a > b, else 0."""
    graph = _graph_of(a, b)
    if graph is None:
        return int(a > b)  # type: ignore[operator]
    return 0 if a is b else graph.step(_ABOVE, a, b)


def same(a: Cell, b: Cell) -> Cell:
    """1 where a = b, else 0."""
    graph = _graph_of(a, b)
    if graph is None:
        return int(a == b)
    return 1 if a is b else graph.step(_SAME, a, b)


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
    return flag.graph.step(_CHOOSE, flag, a, b)


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


class ColumnGraph:
    """Steps of arithmetic on columns; grows while formulas are written.

    Mutable until its last formula is written.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}
        self._numbers: dict[float, int] = {}
        self._steps: dict[int, Column] = {}  # by operation and operands, packed into one number
        self._size = 1  # the register 0 stands for an operand that is not there

    def column(self, name: str) -> Column:
        """The column that is given under a name when the program runs."""
        if name not in self._columns:
            self._columns[name] = Column(self, self._size)
            self._size += 1
        return self._columns[name]

    def step(self, operation: int, a: Cell, b: Cell | None = None, c: Cell | None = None) -> Column:
        """The result of an operation on columns and numbers."""
        key = operation << 2 * _BITS
        key |= (a.register if isinstance(a, Column) else self._register_of(a)) << _BITS
        if b is not None:
            key |= b.register if isinstance(b, Column) else self._register_of(b)
            if c is not None:
                key |= (c.register if isinstance(c, Column) else self._register_of(c)) << _THIRD
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = Column(self, self._size)
            self._size += 1
        return found

    def _register_of(self, number: float) -> int:
        register = self._numbers.get(number)
        if register is None:
            register = self._numbers[number] = self._size
            self._size += 1
        return register

    def program(self, results: Sequence[Column]) -> ColumnProgram:
        """What computes some columns, without the steps that they do not need.

        Each step is kept with the registers that nothing needs after it: their memory is free.
        """
        wanted = [column.register for column in results]
        live = bytearray(self._size)
        for register in wanted:
            live[register] = 1
        live[0] = 1
        steps: list[_Step] = []
        for key, column in reversed(self._steps.items()):
            if live[column.register]:
                a, b = key >> _BITS & _MASK, key & _MASK
                c = key >> _THIRD
                ends: list[int] = []
                for register in (a, b, c):
                    if not live[register]:
                        live[register] = 1
                        ends.append(register)
                operation = _FUNCTIONS[key >> 2 * _BITS & _MASK]
                steps.append((operation, a, b, c, column.register, tuple(ends)))
        steps.reverse()
        used = tuple(
            (n, column.register) for n, column in self._columns.items() if live[column.register]
        )
        numbers = tuple(
            (number, register) for number, register in self._numbers.items() if live[register]
        )
        return ColumnProgram(self._size, used, numbers, tuple(steps), tuple(wanted))


_Step: TypeAlias = "tuple[_Operation, int, int, int, int, tuple[int, ...]]"
"""Operation, registers of three operands or 0, that of the result, those that are free after it."""


class ColumnProgram:
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
        for name, register in self._names:
            values[register] = np.asarray(columns[name], np.float64)
        for number, register in self._numbers:
            values[register] = np.float64(number)
        for operation, a, b, c, register, ends in self._steps:
            if c:
                values[register] = operation(values[a], values[b], values[c])
            elif b:
                values[register] = operation(values[a], values[b])
            else:
                values[register] = operation(values[a])
            for end in ends:
                values[end] = None
        return [values[register] for register in self._wanted]
