"""Questions of operators about extents, which are numbers or named sizes.

Shape rules and meanings compute with extents as with numbers, but call functions of this module
instead of `==` and `if`. Where the bounds and divisors of a size do not decide the answer, the
error names the size. `is_certain` is for callers that can continue with either answer.

Bounds of sizes that decide a question, for whoever may assume them.

    n == min(n, 512)                 n=..512          the table of positions ends there
    1 <= (n + 128) // 160 - 3        n=512..          a window fits from there on
    (n + 3) // 4 * 2 == (n + 1) // 2 n=4.. by 4       sizes meet after rounding
    12*n == 12*batch*n               batch=1          a shape leaves no other number

The bounds are the widest of their kind, not of all: a condition may hold for other numbers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from tensorwright import base, expr

_FARTHEST = 1 << 24
_DIVISORS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 256)


def deciding_bounds(condition: expr.Condition) -> str:
    """The bounds of one size with which a comparison is decided, "n=512.."; "" if there are none.

    An equality holds with them, if that can be; but no size becomes 0.
    """
    if not isinstance(condition, expr.Compare):
        return ""
    is_equality = condition.relation is expr.Relation.EQ
    sides = (condition.left, condition.right)
    is_of_empty = (
        is_equality and 0 in sides and not any(isinstance(side, expr.Mod) for side in sides)
    )
    ways: tuple[Callable[[expr.Compare, expr.NamedSize], Iterator[expr.NamedSize]], ...]
    if is_of_empty:
        ways = (_from_a_least, _multiples)
    elif is_equality:
        stated = _stated(condition)
        if stated:
            return stated
        ways = (_multiples, _from_a_least, _single)
    else:
        ways = (_from_a_least, _multiples)
    atoms = expr.named_sizes_of(*expr.condition_sides(condition))
    for way in ways:
        for atom in atoms:
            for narrow in way(condition, atom):
                answer = _answer(condition, atom, narrow)
                if answer is True or (answer is False and (is_of_empty or not is_equality)):
                    is_one = narrow.most == narrow.least
                    return f"{narrow.name}={narrow.bounds.least if is_one else narrow.bounds}"
    return ""


def _answer(
    condition: expr.Compare, atom: expr.NamedSize, narrow: expr.NamedSize
) -> expr.Condition:
    """The condition with narrower bounds of a size: true, false, or what is left of it."""
    factor = narrow.divisor // atom.divisor
    size = narrow.least if narrow.least == narrow.most else narrow
    left, right = (
        expr.substitute(side, {atom: size * factor}) for side in expr.condition_sides(condition)
    )
    return expr.simplify_condition(expr.compare(condition.relation, left, right), {})


def _stated(condition: expr.Compare) -> str:
    """The bound that an equality itself says: n at most 512 for n == min(n, 512).

    A size that must be a number greater than 1, or another expression of sizes, is that; 1 would be
    a matter of broadcasting.
    """
    for size, other in ((condition.left, condition.right), (condition.right, condition.left)):
        atoms = expr.named_sizes_of(size)
        if len(atoms) != 1 or size != atoms[0] * atoms[0].divisor:
            continue
        if isinstance(other, expr.Min) and size in (other.left, other.right):
            limit = other.right if size == other.left else other.left
            if isinstance(limit, int):
                return f"{atoms[0].name}=..{limit}"
        is_number = isinstance(other, int) and other > 1
        if is_number or (
            isinstance(other, expr.IndexExpr) and atoms[0] not in expr.named_sizes_of(other)
        ):
            return f"{atoms[0].name}={other}"
    return ""


def _from_a_least(condition: expr.Compare, atom: expr.NamedSize) -> Iterator[expr.NamedSize]:
    """The size from the least number on with which the condition is decided."""
    last = _FARTHEST if atom.most is None else atom.most

    def at(number: int) -> expr.NamedSize:
        return expr.NamedSize(atom.name, atom.divisor, number, atom.most)

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


def _multiples(_: expr.Compare, atom: expr.NamedSize) -> Iterator[expr.NamedSize]:
    """Multiples of more and more numbers."""
    for factor in _DIVISORS:
        most = None if atom.most is None else atom.most // factor
        if most is None or most >= 1:
            yield expr.NamedSize(
                atom.name, atom.divisor * factor, max(1, -(-atom.least // factor)), most
            )


def _single(_: expr.Compare, atom: expr.NamedSize) -> Iterator[expr.NamedSize]:
    """The least number alone."""
    number = max(1, atom.least)
    yield expr.NamedSize(atom.name, atom.divisor, number, number)


_MOST_SIZES = 3
_USUAL = 64
_WHERE_READ = ", where the model is read"


def sizes_of(given: base.TensorType) -> tuple[expr.Index, ...]:
    """The shape of a tensor, to compute with."""
    return tuple(map(as_size, given.shape))


def as_size(extent: base.AttributeValue) -> expr.Index:
    """An extent to compute with.

    Raises:  TypeError for anything else.
    """
    if isinstance(extent, (int, expr.IndexExpr)):
        return extent
    raise TypeError(f"not a size: {extent!r}")


def number_of(extent: expr.Index) -> int:
    """An extent that a rule needs as a number.

    Raises:  UndecidedError for a named size.
    """
    if isinstance(extent, int):
        return extent
    raise not_decided((extent,), f"the extent {extent} must be a number here")


def decided(condition: expr.Condition) -> bool:
    """Whether a condition on sizes holds, whatever they are.

    Raises:  UndecidedError where it holds for some numbers and not for others.
    """
    answer = expr.simplify_condition(
        expr.simplify_condition(condition, {}), {}
    )  # simpler forms are proved
    if isinstance(answer, bool):
        return answer
    if isinstance(answer, expr.Compare) and answer.relation is expr.Relation.EQ:
        left, right = answer.left, answer.right
        if is_certain(left <= right) and is_certain(left >= right):
            return True  # a size of which there is one number
    sides, reason = expr.condition_sides(answer), f"whether {answer} decides the shape"
    raise not_decided(sides, reason, deciding_bounds(answer), answer)


def is_certain(condition: expr.Condition) -> bool:
    """Whether a condition on sizes is known to hold, whatever they are."""
    return expr.simplify_condition(condition, {}) is True


def is_equal(left: expr.Index, right: expr.Index) -> bool:
    """Whether two extents are equal.

    Raises:  UndecidedError where sizes decide it.
    """
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return decided(expr.compare(expr.Relation.EQ, left, right))


def are_equal(left: Sequence[expr.Index], right: Sequence[expr.Index]) -> bool:
    """Whether two shapes are equal.

    Raises:  UndecidedError where sizes decide it.
    """
    return len(left) == len(right) and all(map(is_equal, left, right))


def is_multiple(number: expr.Index, divisor: expr.Index) -> bool:
    """Whether nothing is left over.

    Raises:  UndecidedError where sizes decide it.
    """
    return is_equal(number % divisor, 0)


def is_empty(shape: Sequence[expr.Index]) -> bool:
    """Whether an extent is 0.

    Raises:  UndecidedError where sizes decide it.
    """
    return any(is_equal(extent, 0) for extent in shape)


def product_of(extents: Iterable[expr.Index]) -> expr.Index:
    """The number of elements of a box."""
    return prod(extents, start=1)


def as_divisor(extent: expr.Index) -> expr.Index:
    """The extent, or 1 where it may be 0: nothing is divided by it then."""
    if isinstance(extent, int):
        return max(extent, 1)
    return extent if is_certain(extent >= 1) else expr.maximum(extent, 1)


def number_or_value(size: expr.Index, dtype: base.DType) -> int | expr.FromIndex:
    """A size as an operand of values."""
    return size if isinstance(size, int) else expr.FromIndex(size, dtype)


def shape_text(shape: Sequence[expr.Index]) -> str:
    """A shape for messages, as Python writes a tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def least_for(condition: expr.Condition) -> dict[str, str]:
    """Bounds of a size that decide a condition: {"length": "3.."}; {} for none."""
    name, _, bounds = deciding_bounds(condition).partition("=")
    return {name: bounds} if name else {}


