"""Conditions on index expressions: how they are built, walked and changed.

Their nodes are in `nodes.py`. A condition that is certain without any bounds is decided when it is
built: one that always holds is True itself.

    all_of(i >= 0, j < 4, True)                 i >= 0 and j < 4, whose `conjuncts` are the two
    map_condition(i < n, lambda side: side*2)   i*2 < n*2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from tensorwright.expr.index.nodes import (
    And,
    Compare,
    Condition,
    Index,
    IndexExpr,
    Not,
    Or,
    Relation,
    compare,
    terms_of,
)
from tensorwright.expr.symbolic import noun_of, refused


def all_of(*parts: Condition) -> Condition:
    """Conjunction, flattened, without duplicates; empty is true."""
    kept: dict[Condition, None] = {}
    for part in map(_plain, parts):
        if part is False:
            return False
        for leaf in part.parts if isinstance(part, And) else (part,):
            if leaf is not True:
                kept[leaf] = None
    if len(kept) <= 1:
        return next(iter(kept), True)
    return And(tuple(kept))


def any_of(*parts: Condition) -> Condition:
    """Disjunction, flattened, without duplicates; empty is false."""
    kept: dict[Condition, None] = {}
    for part in map(_plain, parts):
        if part is True:
            return True
        for leaf in part.parts if isinstance(part, Or) else (part,):
            if leaf is not False:
                kept[leaf] = None
    if len(kept) <= 1:
        return next(iter(kept), False)
    return Or(tuple(kept))


def negate(condition: Condition) -> Condition:
    """Negation, pushed into comparisons."""
    match _plain(condition):
        case bool() as holds:
            return not holds
        case Compare(Relation.LT, left, right):
            return compare(Relation.LE, right, left)
        case Compare(Relation.LE, left, right):
            return compare(Relation.LT, right, left)
        case Compare(Relation.EQ, left, right):
            return Compare(Relation.NE, left, right)
        case Compare(_, left, right):
            return Compare(Relation.EQ, left, right)
        case Not(part):
            return part
        case And(parts):
            return any_of(*(negate(part) for part in parts))
        case Or(parts):
            return all_of(*(negate(part) for part in parts))


def _plain(condition: object) -> Condition:
    """A condition, for which a bool of NumPy may stand.

    Raises: ExpressionError for anything else.
    """
    if isinstance(condition, (bool, Compare, And, Or, Not)):
        return condition
    if isinstance(condition, np.bool_):
        return bool(condition)
    raise refused(
        noun_of(condition),
        "all_of, any_of and negate join conditions on indices",
        "&, | and ~ join conditions on values; a select on an index holds one on a value inside",
    )


def gap_of(guard: Compare) -> Index | None:
    """The expression that is >= 0 exactly where an inequality holds; None for == and !=."""
    match guard.relation:
        case Relation.LT:
            return guard.right - guard.left - 1
        case Relation.LE:
            return guard.right - guard.left
        case _:
            return None


def limits_of(holding: Iterable[Condition]) -> Iterator[tuple[IndexExpr, int, int]]:
    """(a, s, r) for each inequality s*a + r >= 0 of one atom."""
    for part in holding:
        gap = gap_of(part) if isinstance(part, Compare) else None
        terms = dict(terms_of(gap)) if gap is not None else {}
        rest = terms.pop((), 0)
        if len(terms) == 1:
            ((monomial, scale),) = terms.items()
            if len(monomial) == 1:
                yield monomial[0], scale, rest


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """The conditions that hold together exactly where this one does."""
    return condition.parts if isinstance(condition, And) else (condition,)


def comparisons_of(condition: Condition) -> Iterator[Compare]:
    """Every comparison in a condition."""
    match condition:
        case Compare():
            yield condition
        case And(parts) | Or(parts):
            for part in parts:
                yield from comparisons_of(part)
        case Not(part):
            yield from comparisons_of(part)


def condition_sides(condition: Condition) -> Iterator[Index]:
    """Every index expression compared somewhere in a condition."""
    for comparison in comparisons_of(condition):
        yield comparison.left
        yield comparison.right


def map_comparisons(condition: Condition, change: Callable[[Compare], Condition]) -> Condition:
    """The condition with every comparison replaced, simplified again on the way up."""
    match condition:
        case bool():
            return condition
        case Compare():
            return change(condition)
        case And(parts):
            return all_of(*(map_comparisons(part, change) for part in parts))
        case Or(parts):
            return any_of(*(map_comparisons(part, change) for part in parts))
        case Not(part):
            return negate(map_comparisons(part, change))


def map_condition(condition: Condition, on_index: Callable[[Index], Index]) -> Condition:
    """The condition with both sides of every comparison changed."""
    return map_comparisons(
        condition, lambda each: compare(each.relation, on_index(each.left), on_index(each.right))
    )
