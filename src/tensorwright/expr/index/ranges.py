"""Ranges of loop variables: the table that simplifications and proofs use.

Points at which an index expression is negative: such an expression has no proof.

The answer to most questions "is this never negative?" is no, and a proof that cannot succeed tries
everything before it gives up.  So a few corners of the ranges are tried first. An expression that
is not negative at these corners may still be negative elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensorwright.expr.index import nodes, traversal
from tensorwright.expr.symbolic import Interned


@dataclass(frozen=True, slots=True, eq=False)
class Range(Interned):
    """An inclusive range low..high of an index expression."""

    low: nodes.Index
    high: nodes.Index

    @staticmethod
    def of_extent(extent: nodes.Index) -> Range:
        """0..extent-1, the range of a loop."""
        return Range(0, extent - 1)


Bounds = Mapping[nodes.Var, Range]


def narrowed(bounds: Bounds, holding: Iterable[nodes.Condition]) -> dict[nodes.Var, Range]:
    """The ranges where conditions hold, as far as their inequalities in one variable tell."""
    narrow = dict(bounds)
    for atom, scale, rest in traversal.limits_of(holding):
        if isinstance(atom, nodes.Var) and atom in narrow:
            narrow[atom] = limited(narrow[atom], scale, rest)
    return narrow


def limited(reach: Range, scale: int, rest: int) -> Range:
    """The part of a range of numbers a where scale*a + rest >= 0."""
    low, high = reach.low, reach.high
    if not isinstance(low, int) or not isinstance(high, int):
        return reach
    if scale > 0:
        return Range(max(low, -(rest // scale)), high)
    return Range(low, min(high, rest // -scale))


def ranges_in(expression: nodes.Index, bounds: Bounds) -> tuple[tuple[nodes.Var, Range], ...]:
    """The ranges of the variables in an expression, and of those in these ranges; sorted."""
    ranges: dict[nodes.Var, Range] = {}
    pending = list(traversal.free_vars(expression))
    while pending:
        var = pending.pop()
        own = bounds.get(var)
        if own is not None and var not in ranges:
            ranges[var] = own
            for end in (own.low, own.high):
                if not isinstance(end, int):  # most ranges are numbers
                    pending += traversal.free_vars(end)
    if len(ranges) <= 1:
        return tuple(ranges.items())
    return tuple(sorted(ranges.items(), key=_name_of))


def _name_of(pair: tuple[nodes.Var, Range]) -> str:
    return pair[0].name


@dataclass(frozen=True, slots=True)
class _Corner:
    """The ends that atoms are set to: those in negative terms, and the others.

    is_high, is_other_high   variables are at the upper ends of their ranges
    symbol, other            the values of decisions and sizes, where they may have these
    """

    is_high: bool
    symbol: int
    is_other_high: bool
    other: int


_CORNERS = (
    _Corner(is_high=False, symbol=1, is_other_high=False, other=1),
    _Corner(is_high=True, symbol=1, is_other_high=True, other=1),
    _Corner(is_high=True, symbol=64, is_other_high=False, other=1),
    _Corner(is_high=True, symbol=5, is_other_high=True, other=5),  # which divides few extents
    _Corner(is_high=False, symbol=1 << 20, is_other_high=False, other=1 << 20),
)


class _NoSuchPointError(Exception):
    """A division that must be exact is not, a range is empty, or an element is not known."""


def find_negative(expression: nodes.IndexExpr, bounds: Bounds) -> dict[nodes.IndexExpr, int] | None:
    """Values of variables and symbols, in their ranges, for which the expression is negative.

    None is not a proof: only corners are tried.
    """
    lowering = frozenset(
        atom
        for monomial, coefficient in nodes.terms_of(expression)
        if coefficient < 0
        for factor in monomial
        for atom in traversal.atoms_of(factor)
    )
    for corner in _CORNERS:
        point = _Point(bounds, corner, lowering)
        try:
            if point.value(expression) < 0:
                return point.chosen
        except _NoSuchPointError:
            continue
    return None


def _divided(dividend: int, divisor: int) -> int:
    if divisor <= 0:
        raise _NoSuchPointError
    return dividend // divisor


def _left_over(dividend: int, divisor: int) -> int:
    return dividend - _divided(dividend, divisor) * divisor


def _divided_exactly(dividend: int, divisor: int) -> int:
    if _left_over(dividend, divisor):
        raise _NoSuchPointError
    return dividend // divisor


_AT_A_POINT: traversal.Arithmetic[int] = traversal.Arithmetic(
    sum, _divided_exactly, _divided, _left_over, min, max
)


class _Point:
    """Values of variables and symbols, each chosen when it is asked for; mutable."""

    def __init__(
        self, bounds: Bounds, corner: _Corner, lowering: frozenset[nodes.IndexExpr]
    ) -> None:
        self._bounds = bounds
        self._corner = corner
        self._lowering = lowering
        self._values: dict[nodes.IndexExpr, int] = {}
        self._asked: set[nodes.Var] = set()

    def value(self, expression: nodes.Index) -> int:
        """The value of an expression at this point.  Raises _NoSuchPointError."""
        if isinstance(expression, int):
            return expression
        value = self._values.get(expression)
        if value is None:
            value = self._values[expression] = self._computed(expression)
        return value

    @property
    def chosen(self) -> dict[nodes.IndexExpr, int]:
        """The variables and symbols that were asked for."""
        return {
            each: number
            for each, number in self._values.items()
            if isinstance(each, (nodes.Var, nodes.Symbol))
        }

    def _computed(self, expression: nodes.IndexExpr) -> int:
        match expression:
            case nodes.Poly():  # most are
                pass
            case nodes.Var():
                return self._end_of_range(expression)
            case nodes.Symbol():
                corner = self._corner
                wanted = corner.symbol if expression in self._lowering else corner.other
                most = expression.most
                return max(expression.least, wanted if most is None else min(wanted, most))
            case nodes.Element():
                raise _NoSuchPointError
        return traversal.value_of_node(expression, self.value, _AT_A_POINT)

    def _end_of_range(self, var: nodes.Var) -> int:
        own = self._bounds.get(var)
        if own is None:  # its value may be anything
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
