"""Ranges of loop variables: the table that simplifications and proofs use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensorwright.expr.index.condition import limits_of
from tensorwright.expr.index.nodes import Condition, Index, Var
from tensorwright.expr.index.traversal import free_vars
from tensorwright.expr.interned import Interned


@dataclass(frozen=True, slots=True, eq=False)
class Range(Interned):
    """An inclusive range low..high of an index expression."""

    low: Index
    high: Index

    @staticmethod
    def of_extent(extent: Index) -> Range:
        """0..extent-1, the range of a loop."""
        return Range(0, extent - 1)


Bounds = Mapping[Var, Range]


def narrowed(bounds: Bounds, holding: Iterable[Condition]) -> dict[Var, Range]:
    """The ranges where conditions hold, as far as their inequalities in one variable tell."""
    narrow = dict(bounds)
    for atom, scale, rest in limits_of(holding):
        if isinstance(atom, Var) and atom in narrow:
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


def ranges_in(expression: Index, bounds: Bounds) -> tuple[tuple[Var, Range], ...]:
    """The ranges of the variables in an expression, and of those in these ranges; sorted."""
    ranges: dict[Var, Range] = {}
    pending = list(free_vars(expression))
    while pending:
        var = pending.pop()
        own = bounds.get(var)
        if own is not None and var not in ranges:
            ranges[var] = own
            for end in (own.low, own.high):
                if not isinstance(end, int):  # most ranges are numbers
                    pending += free_vars(end)
    if len(ranges) <= 1:
        return tuple(ranges.items())
    return tuple(sorted(ranges.items(), key=_name_of))


def _name_of(pair: tuple[Var, Range]) -> str:
    return pair[0].name
