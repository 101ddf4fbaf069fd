"""Index values while code is written: a constant, scaled names, and a step per lane.

A `Linear` is const + sum(coefficient * name) + step * lane. Names are whatever the back end calls
its index values. Only what stays variable after unrolling is in it, so two copies of an unrolled
statement differ in the constant alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Terms = tuple[tuple[str, int], ...]


class Linear(NamedTuple):
    """const + sum(coefficient * name) + step * lane."""

    const: int
    terms: Terms = ()
    step: int = 0


def combine(left: Linear, right: Linear, scale: int = 1) -> Linear:
    """left + scale * right."""
    const = left.const + scale * right.const
    step = left.step + scale * right.step
    if not right.terms:
        return Linear(const, left.terms, step)
    total = dict(left.terms)
    for name, coefficient in right.terms:
        total[name] = total.get(name, 0) + scale * coefficient
    return Linear(const, sorted_terms(total), step)


def scaled(value: Linear, factor: int) -> Linear:
    """factor * value."""
    return combine(Linear(0), value, factor) if factor != 1 else value


def sorted_terms(terms: Mapping[str, int]) -> Terms:
    """Terms in one order, without zeros."""
    if len(terms) == 1:
        ((name, coefficient),) = terms.items()
        return ((name, coefficient),) if coefficient else ()
    return tuple(sorted((n, c) for n, c in terms.items() if c))


def linear_range(
    value: Linear, lanes: int, ranges: Mapping[str, tuple[int, int]]
) -> tuple[int, int] | None:
    """Inclusive bounds over `lanes`, by the bounds of the names; None if one has none."""
    low = high = value.const
    reach = value.step * (lanes - 1)
    if reach > 0:
        high += reach
    else:
        low += reach
    for name, coefficient in value.terms:
        bounds = ranges.get(name)
        if bounds is None:
            return None
        first, last = bounds[0] * coefficient, bounds[1] * coefficient
        low += min(first, last)
        high += max(first, last)
    return low, high