def _holds(condition: expr.Compare, values: Mapping[expr.NamedSize, expr.Index]) -> bool:
    left, right = (expr.substitute(side, values) for side in (condition.left, condition.right))
    return is_certain(expr.compare(condition.relation, left, right))


def _numbers_for(
    sizes: Sequence[expr.NamedSize], condition: expr.Condition | None
) -> dict[str, int]:
    """A number for each size, with which a condition holds if a few tries give any."""
    tried = [
        [
            n
            for n in (_USUAL // size.divisor, 1, 2, *range(3, 9), _USUAL * 8)
            if (size.least <= n and (size.most is None or n <= size.most))
        ]
        or [size.least]
        for size in sizes
    ]
    first = tuple(numbers[0] for numbers in tried)
    given = first
    if isinstance(condition, expr.Compare) and len(sizes) <= _MOST_SIZES:
        fits = (
            numbers
            for numbers in product(*tried)
            if _holds(condition, dict(zip(sizes, numbers, strict=True)))
        )
        given = next(fits, first)
    return {size.name: n * size.divisor for size, n in zip(sizes, given, strict=True)}


def not_decided(
    sizes: Iterable[expr.Index],
    reason: str,
    needs: str = "",
    condition: expr.Condition | None = None,
) -> base.UndecidedError:
    """The error for a question whose answer depends on sizes.

    needs   as of the error      condition   the question, if it is one
    """
    atoms = expr.named_sizes_of(*sizes)
    names = tuple(each.name for each in atoms)
    listed = ", ".join(names)
    name, _, bounds = needs.partition("=")
    decisive = {name: bounds} if name else {}
    before = f"{'bounds that decide it' if decisive else f'give a number for {listed}'}: "
    return base.UndecidedError(
        stage="operators",
        where="",
        reason=f"{reason}, and it depends on the size {listed}",
        remedy=base.sizes_advice(decisive or _numbers_for(atoms, condition), before, _WHERE_READ),
        needs=needs,
        names=names,
    )
