"""What models compute of named sizes: integers that are index expressions, and floats of them.

Exporters write the arithmetic of shapes as nodes: 2*n for the columns of a concatenation,
floor(0.5 * h) for the rows of a smaller image.  The tensor expressions of those nodes are evaluated
over these terms:

    integers   int | Ratio        floats   float | Ratio        bools   bool

What sizes do not decide ends in an error that names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias

from tensorwright.base import DType
from tensorwright.expr import (
    Fn,
    Index,
    IndexExpr,
    Relation,
    ceil_div,
    compare,
    floor_div,
    maximum,
    minimum,
    mod,
    simplify,
)
from tensorwright.ops import decided, not_decided

_FINEST = 1 << 12
"""The largest denominator of a float that may meet a size.

So few bits behind the point leave room for sizes up to 2**12 in f32, and what is divided by small
integers rounds to the right side of whole numbers far above that.
"""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number that depends on sizes: a quotient of integers, the divisor positive.

    NumPy takes it for an object, where it would ask an index expression for its elements.
    """

    dividend: Index
    divisor: Index = 1

    def __str__(self) -> str:
        return str(self.dividend) if self.divisor == 1 else f"({self.dividend})/({self.divisor})"


Term: TypeAlias = int | float | bool | Ratio


def term_of(index: Index) -> int | Ratio:
    """An integer as a term."""
    return Ratio(index) if isinstance(index, IndexExpr) else index


def index_of(term: Term) -> Index:
    """A term as an integer.

    Raises:  TypeError for a fraction.
    """
    if isinstance(term, Ratio) and term.divisor == 1:
        return term.dividend
    if isinstance(term, (Ratio, float)):
        raise TypeError(f"{term} is not an integer")
    return int(term)


class SizeTerms:
    """The terms, as `SymbolicDomain` asks for them."""

    def const(self, value: float | int | bool, dtype: DType) -> Term:
        """The number itself."""
        return (
            float(value) if dtype.is_float else bool(value) if dtype is DType.BOOL else int(value)
        )

    def integer(self, term: Term) -> int:
        """A number.

        Raises:  UnsupportedError for a size.
        """
        index = index_of(term)
        if isinstance(index, IndexExpr):
            raise not_decided((index,), f"the position {index} must be a number here")
        return index

    def apply(self, fn: Fn, args: tuple[Any, ...], dtype: DType) -> Term:
        """A function; comparisons are decided by the bounds of the sizes."""
        if dtype.is_float:
            return _of_floats(fn, tuple(map(_ratio, args)))
        if dtype is DType.BOOL:
            return bool(_numeric(_LOGIC, fn)(*args))
        answer = _numeric(_INTEGERS, fn)(*map(index_of, args))
        return answer if isinstance(answer, bool) else term_of(answer)

    def select(self, condition: bool, then: Term, otherwise: Term) -> Term:
        """One of the two."""
        return then if condition else otherwise

    def cast(self, term: Term, source: DType, target: DType) -> Term:
        """Integers keep their value; floats are cut off."""
        if target is DType.BOOL:
            return decided(compare(Relation.NE, _ratio(term).dividend, 0))
        if target.is_float:
            return term if isinstance(term, Ratio) else float(term)
        if not source.is_float:
            return term if isinstance(term, Ratio) else int(term)
        ratio = _ratio(term)
        return term_of(_truncated(ratio.dividend, ratio.divisor))


def _numeric(table: Mapping[Fn, Callable[..., Any]], fn: Fn) -> Callable[..., Any]:
    operation = table.get(fn)
    if operation is None:
        raise TypeError(f"{fn.text} of sizes is not computed before they are known")
    return operation


def _compared(relation: Relation, is_swapped: bool = False) -> Callable[[Index, Index], bool]:
    def holds(left: Index, right: Index) -> bool:
        pair = (right, left) if is_swapped else (left, right)
        return decided(compare(relation, *pair))

    return holds


def _truncated(dividend: Index, divisor: Index) -> Index:
    """A quotient of integers, rounded towards zero."""
    if not decided(divisor > 0):
        dividend, divisor = -dividend, -divisor
    if decided(dividend >= 0):
        return floor_div(dividend, divisor)
    return -floor_div(-dividend, divisor)


