"""Ranges of index expressions, and proofs that one is never negative.

A `Bounds` table gives every loop variable an inclusive range whose ends are index expressions over
decisions and sizes (and over variables further out).  Everything here is conservative: a range
contains every value that occurs, and a proof that succeeds is true for all values of decisions and
sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from tensorwright.expr.index import nodes
from tensorwright.expr.index.ranges import Bounds, Range, find_negative, ranges_in
from tensorwright.expr.index.traversal import free_vars, substitute, symbols_of


def interval(expression: nodes.Index, bounds: Bounds) -> Range | None:
    """The range of an expression when the variables in `bounds` move; other atoms stay as they are.

    Returns None where no range is known (an element of a tensor among the moving parts, or a
    product of moving parts whose signs are unknown).
    """
    match expression:
        case int() | nodes.Symbol():
            return Range(expression, expression)
        case nodes.Var():
            return bounds.get(expression, Range(expression, expression))
        case nodes.Poly(terms):
            least = _least_number(expression, bounds)
            most = _least_number(-expression, bounds) if least is not None else None
            if least is not None and most is not None:
                return Range(least, -most)
            lows: list[nodes.Index] = []
            highs: list[nodes.Index] = []
            for monomial, coefficient in terms:
                part = _monomial_interval(monomial, bounds)
                if part is None:
                    return None
                first, last = part.low * coefficient, part.high * coefficient
                lows.append(first if coefficient > 0 else last)
                highs.append(last if coefficient > 0 else first)
            return Range(nodes.sum_of(lows), nodes.sum_of(highs))
        case nodes.Min(a, b) | nodes.Max(a, b):
            left, right = interval(a, bounds), interval(b, bounds)
            if left is None or right is None:
                return None
            join = nodes.minimum if isinstance(expression, nodes.Min) else nodes.maximum
            return Range(join(left.low, right.low), join(left.high, right.high))
        case nodes.FloorDiv(a, b) | nodes.ExactDiv(a, b):
            inner = interval(a, bounds)
            if inner is None or free_vars(b) & bounds.keys():
                return None
            divide = nodes.floor_div if isinstance(expression, nodes.FloorDiv) else _exact_or_floor
            return Range(divide(inner.low, b), divide(inner.high, b))
        case nodes.Mod(a, b):
            if not free_vars(a, b) & bounds.keys() and not isinstance(a, nodes.Element):
                return Range(expression, expression)
            return Range(0, b - 1) if not free_vars(b) & bounds.keys() else None
        case nodes.Element(_, indices):
            if any(free_vars(index) & bounds.keys() for index in indices):
                return None
            return Range(expression, expression)
    raise TypeError(f"not an index expression: {expression!r}")


def _exact_or_floor(dividend: nodes.Index, divisor: nodes.Index) -> nodes.Index:
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor
    return nodes.exact_div(dividend, divisor)


def _monomial_interval(monomial: tuple[nodes.IndexExpr, ...], bounds: Bounds) -> Range | None:
    low: nodes.Index = 1
    high: nodes.Index = 1
    if not free_vars(*monomial) & bounds.keys():
        fixed = nodes.sum_of([nodes.Poly(((monomial, 1),))])
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
        if (nodes.is_same(part.low, part.high) and is_nonnegative(part.low)) or (
            is_nonnegative(low) and is_nonnegative(part.low)
        ):
            low, high = low * part.low, high * part.high
        else:
            return None
    return Range(low, high)


def is_nonnegative(expression: nodes.Index, bounds: Bounds | None = None) -> bool:
    """Whether expression >= 0 is certain for all values in `bounds` and all values of symbols.

    Theorem: after every variable is replaced by the end of its range that makes the expression
    smallest, write each symbol as d = d' + least with d' >= 0.  If every coefficient of the
    expanded polynomial is >= 0, so is its value.  Where that fails, quotients, remainders, minima
    and maxima are replaced by bounds from the right side: b*(a//b) <= a, min(a, b) <= a, ...  Then
    symbols that have a greatest number move like variables.
    """
    if isinstance(expression, int):
        return expression >= 0
    least = _least_number(expression, bounds or {})
    if least is not None:
        return least >= 0
    return _proved(expression, ranges_in(expression, bounds or {}))


@lru_cache(maxsize=1 << 15)
def _proved(expression: nodes.IndexExpr, ranges: tuple[tuple[nodes.Var, Range], ...]) -> bool:
    """`_certain`, remembered, because the stages of a program ask the same questions many times."""
    bounds = dict(ranges)
    if find_negative(expression, bounds) is not None:
        return False
    return _certain(expression, bounds, _DEPTH) or _has_nonnegative_factors(expression)


def _has_nonnegative_factors(expression: nodes.IndexExpr) -> bool:
    """Whether a symbol in all terms and the rest of each are not negative: batch*rows - 2*batch."""
    monomials = [monomial for monomial, _ in nodes.terms_of(expression)]
    for atom in monomials[0] if isinstance(expression, nodes.Poly) else ():
        places = [[each is atom for each in monomial] for monomial in monomials]
        if not isinstance(atom, nodes.Symbol) or not all(map(any, places)):
            continue
        rest: nodes.Index = 0
        for (monomial, coefficient), is_at in zip(nodes.terms_of(expression), places, strict=True):
            at = is_at.index(True)
            rest = rest + prod((*monomial[:at], *monomial[at + 1 :]), start=coefficient)
        return is_nonnegative(atom) and is_nonnegative(rest)
    return False


_DEPTH = 3  # how many quotients, remainders, minima or maxima are replaced in one proof


def _certain(expression: nodes.Index, bounds: Bounds, depth: int) -> bool:
    if isinstance(expression, int):
        return expression >= 0
    if bounds and not free_vars(expression):
        bounds = {}
    return _certain_without(expression, depth) if not bounds else _search(expression, bounds, depth)


@lru_cache(maxsize=1 << 15)
def _certain_without(expression: nodes.IndexExpr, depth: int) -> bool:
    """As `_certain`, where no variable moves."""
    return _search(expression, {}, depth)


def _search(expression: nodes.IndexExpr, bounds: Bounds, depth: int) -> bool:
    least = _least_number(expression, bounds)
    if least is not None:
        return least >= 0
    for stage, is_last in _eliminations(expression, bounds):
        if is_last and _shifted_nonnegative(stage, depth):
            return True
        if depth and not nodes.is_same(stage, expression) and _by_cases(stage, bounds, depth - 1):
            return True
    if depth > 0 and _by_cases(expression, bounds, depth - 1):
        return True
    return _certain_of_limited(expression, bounds, depth)


def _certain_of_limited(expression: nodes.IndexExpr, bounds: Bounds, depth: int) -> bool:
    """As `_certain`, with a variable for each symbol that has a greatest number."""
    ends = [end for each in bounds.values() for end in (each.low, each.high)]
    limits = {s: s.most for s in symbols_of(expression, *ends) if s.most is not None}
    if not limits:
        return False
    moving = {symbol: nodes.Var(f"size {symbol}") for symbol in limits}
    ranges = {
        var: Range(substitute(each.low, moving), substitute(each.high, moving))
        for var, each in bounds.items()
    }
    ranges |= {moving[symbol]: Range(symbol.least, most) for symbol, most in limits.items()}
    return _certain(substitute(expression, moving), ranges, depth)


def _least_number(expression: nodes.Index, bounds: Bounds) -> int | None:
    """The exact minimum of a sum of variables whose ranges are numbers: most questions are so."""
    total = 0
    for monomial, coefficient in nodes.terms_of(expression):
        if not monomial:
            total += coefficient
            continue
        range_of_var = bounds.get(monomial[0]) if isinstance(monomial[0], nodes.Var) else None
        if range_of_var is None or len(monomial) > 1:
            return None
        end = range_of_var.low if coefficient > 0 else range_of_var.high
        if not isinstance(end, int):
            return None
        total += coefficient * end
    return total


def _eliminations(expression: nodes.Index, bounds: Bounds) -> Iterator[tuple[nodes.Index, bool]]:
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


def _by_cases(expression: nodes.Index, bounds: Bounds, depth: int) -> bool:
    """Prove expression >= 0 by bounding one quotient, remainder, minimum or maximum in it.

    Theorem: if rest >= 0 and x <= u then c*rest*x >= c*rest*u for c < 0; the same from below.
    """
    for term in nodes.terms_of(expression):
        monomial, coefficient = term
        for number, atom in enumerate(monomial):
            if not isinstance(atom, (nodes.Min, nodes.Max, nodes.Mod, nodes.FloorDiv)):
                continue
            rest: nodes.Index = prod((*monomial[:number], *monomial[number + 1 :]), start=1)
            if not _certain(rest, bounds, depth and depth - 1):
                continue
            without = expression - nodes.Poly((term,))
            if isinstance(atom, (nodes.Min, nodes.Max)):
                sides = [
                    _certain(without + rest * side * coefficient, bounds, depth)
                    for side in (atom.left, atom.right)
                ]
                is_any = isinstance(atom, nodes.Min) == (coefficient < 0)
                if any(sides) if is_any else all(sides):
                    return True
                continue
            is_alone = len(monomial) == coefficient == 1 and nodes.is_size(expression)
            is_alone = is_alone and isinstance(atom, nodes.FloorDiv)
            # a // b + rest >= 0 exactly where a + b*rest >= 0
            if is_alone and _certain(atom.dividend + atom.divisor * without, bounds, depth):
                return True
            for bound in _division_bounds(atom, rest, coefficient, bounds, depth):
                if _certain(without + bound, bounds, depth):
                    return True
    return False


def _division_bounds(
    atom: nodes.Mod | nodes.FloorDiv,
    rest: nodes.Index,
    coefficient: int,
    bounds: Bounds,
    depth: int,
) -> list[nodes.Index]:
    """Lower bounds of coefficient * rest * atom, for rest >= 0."""
    a, b = atom.dividend, atom.divisor
    if isinstance(atom, nodes.Mod):
        if coefficient > 0:
            return []
        bounds_below = [rest * (b - 1) * coefficient]
        if _certain(a, bounds, depth and depth - 1):
            bounds_below.append(rest * a * coefficient)
        return bounds_below
    others, left = nodes.divide_terms(rest * coefficient, b)  # others * b * (a // b)
    if not nodes.is_same(left, 0):
        return []
    return [others * a] if coefficient < 0 else [others * (a - b + 1)]


def _shifted_nonnegative(expression: nodes.Index, depth: int) -> bool:
    shifted: dict[tuple[nodes.IndexExpr, ...], int] = {}
    for monomial, coefficient in nodes.terms_of(expression):
        partial: dict[tuple[nodes.IndexExpr, ...], int] = {(): coefficient}
        for atom in monomial:
            floor = _atom_floor(atom, depth)
            if floor is None:
                return False
            grown: dict[tuple[nodes.IndexExpr, ...], int] = {}
            for rest, factor in partial.items():
                longer = tuple(sorted((*rest, atom), key=str))
                grown[longer] = grown.get(longer, 0) + factor
                if floor:
                    grown[rest] = grown.get(rest, 0) + factor * floor
            partial = grown
        for rest, factor in partial.items():
            shifted[rest] = shifted.get(rest, 0) + factor
    return all(coefficient >= 0 for coefficient in shifted.values())


def _atom_floor(atom: nodes.IndexExpr, depth: int) -> int | None:
    """A number, 0 or more, that an atom is never below; None where that is not certain."""

    def is_decided(expression: nodes.Index) -> bool:
        return _certain(expression, {}, depth and depth - 1)

    match atom:
        case nodes.Symbol():
            return atom.least
        case nodes.ExactDiv(a, _):
            return 1 if is_decided(a - 1) else 0 if is_decided(a) else None
        case nodes.FloorDiv(a, b):
            return 1 if is_decided(a - b) else 0 if is_decided(a) else None
        case nodes.Mod():
            return 0
        case nodes.Min(a, b):
            return 0 if is_decided(a) and is_decided(b) else None
        case nodes.Max(a, b):
            return 0 if is_decided(a) or is_decided(b) else None
        case _:
            return None
