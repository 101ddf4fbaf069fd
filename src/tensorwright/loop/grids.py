"""Index expressions over all points of a box at once, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import InternalError
from tensorwright.expr import (
    And,
    Compare,
    Condition,
    ExactDiv,
    FloorDiv,
    Index,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Poly,
    Relation,
    Var,
)

__all__ = ["Grid", "evaluate", "evaluate_condition", "open_grid"]

Grid: TypeAlias = dict[Var, NDArray[np.int64]]
"""The values of each variable, along a dimension of its own."""


def open_grid(axes: Sequence[tuple[Var, int]], first: range | None = None) -> Grid:
    """All points of the box 0..extent of every axis; `first` gives the values of the first axis."""
    grid: Grid = {}
    for n, (var, extent) in enumerate(axes):
        values = range(extent) if n or first is None else first
        along = tuple(len(values) if m == n else 1 for m in range(len(axes)))
        grid[var] = np.arange(values.start, values.stop, dtype=np.int64).reshape(along)
    return grid


def evaluate(index: Index, grid: Grid) -> Any:
    """An index expression over a grid, as an array that broadcasts over it.

    Raises:  InternalError for an element of a tensor or a decision; KeyError for a foreign
             variable.
    """
    match index:
        case int():
            return np.int64(index)
        case Var():
            return grid[index]
        case Poly(terms):
            total: Any = np.int64(0)
            for monomial, coefficient in terms:
                term: Any = np.int64(coefficient)
                for atom in monomial:
                    term = term * evaluate(atom, grid)
                total = total + term
            return total
        case FloorDiv(a, b) | ExactDiv(a, b):
            return evaluate(a, grid) // evaluate(b, grid)
        case Mod(a, b):
            return evaluate(a, grid) % evaluate(b, grid)
        case Min(a, b):
            return np.minimum(evaluate(a, grid), evaluate(b, grid))
        case Max(a, b):
            return np.maximum(evaluate(a, grid), evaluate(b, grid))
        case _:
            raise InternalError(
                stage="loop", where=f"index {index}", reason="has no value on a grid"
            )


_RELATIONS: dict[Relation, Callable[[Any, Any], Any]] = {
    Relation.LT: np.less,
    Relation.LE: np.less_equal,
    Relation.EQ: np.equal,
    Relation.NE: np.not_equal,
}


def evaluate_condition(condition: Condition, grid: Grid) -> Any:
    """A condition over a grid, as a bool array that broadcasts over it; raises as `evaluate`."""
    match condition:
        case bool():
            return np.bool_(condition)
        case Compare(relation, left, right):
            return _RELATIONS[relation](evaluate(left, grid), evaluate(right, grid))
        case And(parts):
            return reduce(np.logical_and, [evaluate_condition(part, grid) for part in parts])
        case Or(parts):
            return reduce(np.logical_or, [evaluate_condition(part, grid) for part in parts])
        case Not(part):
            return np.logical_not(evaluate_condition(part, grid))
