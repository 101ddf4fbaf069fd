"""Candidates that hold and have no proof, grouped by the property that may be missing.

    exp(tanh(relu(?x))) == exp(relu(tanh(?x)))      the heads are equal: their arguments are
    tanh(relu(matmul(?x, ?y))) == relu(tanh(...))   both sides have matmul(?x, ?y): an input
    tanh(relu(?x)) == relu(tanh(?x))                explains both

A candidate is pared down first: arguments that both sides share become inputs, as long as the
equality still holds.  The rest is the smallest equality that the axioms do not give; candidates
with the same rest lack the same property.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tensorwright.rewriting import terms
from tensorwright.rewriting.operators import operator_count
from tensorwright.rewriting.prove import problems_of
from tensorwright.rewriting.prove.refute import refute
from tensorwright_lab.rule_generation.generalize.widening import with_subterm


@dataclass(frozen=True, slots=True)
class MissingProperty:
    """An equality that holds at small sizes, and the candidates that it would explain."""

    rule: terms.Rule
    candidates: tuple[terms.Rule, ...]


def missing_properties(unproved: Iterable[terms.Rule]) -> tuple[MissingProperty, ...]:
    """The properties that unproved candidates seem to lack, those that explain most first.

    Candidates that evaluation refutes are left out.
    """
    by_property: dict[terms.Rule, list[terms.Rule]] = {}
    for rule in unproved:
        if not _holds(rule):
            continue
        by_property.setdefault(_pared(rule), []).append(rule)
    order = sorted(
        by_property,
        key=lambda rule: (-len(by_property[rule]), operator_count(*rule.roots), str(rule)),
    )
    return tuple(MissingProperty(rule, tuple(by_property[rule])) for rule in order)


def _holds(rule: terms.Rule) -> bool:
    problems = problems_of(rule)
    return bool(problems) and refute(problems) is None


def _pared(rule: terms.Rule) -> terms.Rule:
    """Simplify while the equality holds, and give it the names of a canonical rule."""
    bare = replace(rule, name="", stamp="")
    for smaller in _simpler(bare):
        kept = _without_foreign(smaller)
        if _holds(kept):
            return _pared(kept)
    return terms.canonical_rule(bare)


def _without_foreign(rule: terms.Rule) -> terms.Rule:
    """The rule without conditions on inputs that it no longer has."""
    names = terms.input_names(*rule.roots)
    kept = tuple(fact for fact in rule.condition if terms.names_in(fact) <= set(names))
    return replace(rule, condition=kept)


def _simpler(rule: terms.Rule) -> Iterator[terms.Rule]:
    """One pair of roots alone; a common subterm as an input; the arguments of equal heads."""
    if len(rule.left) > 1:
        for left, right in zip(rule.left, rule.right, strict=True):
            yield replace(rule, left=(left,), right=(right,))
        return
    left, right = rule.left[0], rule.right[0]
    if (
        isinstance(left, terms.Apply)
        and isinstance(right, terms.Apply)
        and (left.operator, left.params) == (right.operator, right.params)
    ):
        for one, other in zip(left.args, right.args, strict=True):
            if one != other:
                yield replace(rule, left=(one,), right=(other,))
    shared = set(terms.applications(left)) & set(terms.applications(right))
    fresh = _fresh(rule)
    for term in sorted(shared, key=lambda each: (-operator_count(each), str(each))):
        if term not in (left, right):
            put = (with_subterm(side, term, terms.Input(fresh)) for side in (left, right))
            yield replace(rule, left=(next(put),), right=(next(put),))


def _fresh(rule: terms.Rule) -> str:
    taken = terms.input_names(*rule.roots)
    return next(f"t{n}" for n in range(len(taken) + 1) if f"t{n}" not in taken)
