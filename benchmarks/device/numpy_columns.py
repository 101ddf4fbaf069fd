"""Features without native code: what a machine without the package llvmlite runs in its place.

`use_numpy` lets NumPy run the programs of feature columns, a call for each step: about a hundred
times slower, and fast enough for a benchmark that prices some thousand candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorwright.tuning.features import columns

Array = np.ndarray[Any, Any]

_STEPS: Mapping[int, Callable[[Array, Array, Array], Array]] = {
    columns.ADD: lambda a, b, c: a + b,
    columns.SUBTRACT: lambda a, b, c: a - b,
    columns.MULTIPLY: lambda a, b, c: a * b,
    columns.DIVIDE: lambda a, b, c: a / b,
    columns.FLOOR: lambda a, b, c: np.floor(a),
    columns.MINIMUM: lambda a, b, c: np.minimum(a, b),
    columns.MAXIMUM: lambda a, b, c: np.maximum(a, b),
    columns.ABSOLUTE: lambda a, b, c: np.abs(a),
    columns.ABOVE: lambda a, b, c: (a > b).astype(np.float64),
    columns.SAME: lambda a, b, c: (a == b).astype(np.float64),
    columns.CHOOSE: lambda a, b, c: np.where(a != 0, b, c),
}


def use_numpy() -> None:
    """From here on no feature asks for native code."""
    vars(columns)["needed_for"] = needed_for
    setattr(columns.ColumnProgram, "run", run)  # noqa: B010  it is a method, for mypy


def run(
    program: columns.ColumnProgram, given: Mapping[str, Array], count: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """As `ColumnProgram.run`."""
    first = len(program._names)
    registers: dict[int, Array] = {
        n: np.full(count, number) for n, number in enumerate(program._numbers, first)
    }
    results = np.empty((program._results, count))
    for operation, a, b, c, target in program._steps.tolist():
        if operation == columns._LOAD:
            registers[target] = np.asarray(given[program._names[a]], np.float64)
        elif operation == columns._STORE:
            results[target] = registers[a]
        else:
            parts = (registers.get(each, registers[a]) for each in (a, b, c))
            registers[target] = _STEPS[operation](*parts)
    return results


def needed_for(origins: Array, results: Array) -> Array:
    """As `column_program.needed_for`."""
    is_needed = np.zeros(len(origins), np.bool_)
    is_needed[results] = True
    for register in range(len(origins) - 1, -1, -1):
        operation, *operands = origins[register].tolist()
        if operation >= 0 and is_needed[register]:
            is_needed[operands] = True
    return is_needed
