"""Questions of operators about extents, which are numbers or named sizes.

Shape rules and meanings compute with extents as with numbers, but call functions of this module
instead of `==` and `if`. Where the bounds and divisors of a size do not decide the answer, the
error names the size. `is_certain` is for callers that can continue with either answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod

from tensorwright.base import AttributeValue, DType, TensorType, UndecidedError, sizes_advice
from tensorwright.expr import (
    Compare,
    Condition,
    FromIndex,
    Index,
    IndexExpr,
    NamedSize,
    Relation,
    compare,
    condition_sides,
    maximum,
    named_sizes_of,
    simplify_condition,
    substitute,
)
from tensorwright.ops.deciding import deciding_bounds

_MOST_SIZES = 3
_USUAL = 64
_WHERE_READ = ", where the model is read"


def sizes_of(given: TensorType) -> tuple[Index, ...]:
    """The shape of a tensor, to compute with."""
    return tuple(map(as_size, given.shape))


def as_size(extent: AttributeValue) -> Index:
    """An extent to compute with.

    Raises:  TypeError for anything else.
    """
    if isinstance(extent, (int, IndexExpr)):
        return extent
    raise TypeError(f"not a size: {extent!r}")


def number_of(extent: Index) -> int:
    """An extent that a rule needs as a number.

    Raises:  UndecidedError for a named size.
    """
    if isinstance(extent, int):
        return extent
    raise not_decided((extent,), f"the extent {extent} must be a number here")


def decided(condition: Condition) -> bool:
    """Whether a condition on sizes holds, whatever they are.

    Raises:  UndecidedError where it holds for some numbers and not for others.
    """
    answer = simplify_condition(simplify_condition(condition, {}), {})  # simpler forms are proved
    if isinstance(answer, bool):
        return answer
    if isinstance(answer, Compare) and answer.relation is Relation.EQ:
        left, right = answer.left, answer.right
        if is_certain(left <= right) and is_certain(left >= right):
            return True  # a size of which there is one number
    sides, reason = condition_sides(answer), f"whether {answer} decides the shape"
    raise not_decided(sides, reason, deciding_bounds(answer), answer)


def is_certain(condition: Condition) -> bool:
    """Whether a condition on sizes is known to hold, whatever they are."""
    return simplify_condition(condition, {}) is True


def is_equal(left: Index, right: Index) -> bool:
    """Whether two extents are equal.

    Raises:  UndecidedError where sizes decide it.
    """
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return decided(compare(Relation.EQ, left, right))


def are_equal(left: Sequence[Index], right: Sequence[Index]) -> bool:
    """Whether two shapes are equal.

    Raises:  UndecidedError where sizes decide it.
    """
    return len(left) == len(right) and all(map(is_equal, left, right))


def is_multiple(number: Index, divisor: Index) -> bool:
    """Whether nothing is left over.

    Raises:  UndecidedError where sizes decide it.
    """
    return is_equal(number % divisor, 0)


def is_empty(shape: Sequence[Index]) -> bool:
    """Whether an extent is 0.

    Raises:  UndecidedError where sizes decide it.
    """
    return any(is_equal(extent, 0) for extent in shape)


def product_of(extents: Iterable[Index]) -> Index:
    """The number of elements of a box."""
    return prod(extents, start=1)


def as_divisor(extent: Index) -> Index:
    """The extent, or 1 where it may be 0: nothing is divided by it then."""
    if isinstance(extent, int):
        return max(extent, 1)
    return extent if is_certain(extent >= 1) else maximum(extent, 1)


def number_or_value(size: Index, dtype: DType) -> int | FromIndex:
    """A size as an operand of values."""
    return size if isinstance(size, int) else FromIndex(size, dtype)


def shape_text(shape: Sequence[Index]) -> str:
    """A shape for messages, as Python writes a tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def least_for(condition: Condition) -> dict[str, str]:
    """Bounds of a size that decide a condition: {"length": "3.."}; {} for none."""
    name, _, bounds = deciding_bounds(condition).partition("=")
    return {name: bounds} if name else {}


def _holds(condition: Compare, values: Mapping[NamedSize, Index]) -> bool:
    left, right = (substitute(side, values) for side in (condition.left, condition.right))
    return is_certain(compare(condition.relation, left, right))


def _numbers_for(sizes: Sequence[NamedSize], condition: Condition | None) -> dict[str, int]:
    """A number for each size, with which a condition holds if a few tries give any."""
    tried = [
        [n for n in (_USUAL // size.divisor, 1, 2, *range(3, 9), _USUAL * 8) if _admits(size, n)]
        or [size.least]
        for size in sizes
    ]
    first = tuple(numbers[0] for numbers in tried)
    given = first
    if isinstance(condition, Compare) and len(sizes) <= _MOST_SIZES:
        fits = (
            numbers
            for numbers in product(*tried)
            if _holds(condition, dict(zip(sizes, numbers, strict=True)))
        )
        given = next(fits, first)
    return {size.name: n * size.divisor for size, n in zip(sizes, given, strict=True)}


def _admits(size: NamedSize, number: int) -> bool:
    return size.least <= number and (size.most is None or number <= size.most)


def not_decided(
    sizes: Iterable[Index], reason: str, needs: str = "", condition: Condition | None = None
) -> UndecidedError:
    """The error for a question whose answer depends on sizes.

    needs   as of the error      condition   the question, if it is one
    """
    atoms = named_sizes_of(*sizes)
    names = tuple(each.name for each in atoms)
    listed = ", ".join(names)
    name, _, bounds = needs.partition("=")
    decisive = {name: bounds} if name else {}
    before = f"{'bounds that decide it' if decisive else f'give a number for {listed}'}: "
    return UndecidedError(
        stage="operators",
        where="",
        reason=f"{reason}, and it depends on the size {listed}",
        remedy=sizes_advice(decisive or _numbers_for(atoms, condition), before, _WHERE_READ),
        needs=needs,
        names=names,
    )
