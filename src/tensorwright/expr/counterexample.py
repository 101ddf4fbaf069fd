"""Points at which an index expression is negative: what fails at one cannot be proved.

Most questions of the kind "is this never negative?" are to be denied, and a proof that cannot
succeed tries everything before it gives up.  So a few corners of the ranges are looked at first.
Nothing follows where the expression is not negative at them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.expr.index import (
    Decision,
    ExactDiv,
    FloorDiv,
    Index,
    IndexExpr,
    Max,
    Min,
    Mod,
    Poly,
    Var,
    terms_of,
)
from tensorwright.expr.ranges import Bounds
from tensorwright.expr.traversal import atoms_of


@dataclass(frozen=True, slots=True)
class _Corner:
    """Where atoms are: those in terms that count negatively, and the others.

    is_high, is_other_high   variables are at the upper ends of their ranges
    decision, other          the values of decisions
    """

    is_high: bool
    decision: int
    is_other_high: bool
    other: int


_CORNERS = (
    _Corner(is_high=False, decision=1, is_other_high=False, other=1),
    _Corner(is_high=True, decision=1, is_other_high=True, other=1),
    _Corner(is_high=True, decision=64, is_other_high=False, other=1),
    _Corner(is_high=True, decision=5, is_other_high=True, other=5),  # which divides few extents
    _Corner(is_high=False, decision=1 << 20, is_other_high=False, other=1 << 20),
)


class _NoSuchPointError(Exception):
    """A division that must be exact is not, a range is empty, or an element is not known."""


def find_negative(expression: IndexExpr, bounds: Bounds) -> dict[IndexExpr, int] | None:
    """Values of variables and decisions, in their ranges, for which the expression is negative.

    None says nothing: only corners are looked at.
    """
    lowering = frozenset(
        atom
        for monomial, coefficient in terms_of(expression)
        if coefficient < 0
        for factor in monomial
        for atom in atoms_of(factor)
    )
    for corner in _CORNERS:
        point = _Point(bounds, corner, lowering)
        try:
            if point.value(expression) < 0:
                return point.chosen
        except _NoSuchPointError:
            continue
    return None


class _Point:
    """Values of variables and decisions, each chosen when it is asked for; mutable."""

    def __init__(self, bounds: Bounds, corner: _Corner, lowering: frozenset[IndexExpr]) -> None:
        self._bounds = bounds
        self._corner = corner
        self._lowering = lowering
        self._values: dict[IndexExpr, int] = {}
        self._asked: set[Var] = set()

    def value(self, expression: Index) -> int:
        """The value of an expression at this point.  Raises _NoSuchPointError."""
        if isinstance(expression, int):
            return expression
        found = self._values.get(expression)
        if found is None:
            found = self._values[expression] = self._computed(expression)
        return found

    @property
    def chosen(self) -> dict[IndexExpr, int]:
        """The variables and decisions that were asked for."""
        return {
            each: number
            for each, number in self._values.items()
            if isinstance(each, (Var, Decision))
        }

    def _computed(self, expression: IndexExpr) -> int:
        match expression:
            case Poly(terms):
                total = 0
                for monomial, coefficient in terms:
                    product = coefficient
                    for atom in monomial:
                        product *= self.value(atom)
                    total += product
                return total
            case Var():
                return self._end_of_range(expression)
            case Decision():
                corner = self._corner
                return corner.decision if expression in self._lowering else corner.other
            case FloorDiv(a, b):
                return self.value(a) // self._divisor(b)
            case Mod(a, b):
                return self.value(a) % self._divisor(b)
            case ExactDiv(a, b):
                quotient, remainder = divmod(self.value(a), self._divisor(b))
                if not remainder:
                    return quotient
            case Min(a, b):
                return min(self.value(a), self.value(b))
            case Max(a, b):
                return max(self.value(a), self.value(b))
        raise _NoSuchPointError

    def _divisor(self, expression: Index) -> int:
        found = self.value(expression)
        if found <= 0:
            raise _NoSuchPointError
        return found

    def _end_of_range(self, var: Var) -> int:
        own = self._bounds.get(var)
        if own is None:  # it may have any value
            return 0
        if var in self._asked:  # its range depends on itself
            raise _NoSuchPointError
        self._asked.add(var)
        low, high = self.value(own.low), self.value(own.high)
        if low > high:
            raise _NoSuchPointError
        is_lowering = var in self._lowering
        is_high = self._corner.is_high if is_lowering else self._corner.is_other_high
        return high if is_high else low
