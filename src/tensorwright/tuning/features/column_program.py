"""Programs of arithmetic on columns, run by a small interpreter in native code.

A program is a table of steps (operation, three operands, result), each a register: a row of
`LANES` numbers.  It runs on that many candidates at a time, whose registers stay in the second
cache; a step takes some nanoseconds, a call of NumPy takes a microsecond.

    load    register <- a row of the inputs        store   a row of the outputs <- register
    others  register <- operation(registers)       8-byte floats, divisors are not zero
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.machine_code import Kind, Module, NativeFunction, Number, vector_type
from tensorwright.runtime import LoadedFunction, load_function

LANES = 32  # candidates at a time
_VECTOR = 8

ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR, MINIMUM, MAXIMUM, ABSOLUTE, ABOVE, SAME, CHOOSE = range(11)
_LOAD, _STORE = 11, 12

_Formula: TypeAlias = Callable[..., Number]

_VECTORS = vector_type(Kind.F64, _VECTOR)
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
    function = NativeFunction(Module(), "tw_needed", (Kind.POINTER, Kind.I64, Kind.POINTER))
    origins, count, is_needed = function.parameters
    marks = is_needed.array(Kind.I8)
    with function.loop(count) as number:
        register = count - (number + 1)
        origin = origins.array(Kind.I32).part(register * 4)
        with function.when((origin[0] > -1) & marks[register].differs(0)):
            for operand in (1, 2, 3):
                marks[origin[operand].cast("zext", Kind.I64)] = 1
    function.finish()
    return load_function(function)


@lru_cache(maxsize=1)
def _interpreter() -> LoadedFunction:
    """The interpreter, compiled once in each process."""
    kinds = (Kind.POINTER, Kind.I64, Kind.POINTER, Kind.POINTER, Kind.POINTER, Kind.I64)
    function = NativeFunction(Module(), "tw_columns", kinds)
    steps, count, registers, inputs, outputs, candidates = function.parameters
    with function.loop(candidates, step=LANES) as first:
        lanes = (candidates - first).smaller(LANES)
        given, results = (rows.array(Kind.F64).part(first) for rows in (inputs, outputs))
        with function.loop(count) as number:
            step = steps.array(Kind.I32).part(number * 5)
            numbers = [step[k].cast("zext", Kind.I64) for k in (1, 2, 3, 4)]
            *operands, target = (registers.array(Kind.F64).part(n * LANES) for n in numbers)
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
