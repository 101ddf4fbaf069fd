"""Put an input in the place of a part that both sides share and that need not be that part.

A rule about a prepared kernel may be true of every kernel.  Then the rule says less than another
one, that with an input in its place, and is replaced by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.rewrite.generate.trial import agree_at
from tensorwright.rewrite.meaning import infer_shapes
from tensorwright.rewrite.operators import IntShape
from tensorwright.rewrite.terms import Apply, Input, Rule, Term, applications, input_names

__all__ = ["abstracted"]

_NAME = "any"


def abstracted(rule: Rule, shapes: Mapping[str, IntShape]) -> tuple[Rule, dict[str, IntShape]]:
    """The rule with inputs in the place of shared parts as far as it holds, and the shapes.

    shapes  of the inputs, where the rule was found
    """
    own = dict(shapes)
    tried: set[Apply] = set()
    while True:
        part = _largest_shared(rule, tried)
        if part is None:
            return rule, {name: own[name] for name in input_names(*rule.left, *rule.right)}
        tried.add(part)
        name = f"{_NAME}{len(tried)}"
        (shape,) = infer_shapes([part], own)
        wider = Rule(
            *(tuple(_put(term, part, Input(name)) for term in side) for side in _sides(rule))
        )
        if agree_at(wider, {**own, name: shape}):
            rule, own = wider, {**own, name: shape}


def _sides(rule: Rule) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    return rule.left, rule.right


def _largest_shared(rule: Rule, tried: set[Apply]) -> Apply | None:
    other = set(applications(*rule.right))
    shared = [each for each in applications(*rule.left) if each in other and each not in tried]
    return max(shared, key=lambda each: len(applications(each)), default=None)


def _put(term: Term, part: Apply, instead: Input) -> Term:
    if term == part:
        return instead
    if isinstance(term, Input):
        return term
    return Apply(term.operator, term.params, tuple(_put(arg, part, instead) for arg in term.args))
