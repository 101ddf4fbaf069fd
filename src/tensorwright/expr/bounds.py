"""Ranges of index expressions and the simplifications that need them.

A `Bounds` table gives every loop variable an inclusive range whose ends are index expressions over
decisions (and over variables further out).  Everything here is conservative: a range contains every
value that occurs, a proof that succeeds is true for every positive value of the decisions, and a
rewriting is an equality under the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.expr.index import (
    And,
    Compare,
    Condition,
    Decision,
    Element,
    ExactDiv,
    FloorDiv,
    Index,
    IndexExpr,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Poly,
    Relation,
    Var,
    all_of,
    any_of,
    compare,
    divide_terms,
    exact_div,
    floor_div,
    free_vars,
    maximum,
    minimum,
    mod,
    negate,
    sum_of,
    terms_of,
)

__all__ = ["Bounds", "Range", "interval", "is_nonnegative", "simplify", "simplify_condition"]


@dataclass(frozen=True, slots=True)
class Range:
    """An inclusive range low..high of an index expression."""

    low: Index
    high: Index

    @staticmethod
    def of_extent(extent: Index) -> Range:
        """0..extent-1, the range of a loop."""
        return Range(0, extent - 1)


Bounds = Mapping[Var, Range]


def interval(expression: Index, bounds: Bounds) -> Range | None:
    """The range of an expression when the variables in `bounds` move; other atoms stay as they are.

    Returns None where no range is known (an element of a tensor among the moving parts, or a
    product of moving parts whose signs are unknown).
    """
    match expression:
        case int() | Decision():
            return Range(expression, expression)
        case Var():
            return bounds.get(expression, Range(expression, expression))
        case Poly(terms):
            least = _least_number(expression, bounds)
            most = _least_number(-expression, bounds) if least is not None else None
            if least is not None and most is not None:
                return Range(least, -most)
            lows: list[Index] = []
            highs: list[Index] = []
            for monomial, coefficient in terms:
                part = _monomial_interval(monomial, bounds)
                if part is None:
                    return None
                first, last = part.low * coefficient, part.high * coefficient
                lows.append(first if coefficient > 0 else last)
                highs.append(last if coefficient > 0 else first)
            return Range(sum_of(lows), sum_of(highs))
        case Min(a, b) | Max(a, b):
            left, right = interval(a, bounds), interval(b, bounds)
            if left is None or right is None:
                return None
            join = minimum if isinstance(expression, Min) else maximum
            return Range(join(left.low, right.low), join(left.high, right.high))
        case FloorDiv(a, b) | ExactDiv(a, b):
            inner = interval(a, bounds)
            if inner is None or free_vars(b) & bounds.keys():
                return None
            divide = floor_div if isinstance(expression, FloorDiv) else _exact_or_floor
            return Range(divide(inner.low, b), divide(inner.high, b))
        case Mod(a, b):
            if not free_vars(a, b) & bounds.keys() and not isinstance(a, Element):
                return Range(expression, expression)
            return Range(0, b - 1) if not free_vars(b) & bounds.keys() else None
        case Element(_, indices):
            if any(free_vars(index) & bounds.keys() for index in indices):
                return None
            return Range(expression, expression)
    raise TypeError(f"not an index expression: {expression!r}")


def _exact_or_floor(dividend: Index, divisor: Index) -> Index:
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor
    return exact_div(dividend, divisor)


def _monomial_interval(monomial: tuple[IndexExpr, ...], bounds: Bounds) -> Range | None:
    low: Index = 1
    high: Index = 1
    if not free_vars(*monomial) & bounds.keys():
        fixed = sum_of([Poly(((monomial, 1),))])
        return Range(fixed, fixed)
    for atom in monomial:
        part = interval(atom, bounds)
        if part is None:
            return None
        if isinstance(low, int) and isinstance(high, int):
            if isinstance(part.low, int) and isinstance(part.high, int):
                corners = [low * part.low, low * part.high, high * part.low, high * part.high]
                low, high = min(corners), max(corners)
                continue
            if low == high and low >= 0:
                low, high = part.low * low, part.high * high
                continue
        if (part.low == part.high and is_nonnegative(part.low)) or (
            is_nonnegative(low) and is_nonnegative(part.low)
        ):
            low, high = low * part.low, high * part.high
        else:
            return None
    return Range(low, high)


def is_nonnegative(expression: Index, bounds: Bounds | None = None) -> bool:
    """Whether expression >= 0 is certain for all values in `bounds` and all positive decisions.

    Theorem: after every variable is replaced by the end of its range that makes the expression
    smallest, write each decision as d = d' + 1 with d' >= 0.  If every coefficient of the expanded
    polynomial is >= 0, so is its value.  Where that fails, quotients, remainders, minima and maxima
    are replaced by what bounds them from the right side: b*(a//b) <= a, min(a, b) <= a, ...
    """
    if isinstance(expression, int):
        return expression >= 0
    least = _least_number(expression, bounds or {})
    if least is not None:
        return least >= 0
    return _proved(expression, _ranges_in(expression, bounds or {}))


@lru_cache(maxsize=1 << 15)
def _proved(expression: Index, ranges: tuple[tuple[Var, Range], ...]) -> bool:
    """`_certain`, remembered: the stages of a program ask the same again and again."""
    return _certain(expression, dict(ranges), _DEPTH)


def _ranges_in(expression: Index, bounds: Bounds) -> tuple[tuple[Var, Range], ...]:
    """The ranges of the variables in an expression, and of those in these ranges; sorted."""
    found: dict[Var, Range] = {}
    pending = list(free_vars(expression))
    while pending:
        var = pending.pop()
        if var in bounds and var not in found:
            found[var] = bounds[var]
            pending += free_vars(found[var].low, found[var].high)
    return tuple(sorted(found.items(), key=lambda pair: pair[0].name))


_DEPTH = 3  # how many quotients, remainders, minima or maxima are replaced in one proof


def _certain(expression: Index, bounds: Bounds, depth: int) -> bool:
    if isinstance(expression, int):
        return expression >= 0
    least = _least_number(expression, bounds)
    if least is not None:
        return least >= 0
    for stage, is_last in _eliminations(expression, bounds):
        if is_last and _shifted_nonnegative(stage, depth):
            return True
        if depth and stage != expression and _by_cases(stage, bounds, depth - 1):
            return True
    return depth > 0 and _by_cases(expression, bounds, depth - 1)


def _least_number(expression: Index, bounds: Bounds) -> int | None:
    """The exact minimum of a sum of variables whose ranges are numbers: most questions are that."""
    total = 0
    for monomial, coefficient in terms_of(expression):
        if not monomial:
            total += coefficient
            continue
        found = bounds.get(monomial[0]) if isinstance(monomial[0], Var) else None
        if found is None or len(monomial) > 1:
            return None
        end = found.low if coefficient > 0 else found.high
        if not isinstance(end, int):
            return None
        total += coefficient * end
    return total


def _eliminations(expression: Index, bounds: Bounds) -> Iterator[tuple[Index, bool]]:
    """Lower bounds with fewer and fewer variables, the innermost replaced first.

    The last one has none of those in `bounds`; it is missing where no bound is known.
    """
    for _ in range(len(bounds) + 1):
        moving = [var for var in free_vars(expression) if var in bounds]
        if not moving:
            yield expression, True
            return
        outer = free_vars(*(end for var in moving for end in (bounds[var].low, bounds[var].high)))
        inner = [var for var in moving if var not in outer] or moving
        lowest = interval(expression, {var: bounds[var] for var in inner})
        if lowest is None:
            return
        expression = lowest.low
        if free_vars(expression) & bounds.keys():
            yield expression, False


def _by_cases(expression: Index, bounds: Bounds, depth: int) -> bool:
    """Prove expression >= 0 by bounding one quotient, remainder, minimum or maximum in it.

    Theorem: if rest >= 0 and x <= u then c*rest*x >= c*rest*u for c < 0; likewise from below.
    """
    for term in terms_of(expression):
        monomial, coefficient = term
        for place, atom in enumerate(monomial):
            if not isinstance(atom, (Min, Max, Mod, FloorDiv)):
                continue
            rest: Index = 1
            for other in (*monomial[:place], *monomial[place + 1 :]):
                rest = rest * other
            if not _certain(rest, bounds, depth and depth - 1):
                continue
            without = expression - Poly((term,))
            if isinstance(atom, (Min, Max)):
                sides = [
                    _certain(without + rest * side * coefficient, bounds, depth)
                    for side in (atom.left, atom.right)
                ]
                is_any = isinstance(atom, Min) == (coefficient < 0)
                if any(sides) if is_any else all(sides):
                    return True
                continue
            for bound in _division_bounds(atom, rest, coefficient, bounds, depth):
                if _certain(without + bound, bounds, depth):
                    return True
    return False


def _division_bounds(
    atom: Mod | FloorDiv, rest: Index, coefficient: int, bounds: Bounds, depth: int
) -> list[Index]:
    """Lower bounds of coefficient * rest * atom, for rest >= 0."""
    a, b = atom.dividend, atom.divisor
    if isinstance(atom, Mod):
        if coefficient > 0:
            return []
        found = [rest * (b - 1) * coefficient]
        if _certain(a, bounds, depth and depth - 1):
            found.append(rest * a * coefficient)
        return found
    others, left = divide_terms(rest * coefficient, b)  # others * b * (a // b)
    if left != 0:
        return []
    return [others * a] if coefficient < 0 else [others * (a - b + 1)]


def _shifted_nonnegative(expression: Index, depth: int) -> bool:
    shifted: dict[tuple[IndexExpr, ...], int] = {}
    for monomial, coefficient in terms_of(expression):
        partial: dict[tuple[IndexExpr, ...], int] = {(): coefficient}
        for atom in monomial:
            floor = _atom_floor(atom, depth)
            if floor is None:
                return False
            grown: dict[tuple[IndexExpr, ...], int] = {}
            for rest, factor in partial.items():
                longer = tuple(sorted((*rest, atom), key=str))
                grown[longer] = grown.get(longer, 0) + factor
                if floor:
                    grown[rest] = grown.get(rest, 0) + factor
            partial = grown
        for rest, factor in partial.items():
            shifted[rest] = shifted.get(rest, 0) + factor
    return all(coefficient >= 0 for coefficient in shifted.values())


def _atom_floor(atom: IndexExpr, depth: int) -> int | None:
    """The least value that an atom is known to take: 1 or 0, or None where nothing is known."""

    def known(expression: Index) -> bool:
        return _certain(expression, {}, depth and depth - 1)

    match atom:
        case Decision():
            return 1
        case ExactDiv(a, _):
            return 1 if known(a - 1) else 0 if known(a) else None
        case FloorDiv(a, b):
            return 1 if known(a - b) else 0 if known(a) else None
        case Mod():
            return 0
        case Min(a, b):
            return 0 if known(a) and known(b) else None
        case Max(a, b):
            return 0 if known(a) or known(b) else None
        case _:
            return None


def simplify(expression: Index, bounds: Bounds) -> Index:
    """An equal, simpler expression under `bounds`.

    Rewrite:  (o*f + i) // f    ->  o,    (o*f + i) % f    ->  i    for 0 <= i < f
    """
    match expression:
        case int() | Var() | Decision():
            return expression
        case Poly(terms):
            if all(isinstance(atom, (Var, Decision)) for monomial, _ in terms for atom in monomial):
                return expression
    return _simplified(expression, _ranges_in(expression, bounds))


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
        for place, atom in enumerate(monomial):
            if not isinstance(atom, Mod):
                continue
            rest: Index = coefficient
            for other in (*monomial[:place], *monomial[place + 1 :]):
                rest = rest * other
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
    if remainder == 0 or _is_below(remainder, divisor, bounds):
        return quotient
    # (a*g + s) // (c*g) = a // c for 0 <= s < g: drop the low part of a mixed-radix number
    for small, large in _low_parts(remainder, divisor, bounds):
        common = _common_factor(large, divisor)
        if common != 1 and _is_below(small, common, bounds):
            return quotient + floor_div(exact_div(large, common), exact_div(divisor, common))
    return quotient + floor_div(remainder, divisor)


def _simplify_modulus(dividend: Index, divisor: Index, bounds: Bounds) -> Index:
    _, remainder = divide_terms(dividend, divisor)
    if remainder == 0 or _is_below(remainder, divisor, bounds):
        return remainder
    for small, large in _low_parts(remainder, divisor, bounds):
        common = _common_factor(large, divisor)
        if common != 1 and _is_below(small, common, bounds):
            return mod(exact_div(large, common), exact_div(divisor, common)) * common + small
    return mod(remainder, divisor)


def _low_parts(value: Index, divisor: Index, bounds: Bounds) -> list[tuple[Index, Index]]:
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
        if large != 0:
            parts.append((small, large))
    return parts


def _common_factor(value: Index, divisor: Index) -> int:
    if not isinstance(divisor, int):
        return 1
    common = divisor
    for _, coefficient in terms_of(value):
        a, b = common, abs(coefficient)
        while b:
            a, b = b, a % b
        common = a
    return common


def simplify_condition(condition: Condition, bounds: Bounds) -> Condition:
    """An equal, simpler condition under `bounds`; comparisons that are certain are decided."""
    match condition:
        case bool():
            return condition
        case Compare(relation, left, right):
            return _simplify_comparison(
                relation, simplify(left, bounds), simplify(right, bounds), bounds
            )
        case And(parts):
            return all_of(*(simplify_condition(part, bounds) for part in parts))
        case Or(parts):
            return any_of(*(simplify_condition(part, bounds) for part in parts))
        case Not(part):
            return negate(simplify_condition(part, bounds))


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
            return _without_low_part(gap - 1, bounds) or compare(relation, left, right)
        case Relation.LE:
            if is_nonnegative(gap, bounds):
                return True
            if is_nonnegative(-gap - 1, bounds):
                return False
            return _without_low_part(gap, bounds) or compare(relation, left, right)
        case Relation.EQ | Relation.NE:
            if is_nonnegative(gap - 1, bounds) or is_nonnegative(-gap - 1, bounds):
                return relation is Relation.NE
            return compare(relation, left, right)


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
                small = small + _product(monomial, coefficient)
            elif coefficient > 0:
                high = high + _product(monomial, coefficient // scale)
            else:
                low = low + _product(monomial, -coefficient // scale)
        ends = interval(small, bounds)
        if ends is None or not isinstance(ends.low, int) or not isinstance(ends.high, int):
            continue
        quotient = ends.low // scale
        if quotient == ends.high // scale:
            if high == 0:
                return compare(Relation.LT, low, quotient + 1)
            return compare(Relation.LE, low - quotient, high)
    return None


def _product(monomial: tuple[IndexExpr, ...], coefficient: int) -> Index:
    product: Index = coefficient
    for atom in monomial:
        product = product * atom
    return product
