"""Find the comparisons that guard parts of a loop nest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tensorwright.expr import (
    Bounds,
    Compare,
    Condition,
    Index,
    Range,
    Select,
    Value,
    ValueExpr,
    Var,
    children,
    comparisons_of,
    conjuncts,
    free_vars,
    gap_of,
    terms_of,
)
from tensorwright.loop.ir import For, If, Stmt, Store
from tensorwright.loop.traversal import children_of


def is_contradictory(condition: Condition) -> bool:
    """Whether two inequalities of a conjunction exclude each other, whatever they compare.

    Theorem:  a >= 0 and b >= 0 give a + b >= 0, so that a + b = c < 0 for a number c is impossible.
    """
    gaps = [gap_of(part) for part in conjuncts(condition) if isinstance(part, Compare)]
    sums = (a + b for a, b in combinations([gap for gap in gaps if gap is not None], 2))
    return any(isinstance(total, int) and total < 0 for total in sums)


def guards_of(statement: Stmt, inner: Bounds) -> Iterator[tuple[Compare, Bounds]]:
    """Every comparison that guards a statement, with the ranges of the variables bound inside."""
    match statement:
        case If(condition, then):
            yield from ((leaf, inner) for leaf in comparisons_of(condition))
            yield from guards_of(then, inner)
        case For(var, extent, _, body):
            yield from guards_of(body, {**inner, var: Range.of_extent(extent)})
        case Store(_, _, value):
            yield from ((leaf, inner) for leaf in _selected(value))
        case _:
            for child in children_of(statement):
                yield from guards_of(child, inner)


def _selected(value: Value) -> Iterator[Compare]:
    if isinstance(value, Select) and not isinstance(value.condition, ValueExpr):
        yield from comparisons_of(value.condition)
    for child in children(value):
        yield from _selected(child)


def affine_in(gap: Index, var: Var) -> tuple[int, Index] | None:
    """(a, r) where gap = a*var + r and r does not contain var."""
    scale = 0
    rest: Index = 0
    for monomial, coefficient in terms_of(gap):
        if monomial == (var,):
            scale = coefficient
        else:
            term: Index = coefficient
            for atom in monomial:
                term = term * atom
            rest = rest + term
    if scale == 0 or var in free_vars(rest):
        return None
    return scale, rest
