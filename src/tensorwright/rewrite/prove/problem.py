"""What is to be proved about a rule: for which ranks, under which assumptions about extents.

A rule speaks of all shapes for which both sides are well-typed and the condition holds.  Ranks are
tried one by one; for each, what the shape rules of both sides ask becomes an assumption.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from tensorwright.rewrite.dims import Extent, Shape, atoms_of
from tensorwright.rewrite.meaning import infer, symbolic_shape
from tensorwright.rewrite.prove.assumptions import Assumptions, assume
from tensorwright.rewrite.shapes import IllTyped
from tensorwright.rewrite.terms import AtLeast, Divides, Equal, Fact, Rank, Rule, input_names

__all__ = ["MAX_RANK", "Problem", "extents_in", "problems_of"]

MAX_RANK = 4


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule at given ranks.

    shapes  of the inputs, symbolic
    facts   what is assumed: the condition, and that both sides are well-typed
    known   the same, solved
    """

    rule: Rule
    shapes: tuple[tuple[str, Shape], ...]
    facts: tuple[Fact, ...]
    known: Assumptions


def problems_of(rule: Rule) -> tuple[Problem, ...]:
    """The rule at each choice of ranks that fits it and whose assumptions are not absurd."""
    return tuple(_problems(rule))


def _problems(rule: Rule) -> Iterator[Problem]:
    fixed = {fact.name: fact.rank for fact in rule.condition if isinstance(fact, Rank)}
    facts = tuple(fact for fact in rule.condition if not isinstance(fact, Rank))
    names = input_names(*rule.left, *rule.right)
    roots = (*rule.left, *rule.right)
    for ranks in product(*((fixed[n],) if n in fixed else range(MAX_RANK + 1) for n in names)):
        shapes = {n: symbolic_shape(n, r) for n, r in zip(names, ranks, strict=True)}
        try:
            typing = infer(roots, shapes)
        except IllTyped:
            continue
        assumed = dict.fromkeys((*facts, *typing.facts))
        if not _speaks_of_extents(facts, shapes):
            continue
        known = assume(assumed)
        if known is not None:
            yield Problem(rule, tuple(shapes.items()), tuple(assumed), known)


def extents_in(fact: Fact) -> tuple[Extent, ...]:
    """The extents that a fact speaks of."""
    match fact:
        case Equal(left, right) | AtLeast(left, right):
            return (*atoms_of(left), *atoms_of(right))
        case Divides(divisor, number):
            return (*atoms_of(divisor), *atoms_of(number))


def _speaks_of_extents(facts: tuple[Fact, ...], shapes: Mapping[str, Shape]) -> bool:
    """Whether every extent in the condition exists at these ranks."""
    return all(
        extent.axis < len(shapes.get(extent.name, ()))
        for fact in facts
        for extent in extents_in(fact)
    )
