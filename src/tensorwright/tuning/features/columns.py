"""Arithmetic on numbers or on columns of numbers, by the same functions.

A column stands for one number per candidate.  Arithmetic on plain numbers gives plain numbers at
once; arithmetic on a column adds a step to its graph, where each different step stands once, and
gives the column of the results.  Its program runs on the columns of any candidates, again and
again.

All columns hold float64: integers below 2**52 are exact in it, their floored quotients too.

Index expressions are evaluated over cells as over any kind of number (`CELLS`). The formulas
themselves are not index expressions: they divide fractions and choose by flags, and the normal form
of index expressions would expand their products of sums.

Programs of arithmetic on columns, run by a small interpreter in native code.

A program is a table of steps (operation, three operands, result), each a register: a row of
`LANES` numbers.  It runs on that many candidates at a time, whose registers stay in the second
cache; a step takes some nanoseconds, a call of NumPy takes a microsecond.

    load    register <- a row of the inputs        store   a row of the outputs <- register
    others  register <- operation(registers)       8-byte floats, divisors are not zero

Tables of numbers and columns, into which the results of a program are entered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright import machine_code
from tensorwright.expr import Arithmetic
from tensorwright.runtime import LoadedFunction, load_function

LANES = 32  # candidates at a time
_VECTOR = 8

ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR, MINIMUM, MAXIMUM, ABSOLUTE, ABOVE, SAME, CHOOSE = range(11)
_LOAD, _STORE = 11, 12

_Formula: TypeAlias = Callable[..., machine_code.Number]

_VECTORS = machine_code.vector_type(machine_code.Kind.F64, _VECTOR)
_FORMULAS: Mapping[int, tuple[int, _Formula]] = {
    ADD: (2, lambda a, b: a + b),
    SUBTRACT: (2, lambda a, b: a - b),
    MULTIPLY: (2, lambda a, b: a * b),
    DIVIDE: (2, lambda a, b: a / b),
    FLOOR: (1, lambda a: a.intrinsic("floor")),
    MINIMUM: (2, lambda a, b: a.test("ole", b).choose(a, b)),
    MAXIMUM: (2, lambda a, b: a.test("oge", b).choose(a, b)),
    ABSOLUTE: (1, lambda a: a.intrinsic("fabs")),
    ABOVE: (2, lambda a, b: (a > b).cast("uitofp", _VECTORS)),
    SAME: (2, lambda a, b: a.equals(b).cast("uitofp", _VECTORS)),
    CHOOSE: (3, lambda flag, a, b: flag.differs(0).choose(a, b)),
    _LOAD: (1, lambda a: a),
    _STORE: (1, lambda a: a),
}
"""How many operands an operation has, and its result."""


class ColumnProgram:
    """The steps that compute some columns; immutable.

    names    of the inputs, in the order in which they are loaded
    numbers  what the registers after these hold from the start
    steps    (steps, 5): operation, operands, result; registers are counted from 0
    """

    __slots__ = ("_names", "_numbers", "_registers", "_results", "_steps")

    def __init__(
        self,
        names: tuple[str, ...],
        numbers: NDArray[np.float64],
        steps: NDArray[np.int32],
        wanted: NDArray[np.int32],
    ) -> None:
        self._names = names
        self._numbers = numbers
        self._registers = len(names) + len(numbers) + len(steps)
        self._results = len(wanted)
        loads = np.zeros((len(names), 5), np.int32)
        loads[:, 0] = _LOAD
        loads[:, 1] = loads[:, 4] = np.arange(len(names))
        stores = np.zeros((len(wanted), 5), np.int32)
        stores[:, 0] = _STORE
        stores[:, 1] = wanted
        stores[:, 4] = np.arange(len(wanted))
        self._steps = np.concatenate([loads, steps, stores])

    def __len__(self) -> int:
        return len(self._steps) - len(self._names) - self._results

    def run(self, columns: Mapping[str, NDArray[Any]], count: int) -> NDArray[np.float64]:
        """The results for `count` candidates, whose decisions are given: (results, count)."""
        padded = -(-count // _VECTOR) * _VECTOR
        inputs = np.zeros((len(self._names), padded))
        for row, name in zip(inputs, self._names, strict=True):
            row[:count] = columns[name]
        registers = np.empty((self._registers, LANES))
        first = len(self._names)
        registers[first : first + len(self._numbers)] = self._numbers[:, None]
        outputs = np.empty((self._results, padded))
        if len(self._steps) and padded:
            _interpreter().run(
                self._steps.ctypes.data,
                len(self._steps),
                registers.ctypes.data,
                inputs.ctypes.data,
                outputs.ctypes.data,
                padded,
            )
        return outputs[:, :count]


def needed_for(origins: NDArray[np.int32], results: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which registers some results depend on, including those of the results: (registers,).

    Shapes:  origins (registers, 4): an operation and the registers of its operands, which come
             before it; an operation below 0 has none
    """
    is_needed = np.zeros(len(origins), np.bool_)
    is_needed[results] = True
    _marking().run(origins.ctypes.data, len(origins), is_needed.ctypes.data)
    return is_needed


