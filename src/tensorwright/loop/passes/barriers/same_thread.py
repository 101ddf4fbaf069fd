"""Whether two accesses of an element are made by one thread.

An index such as k*64 + t*4 + i, where t is the index of a thread and i < 4, tells the thread: t is
a digit of it.  Of two accesses whose indices have the same digits, those of one element are made by
one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from math import gcd

from tensorwright.expr import (
    Index,
    IndexExpr,
    Mod,
    Var,
    floor_div,
    free_vars,
    has_element,
    interval,
    of_terms,
    simplify,
    substitute,
    terms_of,
)
from tensorwright.loop.passes.barriers.accesses import Access, Variables


def may_conflict(old: Access, new: Access, variables: Variables) -> bool:
    """Whether two threads may touch one element, and one of them store it."""
    if old.buffer != new.buffer or not (old.is_store or new.is_store):
        return False
    before: dict[Var, Index] = {var: var - 1 for var in old.last}
    same: set[Index] = {var for var, _ in old.only & new.only}
    pairs = zip(_with_number(old, variables), _with_number(new, variables), strict=True)
    for one, other in pairs:
        moved = substitute(one, before)
        if _differ(moved, other, variables):
            return False
        same.update(_same_digits(moved, other, variables, variables.moving))
        same.update(_same_digits(one, other, variables, set(variables.bounds)))
    return not all(_is_told(index, same) for index in variables.threads)


def _with_number(access: Access, variables: Variables) -> tuple[Index, ...]:
    """The indices, and the number of the element: of n//6 and n%6, it is n."""
    if len(access.indices) < 2:
        return access.indices
    number: Index = 0
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        number = number * extent + index
    return (*access.indices, simplify(number, variables.bounds))


def _differ(one: Index, other: Index, variables: Variables) -> bool:
    """Whether two indices, of any two threads, are never the same number."""
    if has_element(one) or has_element(other):
        return False
    own = free_vars(one) & variables.moving.union(variables.threads)
    names: dict[Var, Index] = {var: Var(f"{var}''") for var in own}
    apart = {Var(f"{var}''"): variables.bounds[var] for var in own}
    moved = substitute(one, names)
    bounds = {**variables.bounds, **apart}
    if isinstance(moved, Mod) and isinstance(other, Mod) and moved.divisor == other.divisor:
        step, divisor = moved.dividend - other.dividend, moved.divisor
        return isinstance(step, int) and isinstance(divisor, int) and step % divisor != 0
    difference = simplify(moved - other, bounds)
    reach = interval(difference, {v: bounds[v] for v in free_vars(difference) if v in bounds})
    if reach is None:
        return False
    low, high = reach.low, reach.high
    return (isinstance(low, int) and low > 0) or (isinstance(high, int) and high < 0)


def _is_told(number: Index, same: Set[Index]) -> bool:
    """Whether two values of a number are the same if those of some expressions of it are.

    Theorem: a number is told by its quotient and its rest.
    """
    return number in same or any(
        isinstance(each, Mod)
        and each.dividend == number
        and _is_told(floor_div(number, each.divisor), same)
        for each in same
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """weight * number, with the number in 0..most; whether the number depends on the thread alone
    and may be a digit.
    """

    weight: int
    number: Index
    most: int
    is_digit: bool


@dataclass(frozen=True, slots=True)
class _Weight:
    """A digit with all below it is in 0..width-1; all above is a multiple of `repeated`, or 0."""

    width: int
    repeated: int


@dataclass(frozen=True, slots=True)
class _Number:
    """fixed + low + sum of weight * number; (weight, number) of those that can be told.

    Theorem: a digit with weight w, below which all is less than w, is the rest after division by r,
    divided by w, if all above is a multiple of r and the digit with all below is less than r.
    """

    fixed: Index
    low: int
    digits: Mapping[tuple[int, Index], _Weight]


def _same_digits(
    one: Index, other: Index, variables: Variables, moving: Set[Var]
) -> Iterator[Index]:
    """The parts that depend on the thread alone and are equal if the indices are."""
    first, second = (_number(index, variables, moving) for index in (one, other))
    if first is None or second is None:
        return
    if (first.fixed, first.low) != (second.fixed, second.low):
        return
    for digit, weight in first.digits.items():
        if digit in second.digits:
            repeated = gcd(weight.repeated, second.digits[digit].repeated)
            width = max(weight.width, second.digits[digit].width)
            if repeated == 0 or width <= repeated:
                yield digit[1]


def _number(index: Index, variables: Variables, moving: Set[Var]) -> _Number | None:
    """An index with its digits; None if it has another form.

    moving   variables that need not be the same for two threads
    """
    threads = set(variables.threads)
    fixed: list[tuple[tuple[IndexExpr, ...], int]] = []
    parts: list[_Part] = []
    low = 0
    for monomial, coefficient in terms_of(index):
        names = free_vars(*monomial)
        if any(map(has_element, monomial)):
            return None
        if not names & (threads | moving):
            fixed.append((monomial, coefficient))
            continue
        is_of_thread = bool(names & threads)
        if is_of_thread and not names <= threads:
            return None
        number = of_terms(((monomial, 1),))
        reach = interval(number, variables.bounds)
        if reach is None or not isinstance(reach.low, int) or not isinstance(reach.high, int):
            return None
        low += min(coefficient * reach.low, coefficient * reach.high)
        is_digit = is_of_thread and coefficient > 0 and reach.low == 0
        parts.append(_Part(abs(coefficient), number, reach.high - reach.low, is_digit))
    return _Number(of_terms(fixed), low, _digits(parts))


def _digits(parts: list[_Part]) -> dict[tuple[int, Index], _Weight]:
    digits: dict[tuple[int, Index], _Weight] = {}
    parts = sorted(parts, key=lambda part: (part.weight, part.is_digit))
    width = 1
    for n, part in enumerate(parts):
        fits = part.weight >= width
        width += part.weight * part.most
        repeated = gcd(*(above.weight for above in parts[n + 1 :]))
        if part.is_digit and fits and (repeated == 0 or width <= repeated):
            digits[part.weight, part.number] = _Weight(width, repeated)
    return digits
