"""A rule found at concrete shapes becomes one for all shapes, under the weakest condition found.

    in     ewadd(x1, ones[2, 4]()) == ..., x1 (2, 4)
    try    ewadd(x1, ones[x1.0, x1.1]()), without a condition, at random shapes
    out    the rule, or with rank(x1) = 2, or with equalities of extents besides

The sizes in its parameters come from `size_inference.py`.  Then the condition: none, if the rule
holds so at random shapes; else the ranks of the inputs; else also equalities that are true where
it was found (`x.1 = w.1`: one group), as few of them as suffice.  The prover decides whether it
holds for all shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorwright.rewriting.assumptions import IllTyped, Misfit, Needs, assume
from tensorwright.rewriting.meaning import infer, instantiate, symbolic_shapes
from tensorwright.rewriting.operators import IntShape
from tensorwright.rewriting.terms import Condition, Equal, Rank, Rule, canonical_rule, input_names
from tensorwright.rewriting.text import rule_text
from tensorwright_lab.rule_generation.generalize.extent_conditions import with_extent_conditions
from tensorwright_lab.rule_generation.generalize.least_condition import without_needless_ranks
from tensorwright_lab.rule_generation.generalize.size_inference import rules_with_sizes
from tensorwright_lab.rule_generation.generalize.widening import (
    ConcreteRule,
    RandomShapes,
    agree_at,
    is_true,
)

_MOST_CONDITIONED = 4


def generalize_alike(rules: Sequence[ConcreteRule]) -> tuple[Rule, ...]:
    """Generalise rules that are alike: to one rule without a condition, else to distinct rules.

    The shapes with the fewest chance equalities come first.  Shapes that a rule already covers are
    skipped.  Names are canonical.
    """
    kept: dict[str, Rule] = {}
    for rule, shapes in sorted(map(_renamed, rules), key=lambda each: _coincidences(each[1])):
        if any(_speaks_of(general, rule, shapes) for general in kept.values()):
            continue
        general = generalize(rule, shapes)
        if general is not None:
            kept.setdefault(rule_text(general), general)
            if not general.condition:
                break
    return tuple(kept.values())


def _renamed(concrete: ConcreteRule) -> tuple[Rule, dict[str, IntShape]]:
    """With canonical names: rules that are alike are the same then."""
    names = input_names(*concrete.rule.roots)
    shapes = dict(concrete.shapes)
    renamed = canonical_rule(concrete.rule)
    return renamed, dict(
        zip(input_names(*renamed.roots), map(shapes.__getitem__, names), strict=True)
    )


def _coincidences(shapes: Mapping[str, IntShape]) -> int:
    """How many pairs of extents are equal, with 1 in one more place."""
    extents = [1, *(extent for shape in shapes.values() for extent in shape)]
    return sum(times * (times - 1) for times in Counter(extents).values())


def _speaks_of(general: Rule, rule: Rule, shapes: Mapping[str, IntShape]) -> bool:
    """Whether a rule found at some shapes is another one there."""
    if not all(is_true(fact, shapes) for fact in general.condition):
        return False
    sides = zip(general.roots, rule.roots, strict=True)
    pairs = ((instantiate(one, shapes), instantiate(other, shapes)) for one, other in sides)
    return all(one == other and not isinstance(one, Misfit) for one, other in pairs)


def generalize(rule: Rule, shapes: Mapping[str, IntShape]) -> Rule | None:
    """The rule for all shapes; None where it is false, or speaks of no input.

    shapes  of the inputs, where the rule was found; there may be others
    """
    own = {name: shapes[name] for name in input_names(*rule.roots)}
    if not own or rule.left == rule.right or not agree_at(rule, own):
        return None
    return _general(rule, own)


def _general(rule: Rule, own: Mapping[str, IntShape]) -> Rule | None:
    """The rule with sizes for numbers, and the condition that it needs."""
    ranks: Condition = tuple(Rank(name, len(shape)) for name, shape in own.items())
    ordered = sorted(rules_with_sizes(rule, own), key=lambda pair: pair[1])
    closed = [replace(rule, left=each.left, right=each.right) for each, _ in ordered]
    tried: list[tuple[Rule, RandomShapes, Condition]] = []
    for each in closed:
        random_shapes, needed = RandomShapes(each), _roots_equal(each, own)
        tried.append((each, random_shapes, needed))
        condition = _sufficient(random_shapes, ranks, needed)
        if condition is not None:
            return replace(each, condition=condition)
    for each, random_shapes, needed in tried[:_MOST_CONDITIONED]:
        general = with_extent_conditions(each, random_shapes, (*ranks, *needed), own)
        if general is not None:
            return without_needless_ranks(general)
    return None


def _sufficient(
    random_shapes: RandomShapes, ranks: Condition, needed: Condition
) -> Condition | None:
    """The weaker condition under which a rule holds, of `needed` with the ranks and without.

    With the ranks first: it is refuted sooner, and then neither holds.
    """
    ranked = (*ranks, *needed)
    is_ranked = random_shapes.holds(ranked)
    if (is_ranked or not random_shapes.refutes(ranked)) and random_shapes.holds(needed):
        return needed
    return ranked if is_ranked else None


def _roots_equal(rule: Rule, shapes: Mapping[str, IntShape]) -> Condition:
    """The condition that makes the shapes of the two sides equal, beyond the shape rules.

    Only what gives an extent; where windows are counted, an extent condition is plainer.
    """
    count = len(rule.left)
    needs = Needs()
    typing = infer(rule.roots, symbolic_shapes(shapes))
    if isinstance(typing, Misfit):
        return ()
    try:
        for a, b in zip(typing.shapes[:count], typing.shapes[count:], strict=True):
            needs.equal_shapes(a, b)
    except IllTyped:
        return ()
    assumptions = assume(typing.facts)
    if assumptions is None:
        return ()
    solved = [assume((fact,)) for fact in needs.facts if not assumptions.entails(fact)]
    pairs = [pair for each in solved if each is not None for pair in each.solved]
    return tuple(Equal(extent, size) for extent, size in pairs)