@lru_cache(maxsize=1)
def _marking() -> LoadedFunction:
    """The walk from the last register to the first, compiled once in each process."""
    function = machine_code.NativeFunction(
        machine_code.Module(),
        "tw_needed",
        (machine_code.Kind.POINTER, machine_code.Kind.I64, machine_code.Kind.POINTER),
    )
    origins, count, is_needed = function.parameters
    marks = is_needed.array(machine_code.Kind.I8)
    with function.loop(count) as number:
        register = count - (number + 1)
        origin = origins.array(machine_code.Kind.I32).part(register * 4)
        with function.when((origin[0] > -1) & marks[register].differs(0)):
            for operand in (1, 2, 3):
                marks[origin[operand].cast("zext", machine_code.Kind.I64)] = 1
    function.finish()
    return load_function(function)


@lru_cache(maxsize=1)
def _interpreter() -> LoadedFunction:
    """The interpreter, compiled once in each process."""
    kinds = (
        machine_code.Kind.POINTER,
        machine_code.Kind.I64,
        machine_code.Kind.POINTER,
        machine_code.Kind.POINTER,
        machine_code.Kind.POINTER,
        machine_code.Kind.I64,
    )
    function = machine_code.NativeFunction(machine_code.Module(), "tw_columns", kinds)
    steps, count, registers, inputs, outputs, candidates = function.parameters
    with function.loop(candidates, step=LANES) as first:
        lanes = (candidates - first).smaller(LANES)
        given, results = (
            rows.array(machine_code.Kind.F64).part(first) for rows in (inputs, outputs)
        )
        with function.loop(count) as number:
            step = steps.array(machine_code.Kind.I32).part(number * 5)
            numbers = [step[k].cast("zext", machine_code.Kind.I64) for k in (1, 2, 3, 4)]
            *operands, target = (
                registers.array(machine_code.Kind.F64).part(n * LANES) for n in numbers
            )
            for operation in function.switch(step[0], len(_FORMULAS)):
                arity, formula = _FORMULAS[operation]
                rows, result = operands[:arity], target
                if operation == _LOAD:
                    rows = [given.part(numbers[0] * candidates)]
                if operation == _STORE:
                    result = results.part(numbers[-1] * candidates)
                with function.loop(lanes, step=_VECTOR) as lane:
                    result[lane] = formula(*(row.vector(lane, _VECTOR) for row in rows))
    function.finish()
    return load_function(function)


class Column:
    """One number per candidate: the result of a step of a graph."""

    __slots__ = ("graph", "register")

    def __init__(self, graph: ColumnGraph, register: int) -> None:
        self.graph = graph
        self.register = register

    def __add__(self, other: Cell) -> Cell:
        if isinstance(other, Column):
            return self.graph.result((ADD, self.register, other.register, 0))
        return self.graph.step(ADD, self, other) if other else self

    __radd__ = __add__

    def __sub__(self, other: Cell) -> Cell:
        if isinstance(other, Column):
            if other is self:
                return 0
            return self.graph.result((SUBTRACT, self.register, other.register, 0))
        return self.graph.step(SUBTRACT, self, other) if other else self

    def __rsub__(self, other: float) -> Cell:
        return self.graph.step(SUBTRACT, other, self)

    def __mul__(self, other: Cell) -> Cell:
        if isinstance(other, Column):
            return self.graph.result((MULTIPLY, self.register, other.register, 0))
        if other == 1:
            return self
        return self.graph.step(MULTIPLY, self, other) if other else 0

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
    return a if _is(b, 1) or _is(a, 0) else graph.step(DIVIDE, a, b)


