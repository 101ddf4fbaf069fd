"""Conditions in their plainest form: what is the same on both sides is left out.

relu(?x) == ?y if x.0 + x.1 = x.1 + y.0 and y.0 = x.0
x.0 + x.1 = x.1 + y.0             is x.0 = y.0
y.0 = x.0                         follows, and is left out
"""

from __future__ import annotations

from dataclasses import replace

from tensorwright.expr import IndexExpr, of_terms, terms_of
from tensorwright.rewriting.assumptions import assume
from tensorwright.rewriting.dims import Size, atoms_of
from tensorwright.rewriting.terms import ConditionAtom, Different, Equal, Rank, Rule


def tidied(rule: Rule) -> Rule:
    """The rule with each equality less what the facts before it say: `a + b = a + c` is `b = c`."""
    kept: list[ConditionAtom] = []
    for fact in rule.condition:
        if not isinstance(fact, Equal):
            kept.append(fact)
            continue
        known = assume(each for each in kept if not isinstance(each, Rank | Different))
        if known is None:
            return rule
        gap = known.normal(fact.left) - known.normal(fact.right)
        if gap != 0:
            kept.append(_equality(gap, fact))
    return replace(rule, condition=tuple(kept))


def _equality(gap: Size, fact: Equal) -> Equal:
    """`gap = 0` with what is added on the left and what is subtracted on the right."""
    if isinstance(gap, int) or any(each.name.startswith("_") for each in atoms_of(gap)):
        return fact
    left = _part(gap, 1)
    right = _part(gap, -1)
    return Equal(right, left) if isinstance(left, int) else Equal(left, right)


def _part(gap: IndexExpr, sign: int) -> Size:
    return of_terms((m, factor * sign) for m, factor in terms_of(gap) if factor * sign > 0)
