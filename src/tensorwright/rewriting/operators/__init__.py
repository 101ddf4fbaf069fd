"""The operators of rewriting, as data: parameters, shape rule, and meaning through `ops`.

What an operator means is a chain of applications of `ops` operators: the first gets the
arguments, each later one the result before it.  A family of operators is one file of this folder;
`operator.py` has what they share.
"""

from __future__ import annotations

from tensorwright.base import unknown_name
from tensorwright.rewriting.operators import elementwise, movement, windows
from tensorwright.rewriting.operators.elementwise import ARITHMETIC, PAIRS, REDUCTIONS
from tensorwright.rewriting.operators.movement import PARTS
from tensorwright.rewriting.operators.operator import (
    ArgumentRole, IntShape, RewriteOperator, Step, follow,
)
from tensorwright.rewriting.operators.parameters import (
    AXIS, Boundaries, Parameter, is_open_word, merged_axis, merged_runs, number_of_word,
    number_word, size,
)
from tensorwright.rewriting.operators.windows import holds_elements, padding_word
from tensorwright.rewriting.terms import Term, applications

OPERATORS: tuple[RewriteOperator, ...] = (
    *elementwise.PRODUCTS,
    *elementwise.ELEMENTWISE,
    *elementwise.FUNCTIONS,
    *movement.MOVEMENTS,
    *movement.JOINS,
    *windows.CONVOLUTIONS,
    *windows.POOLS,
    *movement.CONSTANTS,
    *elementwise.FOLDS,
    *elementwise.NORMALIZATIONS,
)
MOVING = frozenset(
    {"reshape", "broadcast", "transpose", "pad", "slice", "split0", "split1", "concat"}
)
"""The operators that compute nothing: they only move elements."""
FUNCTIONS: tuple[RewriteOperator, ...] = elementwise.FUNCTIONS
"""The operators of single elements."""
ALIKE_IN_NETWORKS = (*FUNCTIONS, *elementwise.NORMALIZATIONS[1:])
_BY_NAME = {each.name: each for each in OPERATORS}


def operator_named(name: str) -> RewriteOperator:
    """The operator of this name.

    Raises:  UsageError, with the nearest names, if there is none.
    """
    match = _BY_NAME.get(name)
    if match is None:
        reason = "rewriting knows no such operator"
        raise unknown_name("rules", f"operator {name}", reason, name, _BY_NAME)
    return match


def arguments_of(role: ArgumentRole, *roots: Term) -> tuple[Term, ...]:
    """The arguments of a role below some roots, in order; some maybe twice."""
    return tuple(
        arg
        for each in applications(*roots)
        for arg, own in zip(each.args, operator_named(each.operator).arguments, strict=True)
        if own is role
    )
