"""Index expressions over any kind of number, by one walk for all kinds.

value_of_node(i*8 + j, {i: 3, j: 1}.__getitem__, INTEGERS)     25
... with arrays for i and j, over ARRAYS                       an array
... with index expressions for them, over SYMBOLS              an index expression
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import floordiv
from typing import Any, Generic, TypeVar

import numpy as np

from tensorwright.expr.index.nodes import (
    ExactDiv,
    FloorDiv,
    Index,
    IndexExpr,
    Max,
    Min,
    Mod,
    Poly,
    exact_div,
    floor_div,
    maximum,
    minimum,
    mod,
    sum_of,
)

Number = TypeVar("Number")


@dataclass(frozen=True, slots=True)
class Arithmetic(Generic[Number]):
    """The operations of index expressions on a kind of number; products are its `*`."""

    sum_of: Callable[[Iterable[Number]], Number]
    exact_div: Callable[[Number, Number], Number]
    floor_div: Callable[[Number, Number], Number]
    mod: Callable[[Number, Number], Number]
    minimum: Callable[[Number, Number], Number]
    maximum: Callable[[Number, Number], Number]


def _exact_quotient(dividend: int, divisor: int) -> int:
    quotient, remainder = divmod(dividend, divisor)
    if remainder:
        raise ValueError(f"{divisor} does not divide {dividend}")
    return quotient


INTEGERS: Arithmetic[int] = Arithmetic(sum, _exact_quotient, floordiv, lambda a, b: a % b, min, max)
ARRAYS = Arithmetic(sum, floordiv, floordiv, lambda a, b: a % b, np.minimum, np.maximum)
SYMBOLS: Arithmetic[Index] = Arithmetic(sum_of, exact_div, floor_div, mod, minimum, maximum)


def value_of_node(
    expression: IndexExpr, value: Callable[[Index], Number], over: Arithmetic[Number]
) -> Number:
    """The value of a node from those of its parts, for which `value` is asked.

    Raises:  TypeError for a node without arithmetic: a variable, a symbol, an element.
    """
    match expression:
        case Poly(terms):
            products: list[Any] = []
            for monomial, scale in terms:
                product: Any = scale
                for atom in monomial:
                    product = value(atom) * product
                products.append(product)
            return over.sum_of(products)
        case ExactDiv(a, b):
            return over.exact_div(value(a), value(b))
        case FloorDiv(a, b):
            return over.floor_div(value(a), value(b))
        case Mod(a, b):
            return over.mod(value(a), value(b))
        case Min(a, b):
            return over.minimum(value(a), value(b))
        case Max(a, b):
            return over.maximum(value(a), value(b))
    raise TypeError(f"an index expression without parts: {expression!r}")
