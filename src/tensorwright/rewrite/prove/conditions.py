"""The weakest condition that is found under which a rule can be proved.

Start with everything that is true of the extents where the rule was found: equal ones, and those
equal to 1 or to a number among the parameters.  Then set each extent in turn free of its equals; it
stays free if the rule is still proved.  What remains, less what the shape rules ask anyway, is the
condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tensorwright.rewrite.dims import Dim, Extent
from tensorwright.rewrite.meaning import infer, symbolic_shape
from tensorwright.rewrite.operators import IntShape
from tensorwright.rewrite.prove.assumptions import assume
from tensorwright.rewrite.prove.outcome import Proved
from tensorwright.rewrite.prove.prover import prove
from tensorwright.rewrite.prove.saturate import Limits
from tensorwright.rewrite.shapes import IllTyped
from tensorwright.rewrite.terms import Equal, Fact, Rank, Rule, applications

__all__ = ["least_condition"]

_LIMITS = Limits(rounds=4, nodes=1500, matches=200)


def least_condition(
    rule: Rule, shapes: Mapping[str, IntShape], holds: Callable[[Rule], bool] | None = None
) -> Rule | None:
    """The rule with a condition under which it is proved; None where none was found.

    shapes  of the inputs where the rule was found; the sizes in its parameters speak of all shapes
    holds   whether a rule is proved; by default the prover without Z3: confirm the result
    """
    is_proved = _is_proved if holds is None else holds
    tied = {
        Extent(name, axis): extent
        for name, shape in shapes.items()
        for axis, extent in enumerate(shape)
    }
    numbers = _numbers(rule)
    free = _conditioned(rule, shapes, {}, numbers)
    if free is not None and is_proved(free):
        return free
    current = _conditioned(rule, shapes, tied, numbers)
    if current is None or not is_proved(current):
        return None
    for extent in tuple(tied):
        fewer = {other: value for other, value in tied.items() if other != extent}
        weaker = _conditioned(rule, shapes, fewer, numbers)
        if weaker is not None and (weaker.condition == current.condition or is_proved(weaker)):
            tied, current = fewer, weaker
    return current


def _is_proved(rule: Rule) -> bool:
    return isinstance(prove(rule, limits=_LIMITS, confirm=False), Proved)


def _numbers(rule: Rule) -> frozenset[int]:
    """1, and the numbers among the parameters."""
    found = {
        param
        for each in applications(*rule.left, *rule.right)
        for param in each.params
        if isinstance(param, int)
    }
    return frozenset(found | {1})


def _conditioned(
    rule: Rule,
    shapes: Mapping[str, IntShape],
    tied: Mapping[Extent, int],
    numbers: frozenset[int],
) -> Rule | None:
    """The rule under ranks and the equalities of tied extents that typing does not give."""
    ranks = tuple(Rank(name, len(shape)) for name, shape in shapes.items())
    symbolic = {name: symbolic_shape(name, len(shape)) for name, shape in shapes.items()}
    try:
        facts: list[Fact] = list(infer((*rule.left, *rule.right), symbolic).facts)
    except (IllTyped, ZeroDivisionError):
        return None
    kept: list[Fact] = []
    for fact in _equalities(tied, numbers):
        known = assume([*facts, *kept])
        if known is None:
            return None
        if not known.entails(fact):
            kept.append(fact)
    if assume([*facts, *kept]) is None:
        return None
    return replace(rule, condition=(*ranks, *kept))


def _equalities(tied: Mapping[Extent, int], numbers: frozenset[int]) -> Iterator[Fact]:
    for value in sorted(set(tied.values())):
        same = [Dim.of(extent) for extent, other in tied.items() if other == value]
        if value in numbers:
            yield from (Equal(extent, value) for extent in same)
        else:
            yield from (Equal(same[0], extent) for extent in same[1:])
