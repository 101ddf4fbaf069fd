"""Simplifications of index expressions and conditions that need the ranges of their variables.

Each rewriting is an equality for all values that the `Bounds` table allows.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd, prod

from tensorwright.expr.index.bounds import interval, is_nonnegative
from tensorwright.expr.index.nodes import (
    Condition,
    Element,
    ExactDiv,
    FloorDiv,
    Index,
    Max,
    Min,
    Mod,
    Poly,
    Relation,
    Symbol,
    Var,
    compare,
    divide_terms,
    exact_div,
    floor_div,
    is_same,
    maximum,
    minimum,
    mod,
    sum_of,
    terms_of,
)
from tensorwright.expr.index.ranges import Bounds, Range, ranges_in
from tensorwright.expr.index.traversal import map_comparisons


def simplify(expression: Index, bounds: Bounds) -> Index:
    """An equal, simpler expression under `bounds`.

    Rewrite:  (o*f + i) // f    ->  o,    (o*f + i) % f    ->  i    for 0 <= i < f
    """
    match expression:
        case int() | Var() | Symbol():
            return expression
        case Poly(terms):
            if all(isinstance(atom, (Var, Symbol)) for monomial, _ in terms for atom in monomial):
                return expression
    return _simplified(expression, ranges_in(expression, bounds))


@lru_cache(maxsize=1 << 14)
def _simplified(expression: Index, ranges: tuple[tuple[Var, Range], ...]) -> Index:
    bounds: Bounds = dict(ranges)
    match expression:
        case Poly(terms):
            parts: list[Index] = []
            for monomial, coefficient in terms:
                product: Index = coefficient
                for atom in monomial:
                    product = simplify(atom, bounds) * product
                parts.append(product)
            return _join_digits(sum_of(parts))
        case FloorDiv(a, b):
            return _simplify_division(simplify(a, bounds), simplify(b, bounds), bounds)
        case Mod(a, b):
            return _simplify_modulus(simplify(a, bounds), simplify(b, bounds), bounds)
        case ExactDiv(a, b):
            return exact_div(simplify(a, bounds), simplify(b, bounds))
        case Min(a, b):
            left, right = simplify(a, bounds), simplify(b, bounds)
            if is_nonnegative(right - left, bounds):
                return left
            return right if is_nonnegative(left - right, bounds) else minimum(left, right)
        case Max(a, b):
            left, right = simplify(a, bounds), simplify(b, bounds)
            if is_nonnegative(right - left, bounds):
                return right
            return left if is_nonnegative(left - right, bounds) else maximum(left, right)
        case Element(source, indices):
            return Element(source, tuple(simplify(index, bounds) for index in indices))
    raise TypeError(f"not an index expression: {expression!r}")


def _join_digits(expression: Index) -> Index:
    """Rewrite:  b*(a//b) + a%b    ->    a    for terms with one common factor."""
    for monomial, coefficient in terms_of(expression):
        for number, atom in enumerate(monomial):
            if not isinstance(atom, Mod):
                continue
            others = (*monomial[:number], *monomial[number + 1 :])
            rest: Index = prod(others, start=coefficient)
            quotient = floor_div(atom.dividend, atom.divisor)
            pair = rest * (quotient * atom.divisor + atom)
            if set(terms_of(pair)) <= set(terms_of(expression)):
                return _join_digits(expression - pair + rest * atom.dividend)
    return expression


def _is_below(value: Index, limit: Index, bounds: Bounds) -> bool:
    """Whether 0 <= value < limit is certain."""
    return is_nonnegative(value, bounds) and is_nonnegative(limit - 1 - value, bounds)


def _simplify_division(dividend: Index, divisor: Index, bounds: Bounds) -> Index:
    quotient, remainder = divide_terms(dividend, divisor)
    if is_same(remainder, 0) or _is_below(remainder, divisor, bounds):
        return quotient
    # (a*g + s) // (c*g) = a // c for 0 <= s < g: drop the low part of a mixed-radix number
    for small, large in _low_parts(remainder, divisor):
        common = _common_factor(large, divisor)
        if common != 1 and _is_below(small, common, bounds):
            return quotient + floor_div(exact_div(large, common), exact_div(divisor, common))
    return quotient + floor_div(remainder, divisor)


def _simplify_modulus(dividend: Index, divisor: Index, bounds: Bounds) -> Index:
    _, remainder = divide_terms(dividend, divisor)
    if is_same(remainder, 0) or _is_below(remainder, divisor, bounds):
        return remainder
    for small, large in _low_parts(remainder, divisor):
        common = _common_factor(large, divisor)
        if common != 1 and _is_below(small, common, bounds):
            return mod(exact_div(large, common), exact_div(divisor, common)) * common + small
    return mod(remainder, divisor)


def _low_parts(value: Index, divisor: Index) -> list[tuple[Index, Index]]:
    """Ways to write value = small + large, by whether an integer divides the coefficient."""
    if not isinstance(divisor, int) or not isinstance(value, Poly):
        return []
    parts: list[tuple[Index, Index]] = []
    for scale in sorted({abs(c) for m, c in value.terms if m and abs(c) > 1}, reverse=True):
        small: Index = 0
        large: Index = 0
        for monomial, coefficient in value.terms:
            term = Poly(((monomial, coefficient),)) if monomial else coefficient
            whole = coefficient - coefficient % scale if not monomial else coefficient
            if monomial and coefficient % scale == 0:
                large = large + term * 1
            elif not monomial:
                large, small = large + whole, small + (coefficient - whole)
            else:
                small = small + term * 1
        if not is_same(large, 0):
            parts.append((small, large))
    return parts


def _common_factor(value: Index, divisor: Index) -> int:
    if not isinstance(divisor, int):
        return 1
    return gcd(divisor, *(coefficient for _, coefficient in terms_of(value)))


def simplify_condition(condition: Condition, bounds: Bounds) -> Condition:
    """An equal, simpler condition under `bounds`; comparisons that are certain are decided."""
    return map_comparisons(
        condition,
        lambda each: _simplify_comparison(
            each.relation, simplify(each.left, bounds), simplify(each.right, bounds), bounds
        ),
    )


def _simplify_comparison(
    relation: Relation, left: Index, right: Index, bounds: Bounds
) -> Condition:
    gap = right - left
    match relation:
        case Relation.LT:
            if is_nonnegative(gap - 1, bounds):
                return True
            if is_nonnegative(-gap, bounds):
                return False
            shorter = _without_low_part(gap - 1, bounds)
            return compare(relation, left, right) if shorter is None else shorter
        case Relation.LE:
            if is_nonnegative(gap, bounds):
                return True
            if is_nonnegative(-gap - 1, bounds):
                return False
            shorter = _without_low_part(gap, bounds)
            return compare(relation, left, right) if shorter is None else shorter
        case Relation.EQ | Relation.NE:
            if is_nonnegative(gap - 1, bounds) or is_nonnegative(-gap - 1, bounds):
                return relation is Relation.NE
            if _is_odd(gap):
                return relation is Relation.NE
            return compare(relation, left, right)


def _is_odd(gap: Index) -> bool:
    """Whether a number divides all terms but the constant: 8*n + 4 is never 0."""
    terms = dict(terms_of(gap))
    constant = terms.pop((), 0)
    return bool(terms) and constant % gcd(*terms.values()) != 0


def _without_low_part(gap: Index, bounds: Bounds) -> Condition | None:
    """`gap >= 0` without the low digits of its mixed-radix numbers, where they decide nothing.

    Rewrite:  a*g + s + c >= 0    ->    a + q >= 0    for floor((s + c) / g) = q at both ends of s
    Theorem:  a*g + s + c >= 0 exactly where a >= -(s + c)/g, which is a >= -floor((s + c)/g) since
              a is an integer; the floor is monotone in s, so equal ends make it constant.
    Returns None where no such g exists.
    """
    if not isinstance(gap, Poly):
        return None
    for scale in sorted({abs(c) for m, c in gap.terms if m and abs(c) > 1}, reverse=True):
        small: Index = 0
        high: Index = 0
        low: Index = 0  # gap = scale*(high - low) + small; both parts are compared
        for monomial, coefficient in gap.terms:
            if not monomial or coefficient % scale:
                small = small + prod(monomial, start=coefficient)
            elif coefficient > 0:
                high = high + prod(monomial, start=coefficient // scale)
            else:
                low = low + prod(monomial, start=-coefficient // scale)
        ends = interval(small, bounds)
        if ends is None or not isinstance(ends.low, int) or not isinstance(ends.high, int):
            continue
        quotient = ends.low // scale
        if quotient == ends.high // scale:
            if is_same(high, 0):
                return compare(Relation.LT, low, quotient + 1)
            return compare(Relation.LE, low - quotient, high)
    return None


@lru_cache(maxsize=1 << 12)
def without_division(relation: Relation, left: Index, right: Index) -> Condition:
    """An equal condition: a comparison of a quotient with a number becomes one of its dividend.

    Rewrite:  c <= a // n  ->  c*n <= a,    a // n <= c  ->  a < (c + 1)*n    for numbers n > 0, c
    """
    if relation in (Relation.LE, Relation.LT):
        terms = dict(terms_of(right - left - (relation is Relation.LT)))
        number = terms.pop((), 0)
        if len(terms) == 1:
            ((monomial, sign),) = terms.items()
            atom = monomial[0]
            if len(monomial) == 1 and isinstance(atom, FloorDiv) and isinstance(atom.divisor, int):
                if sign == 1:
                    return compare(Relation.LE, -number * atom.divisor, atom.dividend)
                if sign == -1:
                    return compare(Relation.LT, atom.dividend, (number + 1) * atom.divisor)
    return compare(relation, left, right)