def floored(a: Cell, b: Cell) -> Cell:
    """floor(a / b) for integers, b > 0."""
    graph = _graph_of(a, b)
    if graph is None:
        return a // b  # type: ignore[operator]
    return a if _is(b, 1) or _is(a, 0) else graph.step(FLOOR, graph.step(DIVIDE, a, b))


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
    return a if a is b else graph.step(MINIMUM, a, b)


def larger(a: Cell, b: Cell) -> Cell:
    """The larger of two."""
    graph = _graph_of(a, b)
    if graph is None:
        return max(a, b)  # type: ignore[type-var]
    return a if a is b else graph.step(MAXIMUM, a, b)


def absolute(a: Cell) -> Cell:
    """The magnitude of a number."""
    return a.graph.step(ABSOLUTE, a) if isinstance(a, Column) else abs(a)


def above(a: Cell, b: Cell) -> Cell:
    """1 where a > b, else 0."""
    graph = _graph_of(a, b)
    if graph is None:
        return int(a > b)  # type: ignore[operator]
    return 0 if a is b else graph.step(ABOVE, a, b)


def same(a: Cell, b: Cell) -> Cell:
    """1 where a = b, else 0."""
    graph = _graph_of(a, b)
    if graph is None:
        return int(a == b)
    return 1 if a is b else graph.step(SAME, a, b)


def either(a: Cell, b: Cell) -> Cell:
    """1 if one of two flags is 1, else 0."""
    if _is(a, 1) or _is(b, 0):
        return a
    return b if _is(a, 0) or _is(b, 1) else larger(a, b)


def any_flag(flags: Sequence[Cell]) -> Cell:
    """1 if one of some flags is 1, else 0."""
    flagged: Cell = 0
    for flag in flags:
        flagged = either(flagged, flag)
    return flagged


def choose(flag: Cell, a: Cell, b: Cell) -> Cell:
    """a if the flag is 1, else b."""
    if not isinstance(flag, Column):
        return a if flag else b
    if a is b or (not isinstance(a, Column) and not isinstance(b, Column) and a == b):
        return a
    if _is(b, 0):
        return flag * a
    return flag.graph.step(CHOOSE, flag, a, b)


def total_of(cells: Iterable[Cell]) -> Cell:
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


CELLS: Arithmetic[Cell] = Arithmetic(total_of, floored, floored, remainder, smaller, larger)
"""Index expressions over cells."""

_Origin: TypeAlias = "tuple[int, int, int, int]"
"""What a register holds: the result of an operation on the registers of three operands; or one of
these, which have none.
"""
_NAME: _Origin = (-1, 0, 0, 0)
_NUMBER: _Origin = (-2, 0, 0, 0)


class _Registers:
    """The contents of the registers, in order; mutable.

    origins   of all of them          leaves   the names and numbers among them
    """

    def __init__(self) -> None:
        self.origins: list[_Origin] = []
        self.leaves: dict[int, str | float] = {}
        self._table = np.zeros((0, 4), np.int32)  # the first of the origins

    def leaf(self, content: str | float, origin: _Origin) -> int:
        """The next register, which holds a column by its name, or a number."""
        register = len(self.origins)
        self.leaves[register] = content
        self.origins.append(origin)
        return register

    def table(self) -> NDArray[np.int32]:
        """The origins as an array (registers, 4)."""
        more = chain.from_iterable(self.origins[len(self._table) :])
        self._table = np.concatenate([self._table, np.fromiter(more, np.int32).reshape(-1, 4)])
        return self._table


class _Numbers(dict[float, int]):
    """The register of each number; one that is new gets the next."""

    def __init__(self, registers: _Registers) -> None:
        super().__init__()
        self._registers = registers

    def __missing__(self, number: float) -> int:
        self[number] = self._registers.leaf(float(number), _NUMBER)
        return self[number]


