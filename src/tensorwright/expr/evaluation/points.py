"""Index expressions and conditions at many points at once, by arithmetic on arrays.

evaluate_index(i*8 + j, {i: column, j: row}.__getitem__)    an array over rows and columns
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, assert_never

import numpy as np

from tensorwright.expr.index.arithmetic import ARRAYS, value_of_node
from tensorwright.expr.index.nodes import (
    And,
    Compare,
    Condition,
    Element,
    Index,
    Not,
    Or,
    Relation,
    Symbol,
    Var,
)


def evaluate_index(index: Index, value_of: Callable[[Any], Any]) -> Any:
    """An index expression, from the values of its variables and elements.

    Raises:  ValueError for a decision or a size.
    """
    if isinstance(index, int):
        return index
    if isinstance(index, (Var, Element)):
        return value_of(index)
    if isinstance(index, Symbol):
        raise ValueError(f"{index} has no value: bind decisions and sizes before evaluating")
    return value_of_node(index, lambda part: evaluate_index(part, value_of), ARRAYS)


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
