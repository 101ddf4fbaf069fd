"""Bounds of sizes that decide a question, for whoever may assume them.

    n == min(n, 512)                 n=..512          the table of positions ends there
    1 <= (n + 128) // 160 - 3        n=512..          a window fits from there on
    (n + 3) // 4 * 2 == (n + 1) // 2 n=4.. by 4       sizes meet after rounding
    12*n == 12*batch*n               batch=1          a shape leaves no other number

The bounds are the widest of their kind, not of all: a condition may hold for other numbers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorwright.expr import (
    Compare,
    Condition,
    IndexExpr,
    Min,
    Mod,
    NamedSize,
    Relation,
    compare,
    condition_sides,
    named_sizes_of,
    simplify_condition,
    substitute,
)

_FARTHEST = 1 << 24
_DIVISORS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 256)


def deciding_bounds(condition: Condition) -> str:
    """The bounds of one size with which a comparison is decided, "n=512.."; "" if there are none.

    An equality holds with them, if that can be; but no size becomes 0.
    """
    if not isinstance(condition, Compare):
        return ""
    is_equality = condition.relation is Relation.EQ
    sides = (condition.left, condition.right)
    is_of_empty = is_equality and 0 in sides and not any(isinstance(side, Mod) for side in sides)
    ways: tuple[Callable[[Compare, NamedSize], Iterator[NamedSize]], ...]
    if is_of_empty:
        ways = (_from_a_least, _multiples)
    elif is_equality:
        stated = _stated(condition)
        if stated:
            return stated
        ways = (_multiples, _from_a_least, _single)
    else:
        ways = (_from_a_least, _multiples)
    atoms = named_sizes_of(*condition_sides(condition))
    for way in ways:
        for atom in atoms:
            for narrow in way(condition, atom):
                answer = _answer(condition, atom, narrow)
                if answer is True or (answer is False and (is_of_empty or not is_equality)):
                    return _text(narrow)
    return ""


def _answer(condition: Compare, atom: NamedSize, narrow: NamedSize) -> Condition:
    """The condition with narrower bounds of a size: true, false, or what is left of it."""
    factor = narrow.divisor // atom.divisor
    size = narrow.least if narrow.least == narrow.most else narrow
    left, right = (substitute(side, {atom: size * factor}) for side in condition_sides(condition))
    return simplify_condition(compare(condition.relation, left, right), {})


def _stated(condition: Compare) -> str:
    """The bound that an equality itself says: n at most 512 for n == min(n, 512).

    A size that must be a number greater than 1, or another expression of sizes, is that; 1 would be
    a matter of broadcasting.
    """
    for size, other in ((condition.left, condition.right), (condition.right, condition.left)):
        atoms = named_sizes_of(size)
        if len(atoms) != 1 or size != atoms[0] * atoms[0].divisor:
            continue
        if isinstance(other, Min) and size in (other.left, other.right):
            limit = other.right if size == other.left else other.left
            if isinstance(limit, int):
                return f"{atoms[0].name}=..{limit}"
        is_number = isinstance(other, int) and other > 1
        if is_number or (isinstance(other, IndexExpr) and atoms[0] not in named_sizes_of(other)):
            return f"{atoms[0].name}={other}"
    return ""


def _from_a_least(condition: Compare, atom: NamedSize) -> Iterator[NamedSize]:
    """The size from the least number on with which the condition is decided."""
    last = _FARTHEST if atom.most is None else atom.most

    def at(number: int) -> NamedSize:
        return NamedSize(atom.name, atom.divisor, number, atom.most)

    def is_decided(number: int) -> bool:
        return isinstance(_answer(condition, atom, at(number)), bool)

    low, high = atom.least, atom.least + 1
    while high <= last and not is_decided(high):
        low, high = high, high * 2
    if high > last:
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_decided(middle) else (middle, high)
    yield at(high)


def _multiples(_: Compare, atom: NamedSize) -> Iterator[NamedSize]:
    """Multiples of more and more numbers."""
    for factor in _DIVISORS:
        most = None if atom.most is None else atom.most // factor
        if most is None or most >= 1:
            yield NamedSize(
                atom.name, atom.divisor * factor, max(1, -(-atom.least // factor)), most
            )


def _single(_: Compare, atom: NamedSize) -> Iterator[NamedSize]:
    """The least number alone."""
    number = max(1, atom.least)
    yield NamedSize(atom.name, atom.divisor, number, number)


def _text(size: NamedSize) -> str:
    least, by = size.least * size.divisor, f" by {size.divisor}" if size.divisor > 1 else ""
    if size.most == size.least:
        return f"{size.name}={least}"
    most = "" if size.most is None else size.most * size.divisor
    return f"{size.name}={least}..{most}{by}"