def _floormod(dividend: Index, divisor: Index) -> Index:
    if decided(divisor > 0):
        return mod(dividend, divisor)
    return -mod(-dividend, -divisor)


def _sign(x: Index) -> int:
    return 0 if decided(compare(Relation.EQ, x, 0)) else 1 if decided(x > 0) else -1


_INTEGERS: Mapping[Fn, Callable[..., Index]] = {
    Fn.ADD: lambda a, b: a + b,
    Fn.SUB: lambda a, b: a - b,
    Fn.MUL: lambda a, b: a * b,
    Fn.DIV: _truncated,
    Fn.MOD: lambda a, b: a - b * _truncated(a, b),
    Fn.FLOORMOD: _floormod,
    Fn.MIN: lambda a, b: simplify(minimum(a, b), {}),
    Fn.MAX: lambda a, b: simplify(maximum(a, b), {}),
    Fn.NEG: lambda a: -a,
    Fn.ABS: lambda a: a if decided(a >= 0) else -a,
    Fn.SIGN: _sign,
    Fn.LT: _compared(Relation.LT),
    Fn.LE: _compared(Relation.LE),
    Fn.EQ: _compared(Relation.EQ),
    Fn.NE: _compared(Relation.NE),
}
_LOGIC: Mapping[Fn, Callable[..., bool]] = {
    Fn.AND: lambda a, b: a and b,
    Fn.OR: lambda a, b: a or b,
    Fn.XOR: lambda a, b: a != b,
    Fn.NOT: lambda a: not a,
    Fn.EQ: lambda a, b: a == b,
    Fn.NE: lambda a, b: a != b,
    Fn.MIN: min,
    Fn.MAX: max,
}
_ROUNDINGS: Mapping[Fn, Callable[[Index, Index], Index]] = {
    Fn.FLOOR: floor_div,
    Fn.CEIL: ceil_div,
    Fn.TRUNC: _truncated,
}
_RELATIONS = {
    Fn.LT: Relation.LT,
    Fn.LE: Relation.LE,
    Fn.EQ: Relation.EQ,
    Fn.NE: Relation.NE,
}


def _ratio(term: Term) -> Ratio:
    """A number as a quotient of integers.

    Raises:  TypeError for a float whose products with sizes are rounded.
    """
    if isinstance(term, Ratio):
        return term
    if not isinstance(term, float):
        return Ratio(int(term))
    exact = Fraction(term) if isfinite(term) else None
    if exact is None or exact.denominator > _FINEST:
        raise TypeError(f"{term} times a size is rounded, and not computed before it is known")
    return Ratio(exact.numerator, exact.denominator)


def _float(ratio: Ratio) -> Term:
    """The quotient, a float where no size is in it."""
    above, below = ratio.dividend, ratio.divisor
    return above / below if isinstance(above, int) and isinstance(below, int) else ratio


def _of_floats(fn: Fn, args: tuple[Ratio, ...]) -> Term:
    """A function of quotients.

    Raises:  TypeError for a function that is not arithmetic.
    """
    first, second = args[0], args[-1]
    a, p, b, q = first.dividend, first.divisor, second.dividend, second.divisor
    if fn in _ROUNDINGS:
        return _float(Ratio(_ROUNDINGS[fn](a, p)))
    if fn in _RELATIONS:
        return decided(compare(_RELATIONS[fn], a * q, b * p))
    match fn:
        case Fn.ADD:
            return _float(Ratio(a * q + b * p, p * q))
        case Fn.SUB:
            return _float(Ratio(a * q - b * p, p * q))
        case Fn.MUL:
            return _float(Ratio(a * b, p * q))
        case Fn.NEG:
            return _float(Ratio(-a, p))
        case Fn.DIV:
            if decided(compare(Relation.EQ, b, 0)):
                raise TypeError("a size is divided by 0")
            return _float(Ratio(a * q, p * b) if decided(b > 0) else Ratio(-a * q, -p * b))
        case Fn.MIN | Fn.MAX:
            is_left = decided(a * q <= b * p) == (fn is Fn.MIN)
            return _float(first if is_left else second)
    raise TypeError(f"{fn.text} of sizes is not computed before they are known")
