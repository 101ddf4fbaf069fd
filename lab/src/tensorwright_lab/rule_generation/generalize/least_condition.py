"""Find the weakest condition under which a rule holds.

    conv(?x, concat[0](?v, ?w)) == concat[1](conv(?x, ?v), conv(?x, ?w))   false for groups
    found at x (2, 4, 5, 6), v (12, 4, 3, 3), w (14, 4, 3, 3)              x.1 = v.1 = w.1 = 4
    proved if x.1 = w.1                                                    the rest is free

The search starts with all equalities of the extents where the rule was found: equal extents, and
extents equal to 1 or to a number among the parameters.  Then each extent in turn is separated from
its equals; it stays separate if the rule still holds.  The remaining equalities, without those that
the shape rules require anyway, are the condition.  If the shapes where a rule was found are
unknown, plain shapes of layers of networks are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from tensorwright.rewriting.assumptions import Misfit, assume
from tensorwright.rewriting.dims import Extent, Size
from tensorwright.rewriting.egraph import Limits
from tensorwright.rewriting.meaning import infer, symbolic_shapes
from tensorwright.rewriting.operators import ArgumentRole, IntShape, arguments_of
from tensorwright.rewriting.prove.problem import (
    Problem,
    fits,
    problems_of,
    shapes_with,
)
from tensorwright.rewriting.prove.prover import prove
from tensorwright.rewriting.prove.refute import Proved, refute, try_inputs
from tensorwright.rewriting.terms import Equal, Fact, Rank, Rule, Term, applications, input_names

_LIMITS = Limits(rounds=4, nodes=1500, matches=200)


def least_condition(
    rule: Rule, shapes: Mapping[str, IntShape], holds: Callable[[Rule], bool] | None = None
) -> Rule | None:
    """The rule with a condition under which it is proved; None where none was found.

    shapes  of the inputs where the rule was found; the sizes in its parameters speak of all shapes
    holds   whether a rule is proved; by default the prover without Z3, so confirm the result
    """
    is_proved = _is_proved if holds is None else holds
    tied = extents_at(shapes)
    numbers = {1, *numbers_in(*rule.roots)}
    free = _conditioned(rule, shapes, {}, numbers)
    if free is not None and is_proved(free):
        return free
    current = _conditioned(rule, shapes, tied, numbers)
    if current is None or not is_proved(current):
        return None
    # conditions on channels (dimension 1) are the clearest, so other extents are separated first
    for extent in sorted(tied, key=lambda each: each.axis == 1):
        fewer = {other: value for other, value in tied.items() if other != extent}
        weaker = _conditioned(rule, shapes, fewer, numbers)
        if weaker is not None and (weaker.condition == current.condition or is_proved(weaker)):
            tied, current = fewer, weaker
    return current


def conditioned(rule: Rule) -> Rule | None:
    """The rule with a condition under which it seems to hold; None where none is found.

    For a rule that is false for some shapes: it was found where, say, a convolution has one group.
    A rule that evaluation does not refute may still be false, or have no proof. Then the weakest
    condition with a proof is taken, if there is one.
    """
    first: Rule | None = None
    for problem in problems_of(rule):
        for shapes in _plain_shapes(problem):
            inputs = {  # numbers of both signs, no two alike in a row
                name: ((np.arange(prod(shape)) * 7 + 3) % 11 - 5.0).reshape(shape)
                for name, shape in shapes.items()
            }
            if try_inputs(rule, inputs) is not None:
                continue
            for holds in (_is_not_refuted, _is_proved):
                conditional = least_condition(rule, shapes, holds)
                if conditional is not None and _is_proved(conditional):
                    return without_needless_ranks(conditional)
                first = conditional if first is None else first
    return None if first is None else without_needless_ranks(first)


def _is_not_refuted(rule: Rule) -> bool:
    problems = problems_of(rule)
    return bool(problems) and refute(problems, shapes=24) is None


def extents_at(shapes: Mapping[str, IntShape]) -> dict[Extent, int]:
    """Each extent of some inputs, with its number."""
    return {
        Extent(name, axis): extent
        for name, shape in shapes.items()
        for axis, extent in enumerate(shape)
    }


def numbers_in(*roots: Term) -> set[int]:
    """The numbers among the parameters of a graph."""
    applied = applications(*roots)
    return {param for each in applied for param in each.params if isinstance(param, int)}


def shapes_at(problem: Problem, values: Mapping[Extent, Size]) -> dict[str, IntShape] | None:
    """The shapes of the inputs where free extents have these values; None where they do not fit."""
    solved = [
        (name, tuple(map(problem.assumptions.normal, shape))) for name, shape in problem.shapes
    ]
    return shapes_with(solved, values)


def kernel_inputs(rule: Rule) -> set[str]:
    """The inputs that are kernels of convolutions."""
    return set(input_names(*arguments_of(ArgumentRole.KERNEL, *rule.roots)))


def _plain_shapes(problem: Problem) -> Iterator[dict[str, IntShape]]:
    """Small batches, channels, images and kernels; first without extents that are equal by chance.

    Kernels are of one group, or of as many as there are channels.
    """
    kernels = kernel_inputs(problem.rule)
    names = [name for name, _ in problem.shapes]
    choices = product((2, 0), (1, 4), (2, 4), (3, 1), (3, 1))
    for step, groups, batch, rows, columns in choices:
        values: dict[Extent, Size] = {}
        for extent in problem.extents:
            if extent.name.startswith("_"):
                is_outputs = any(extent.name.startswith(f"_{name}0_") for name in kernels)
                values[extent] = 12 // groups if is_outputs else groups
                continue
            more = step * names.index(extent.name)
            if extent.name in kernels:
                own = (12 + more, 4 // groups + more, rows, columns)
            else:
                own = (batch + more, 4 + more, 5, 6)
            values[extent] = own[extent.axis]
        shapes = shapes_at(problem, values)
        if shapes is not None and fits(problem, shapes):
            yield shapes


def without_needless_ranks(rule: Rule) -> Rule:
    """The rule without the ranks that its operators fix anyway."""
    for fact in rule.condition:
        if isinstance(fact, Rank):
            fewer = replace(rule, condition=tuple(f for f in rule.condition if f is not fact))
            if len(problems_of(fewer)) == 1:
                rule = fewer
    return rule


def _is_proved(rule: Rule) -> bool:
    return isinstance(prove(rule, limits=_LIMITS, confirm=False), Proved)


def _conditioned(
    rule: Rule,
    shapes: Mapping[str, IntShape],
    tied: Mapping[Extent, int],
    numbers: Set[int],
) -> Rule | None:
    """The rule under ranks and the equalities of tied extents that typing does not give."""
    ranks = tuple(Rank(name, len(shape)) for name, shape in shapes.items())
    typing = infer(rule.roots, symbolic_shapes(shapes))
    if isinstance(typing, Misfit):
        return None
    facts: list[Fact] = list(typing.facts)
    kept: list[Fact] = []
    for fact in _equalities(tied, numbers):
        assumptions = assume([*facts, *kept])
        if assumptions is None:
            return None
        if not assumptions.entails(fact):
            kept.append(fact)
    if assume([*facts, *kept]) is None:
        return None
    return replace(rule, condition=(*ranks, *kept))


def _equalities(tied: Mapping[Extent, int], numbers: Set[int]) -> Iterator[Fact]:
    for value in sorted(set(tied.values())):
        same = [extent for extent, other in tied.items() if other == value]
        if value in numbers:
            yield from (Equal(extent, value) for extent in same)
        else:
            yield from (Equal(same[0], extent) for extent in same[1:])