class ColumnGraph:
    """Steps of arithmetic on columns; grows while formulas are written.

    Formulas of several programs may be in one graph, which has their common steps once.
    `values`, `dependences` and `uses` remember what was computed from columns.
    """

    def __init__(self) -> None:
        self.values: dict[Any, Cell] = {}
        self.dependences: dict[Any, Any] = {}
        self.uses: dict[Any, Any] = {}
        self._columns: dict[str, Column] = {}
        self._steps: dict[_Origin, Column] = {}
        self._registers = _Registers()
        self._origins = self._registers.origins
        self._numbers = _Numbers(self._registers)
        self._numbers[0]  # register 0 also stands for missing operands

    def clear(self) -> None:
        """Forget everything at once, because cycles would wait for the garbage collector."""
        for table in (self.values, self.dependences, self.uses, self._columns, self._steps):
            table.clear()

    def column(self, name: str) -> Column:
        """The column that is given by name when the program runs."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = Column(self, self._registers.leaf(name, _NAME))
        return column

    def step(self, operation: int, a: Cell, b: Cell = 0, c: Cell = 0) -> Column:
        """The result of an operation on columns and numbers."""
        numbers = self._numbers
        return self.result(
            (
                operation,
                a.register if isinstance(a, Column) else numbers[a],
                b.register if isinstance(b, Column) else numbers[b],
                c.register if isinstance(c, Column) else numbers[c],
            )
        )

    def result(self, origin: _Origin) -> Column:
        """The result of an operation on registers; missing operands are 0."""
        column = self._steps.get(origin)
        if column is None:
            column = self._steps[origin] = Column(self, len(self._origins))
            self._origins.append(origin)
        return column

    def program(self, results: Sequence[Column]) -> ColumnProgram:
        """The program of some columns, without steps that they do not need.

        Its registers are numbered anew: columns, numbers, then the results of the steps, in order.
        """
        origins, leaves = self._registers.table(), self._registers.leaves
        wanted = np.array([column.register for column in results], np.int32)
        needed = np.flatnonzero(needed_for(origins, wanted))
        kinds = origins[needed, 0]
        names, numbers = needed[kinds == _NAME[0]], needed[kinds == _NUMBER[0]]
        steps = needed[kinds >= 0]
        number_of = np.zeros(len(origins), np.int32)
        number_of[np.concatenate([names, numbers, steps])] = np.arange(len(needed))
        table = np.empty((len(steps), 5), np.int32)
        table[:, 0] = origins[steps, 0]
        table[:, 1:4] = number_of[origins[steps, 1:]]
        table[:, 4] = number_of[steps]
        return ColumnProgram(
            tuple(str(leaves[register]) for register in names.tolist()),
            np.array([leaves[register] for register in numbers.tolist()], np.float64),
            table,
            number_of[wanted],
        )


Features: TypeAlias = NDArray[np.float32]


class ResultNumbers(dict[Column, int]):
    """The columns that a plan needs, each with its number."""

    def __missing__(self, column: Column) -> int:
        self[column] = len(self)
        return self[column]


class CellTable:
    """Numbers that are the same for all candidates, and the offsets of columns among them."""

    def __init__(self, shape: tuple[int, ...], kind: type[np.floating[Any]] = np.float32) -> None:
        self.shape = shape
        self.numbers = np.zeros(prod(shape), kind)
        self.offsets: list[int] = []
        self.results: list[int] = []

    def put(self, offset: int, cell: Cell, results: ResultNumbers) -> None:
        """Enter a number or a column at an offset in the row-major table."""
        if isinstance(cell, Column):
            self.offsets.append(offset)
            self.results.append(results[cell])
        elif cell:
            self.numbers[offset] = cell

    def filled(self, results: NDArray[np.float64], count: int) -> NDArray[Any]:
        """The table for each candidate, candidates last."""
        table = np.empty((len(self.numbers), count), self.numbers.dtype)
        table[...] = self.numbers[:, None]
        table[self.offsets] = results[self.results]
        return table.reshape(*self.shape, count)
