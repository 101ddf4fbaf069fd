"""Index expressions and conditions at many points at once: arithmetic on what arrays they give.

evaluate_index(i*8 + j, {i: column, j: row}.__getitem__)    an array over rows and columns
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, assert_never

import numpy as np

from tensorwright.expr.index import (
    And,
    Compare,
    Condition,
    Decision,
    Element,
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


def evaluate_index(index: Index, value_of: Callable[[Any], Any]) -> Any:
    """An index expression, from the values of its variables and elements.

    Raises:  ValueError for a decision.
    """
    match index:
        case int():
            return index
        case Var() | Element():
            return value_of(index)
        case Poly(terms):
            total: Any = 0
            for monomial, coefficient in terms:
                product: Any = coefficient
                for atom in monomial:
                    product = product * evaluate_index(atom, value_of)
                total = total + product
            return total
        case ExactDiv(a, b) | FloorDiv(a, b):
            return evaluate_index(a, value_of) // evaluate_index(b, value_of)
        case Mod(a, b):
            return evaluate_index(a, value_of) % evaluate_index(b, value_of)
        case Min(a, b):
            return np.minimum(evaluate_index(a, value_of), evaluate_index(b, value_of))
        case Max(a, b):
            return np.maximum(evaluate_index(a, value_of), evaluate_index(b, value_of))
        case Decision():
            raise ValueError(f"{index} has no value: bind decisions before evaluating")
    raise TypeError(f"not an index expression: {index!r}")


_RELATIONS = {
    Relation.LT: np.less,
    Relation.LE: np.less_equal,
    Relation.EQ: np.equal,
    Relation.NE: np.not_equal,
}


def evaluate_condition(condition: Condition, value_of: Callable[[Index], Any]) -> Any:
    """A condition as NumPy bools, from the values of the index expressions in it."""
    match condition:
        case bool():
            return np.bool_(condition)
        case Compare(relation, left, right):
            return _RELATIONS[relation](value_of(left), value_of(right))
        case And(parts):
            return reduce(np.logical_and, [evaluate_condition(part, value_of) for part in parts])
        case Or(parts):
            return reduce(np.logical_or, [evaluate_condition(part, value_of) for part in parts])
        case Not(part):
            return np.logical_not(evaluate_condition(part, value_of))
    assert_never(condition)
