"""The fewest equalities of extents under which a rule holds, of those true where it was found.

    in     conv2d(ewadd(x, y), w) == ..., true at x (1, 4, 5, 5), w (4, 4, 3, 3)
    try    x.1 = w.1 (one group), x.0 = 1, x.2 = x.3, ... the likeliest to be needed first
    out    the rule under x.1 = w.1, which suffices alone

An equality that suffices alone is taken.  Else the equalities are left out one by one: one stays
out if the rule still holds at random shapes, or if the others imply it.  The likeliest to be needed
are tried last: that a convolution has one group, `x.1 = w.1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from tensorwright.rewriting.assumptions import Misfit, assume
from tensorwright.rewriting.dims import Extent
from tensorwright.rewriting.meaning import infer, symbolic_shapes
from tensorwright.rewriting.operators import (
    IntShape,
    Parameter,
    operator_named,
)
from tensorwright.rewriting.terms import (
    Apply,
    Condition,
    Divides,
    Equal,
    Fact,
    Input,
    Rule,
    Term,
    applications,
)
from tensorwright_lab.rule_generation.generalize.least_condition import extents_at, numbers_in
from tensorwright_lab.rule_generation.generalize.widening import RandomShapes
from tensorwright_lab.rule_generation.operator_facts import StructureKind, facts_of_operator

_FEW, _SOME, _MANY = 6, 12, 40
"""Shapes at which a condition is tried: first, while one is looked for, and in the end."""
_MOST_SEARCHES = 4
Extents = Mapping[Extent, int]


def with_extent_conditions(
    rule: Rule, random_shapes: RandomShapes, needed: Condition, shapes: Mapping[str, IntShape]
) -> Rule | None:
    """The rule with such equalities as its condition, after `needed`; None where none suffice.

    random_shapes    where its two sides are compared
    shapes   of the inputs, where the rule was found
    """
    typing = infer(rule.roots, symbolic_shapes(shapes))
    if isinstance(typing, Misfit):
        return None
    asked = (*typing.facts, *(fact for fact in needed if isinstance(fact, Equal | Divides)))
    ranked = _candidates(rule, shapes)
    search = _Search(random_shapes, needed, asked)
    for _ in range(_MOST_SEARCHES):  # each knows what refuted the one before
        kept = search.fewest(ranked)
        if kept is None:
            return None
        condition = (*needed, *kept)
        if random_shapes.holds(condition, seed=2, samples=_MANY):
            return replace(rule, condition=condition)
    return None


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks for equalities that suffice beside `needed`; `asked` is known besides."""

    random_shapes: RandomShapes
    needed: Condition
    asked: tuple[Fact, ...]

    def fewest(self, ranked: Sequence[tuple[int, Fact]]) -> list[Fact] | None:
        """One that suffices alone, or else as few as may be."""
        every = (*self.needed, *(fact for _, fact in ranked))
        if not self.random_shapes.holds(every, samples=_FEW) and self.random_shapes.refutes(every):
            return None
        for kind, fact in reversed(ranked):
            if kind >= _ALONG and self._suffice([fact]):
                return [fact]
        kept = self._enough(ranked)
        for fact in tuple(kept or ()):
            fewer = [other for other in kept or () if other is not fact]
            if not self._refuted(fewer) and (self._imply(fewer, fact) or self._suffice(fewer)):
                kept = fewer
        return kept

    def _enough(self, ranked: Sequence[tuple[int, Fact]]) -> list[Fact] | None:
        """All facts of the likeliest kinds, of as few kinds as suffice."""
        for kind in sorted({kind for kind, _ in ranked}, reverse=True):
            facts = [fact for own, fact in ranked if own >= kind]
            if self._suffice(facts):
                return facts
        return None

    def _suffice(self, facts: Sequence[Fact]) -> bool:
        condition = (*self.needed, *facts)
        return self.random_shapes.holds(condition, samples=_FEW) and self.random_shapes.holds(
            condition, seed=1, samples=_SOME
        )

    def _refuted(self, facts: Sequence[Fact]) -> bool:
        return self.random_shapes.refutes((*self.needed, *facts))

    def _imply(self, facts: Sequence[Fact], fact: Fact) -> bool:
        assumptions = assume((*self.asked, *facts))
        return assumptions is not None and assumptions.entails(fact)


def _candidates(rule: Rule, shapes: Mapping[str, IntShape]) -> list[tuple[int, Fact]]:
    """The equalities that are true where the rule was found, with their kinds, the likeliest
    last.
    """
    extents = extents_at(shapes)
    kernels, numbers = _kernels(rule), {1, *numbers_in(*rule.roots)}
    candidates: list[tuple[int, Fact]] = [
        (_NUMBER, Equal(extent, value)) for extent, value in extents.items() if value in numbers
    ]
    if _has_strides(rule):
        candidates += [
            (_PARITY, Divides(2, extent + value % 2))
            for extent, value in extents.items()
            if extent.axis in (2, 3)
        ]
    candidates += [
        (_likelihood(a, b, kernels), Equal(a, b * (m // n)))
        for (a, m), (b, n) in _ordered_pairs(extents)
        if m == n or (m % n == 0 and n > 1 and a.axis == b.axis == 1)
    ]
    return sorted(candidates, key=lambda pair: pair[0])


def _ordered_pairs(
    extents: Extents,
) -> Iterator[tuple[tuple[Extent, int], tuple[Extent, int]]]:
    for (a, m), (b, n) in combinations(extents.items(), 2):
        yield ((a, m), (b, n)) if m >= n else ((b, n), (a, m))


def _has_strides(rule: Rule) -> bool:
    return any(
        param == 2 and kind.name.startswith("stride")
        for each in applications(*rule.roots)
        for param, kind in zip(each.params, _kinds(each), strict=True)
    )


def _kinds(term: Apply) -> tuple[Parameter, ...]:
    return operator_named(term.operator).kinds_of(term.params)


def _kernels(rule: Rule) -> dict[tuple[str, str], int]:
    """The inputs that are convolved with each other, data first, and how likely a rule needs it.

    Of as many parts on both sides, the first meets the first.
    """
    kernels: dict[tuple[str, str], int] = {}
    for each in applications(*rule.roots):
        if facts_of_operator(each.operator).structure is StructureKind.CONVOLUTION:
            x, w = each.args
            is_direct = isinstance(x, Input) and isinstance(w, Input)
            data, weights = tuple(_parts(x)), tuple(_parts(w))
            if len(data) == len(weights):
                met = tuple(zip(data, weights, strict=True))
            else:
                met = tuple(product(data, weights))
            for pair in met:
                likelihood = _DIRECT if is_direct else _JOINED
                kernels[pair] = max(likelihood, kernels.get(pair, 0))
    return kernels


def _parts(term: Term) -> Iterator[str]:
    """An input alone, or those of a concatenation."""
    if isinstance(term, Input):
        yield term.name
    elif facts_of_operator(term.operator).contains_arguments:
        for arg in term.args:
            yield from _parts(arg)


_SAME_INPUT, _NUMBER, _ACROSS, _ALONG, _PARITY, _JOINED, _DIRECT = range(7)


def _likelihood(a: Extent, b: Extent, kernels: Mapping[tuple[str, str], int]) -> int:
    """How likely it is that a rule needs these two to be equal."""
    if a.axis == b.axis == 1:
        likelihood = kernels.get((a.name, b.name), kernels.get((b.name, a.name)))
        if likelihood is not None:
            return likelihood
    if a.name == b.name:
        return _SAME_INPUT
    return _ALONG if a.axis == b.axis else _ACROSS
