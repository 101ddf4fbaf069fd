"""What shape rules ask of extents, which are numbers or named sizes.

A rule computes with extents as with numbers, and asks here what it would ask of numbers by `==` and
`if`.  What the bounds and divisors of a size do not decide is refused by the name of the size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from tensorwright.base import AttributeValue, TensorType, UnsupportedError
from tensorwright.expr import (
    Condition,
    Index,
    IndexExpr,
    Relation,
    compare,
    condition_sides,
    named_sizes_of,
    simplify_condition,
)

Extent = TypeVar("Extent", int, Index)
"""A number where the operator's meaning asks, a size where its shape rule does."""


def sizes_of(given: TensorType) -> tuple[Index, ...]:
    """The shape of a tensor, to compute with."""
    return tuple(map(as_size, given.shape))


def as_size(extent: AttributeValue) -> Index:
    """An extent to compute with.

    Raises:  TypeError for what is none.
    """
    if isinstance(extent, (int, IndexExpr)):
        return extent
    raise TypeError(f"not a size: {extent!r}")


def number_of(extent: Index) -> int:
    """An extent that a rule needs as a number.

    Raises:  UnsupportedError for a named size.
    """
    if isinstance(extent, int):
        return extent
    raise not_decided((extent,), f"the extent {extent} must be a number here")


def decided(condition: Condition) -> bool:
    """Whether a condition on sizes holds, whatever they are.

    Raises:  UnsupportedError where it holds for some numbers and not for others.
    """
    answer = simplify_condition(condition, {})
    if isinstance(answer, bool):
        return answer
    raise not_decided(condition_sides(answer), f"whether {answer} decides the shape")


def is_equal(left: Index, right: Index) -> bool:
    """Whether two extents are equal.

    Raises:  UnsupportedError where sizes decide it.
    """
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return decided(compare(Relation.EQ, left, right))


def are_equal(left: Sequence[Index], right: Sequence[Index]) -> bool:
    """Whether two shapes are equal.

    Raises:  UnsupportedError where sizes decide it.
    """
    return len(left) == len(right) and all(map(is_equal, left, right))


def is_multiple(number: Index, divisor: Index) -> bool:
    """Whether nothing is left over.

    Raises:  UnsupportedError where sizes decide it.
    """
    return is_equal(number % divisor, 0)


def is_empty(shape: Sequence[Index]) -> bool:
    """Whether an extent is 0.

    Raises:  UnsupportedError where sizes decide it.
    """
    return any(is_equal(extent, 0) for extent in shape)


def shape_text(shape: Sequence[Index]) -> str:
    """A shape for messages, as Python writes a tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def not_decided(sizes: Iterable[Index], reason: str) -> UnsupportedError:
    """What is raised for a question whose answer depends on sizes."""
    names = [each.name for each in named_sizes_of(*sizes)]
    bounds = ", ".join(f'"{name}": "2..512"' for name in names)
    listed = ", ".join(names)
    return UnsupportedError(
        stage="operators",
        where="",
        reason=f"{reason}, and it depends on the size {listed}",
        remedy=f"give a number for {listed}, or bounds that decide it: where a model is read, "
        f"sizes={{{bounds}}}",
    )
