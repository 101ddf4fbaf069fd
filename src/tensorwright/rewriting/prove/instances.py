"""Instances of axioms: where a saturation applied one, told in terms instead of nodes.

axiom     transpose[_p](relu(?x)) == relu(transpose[_p](?x))
instance  _p = (1, 0), ?x = concat[0](?a, ?b) of rank 2
opened    the axiom at rank 2 with the words and numbers of the instance, for all sizes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from tensorwright.expr import IndexExpr
from tensorwright.rewriting.dims import Extent, Size, resized
from tensorwright.rewriting.egraph import Rewrite, Value
from tensorwright.rewriting.operators import operator_named
from tensorwright.rewriting.prove.problem import facts_of
from tensorwright.rewriting.terms import (
    Different,
    Fact,
    Param,
    Reordered,
    Rule,
    Term,
    applications,
    resized_fact,
    with_params,
)

Values = Mapping[str, tuple[Param, ...]]
_IMPOSSIBLE = (-1,)  # no axis, no extent: what has it is ill-typed


@dataclass(frozen=True, slots=True)
class Instance:
    """A rewrite at given ranks and parameters, and the two terms that it says are equal.

    ranks   of the tensors that its variables stand for
    args    those tensors
    params  what its parameter variables stand for
    """

    rewrite: Rewrite
    ranks: tuple[tuple[str, int], ...]
    args: tuple[tuple[str, Term], ...]
    params: tuple[tuple[str, Value], ...]
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class OpenAxiom:
    """An axiom at given ranks, words and numbers; its sizes are variables again.

    sizes  the names of the size variables; `Extent(name, 0)` stands for one
    """

    name: str
    left: Term
    right: Term
    facts: tuple[Fact, ...]
    triggers: tuple[Term, ...]
    ranks: tuple[tuple[str, int], ...]
    sizes: tuple[str, ...]


def size_parameter(operator: str, index: int) -> bool:
    """Whether a parameter of an operator may be a size."""
    parameters = operator_named(operator).parameters
    return parameters[min(index, len(parameters) - 1)].is_size


def opened(instance: Instance) -> OpenAxiom:
    """Generalise an instance: what can be a variable of the axiom is one."""
    rule = instance.rewrite.rule
    fixed = _fixed(rule.left[0]) | _fixed(rule.right[0])
    values: dict[str, tuple[Param, ...]] = {}
    sizes: list[str] = []
    for name, value in instance.params:
        listed = value if isinstance(value, tuple) else (value,)
        if name in fixed or any(isinstance(each, str) for each in listed):
            values[name] = listed
            continue
        names = _size_names(name, listed)
        sizes += names
        values[name] = tuple(Extent(each, 0) for each in names)
    return OpenAxiom(
        name=rule.name,
        left=filled(rule.left[0], values),
        right=filled(rule.right[0], values),
        facts=facts_of(concrete_rule(rule, values)),
        triggers=tuple(
            filled(trigger.patterns[0].term, values) for trigger in instance.rewrite.triggers
        ),
        ranks=instance.ranks,
        sizes=tuple(sizes),
    )


def _size_names(name: str, values: tuple[Param, ...]) -> list[str]:
    return [f"{name}_{index}" for index in range(len(values))]


def sizes_of(instance: Instance) -> dict[str, Param]:
    """The value in the instance of each size variable of the opened instance."""
    sizes: dict[str, Param] = {}
    for name, value in instance.params:
        listed = value if isinstance(value, tuple) else (value,)
        sizes |= zip(_size_names(name, listed), listed, strict=True)
    return sizes


def concrete_rule(rule: Rule, values: Values) -> Rule:
    """The rule that one with parameter variables is for given values of them."""
    return replace(
        rule,
        left=tuple(filled(side, values) for side in rule.left),
        right=tuple(filled(side, values) for side in rule.right),
        condition=tuple(
            resized_fact(fact, partial(_size_of, values))
            for fact in rule.condition
            if not (isinstance(fact, Different) and _is_different(fact, values))
        ),
    )


def _is_different(fact: Different, values: Values) -> bool:
    left, right = values.get(fact.left), values.get(fact.right)
    return left is not None and right is not None and left != right


def _fixed(side: Term) -> set[str]:
    """The parameter variables that stand where no size may."""
    return {
        param
        for each in applications(side)
        for index, param in enumerate(each.params)
        if isinstance(param, str) and not size_parameter(each.operator, index)
    }


def filled(term: Term, values: Values) -> Term:
    """A pattern with its parameter variables replaced."""

    def replaced(param: Param) -> tuple[Param, ...]:
        if isinstance(param, Reordered):
            return param.value(values) or _IMPOSSIBLE
        if isinstance(param, str):
            return values.get(param, (param,))
        return (resized(param, partial(_size_of, values)),)

    return with_params(term, replaced)


def _size_of(values: Values, extent: Extent) -> Size:
    """The size of an extent: the value of the variable that it is, or that names its axis."""
    if extent.variable:
        axis = values.get(extent.variable, ("",))[0]
        return Extent(extent.name, axis) if isinstance(axis, int) else extent
    value = values.get(extent.name, (extent.name,))[0]
    return value if isinstance(value, int | IndexExpr) else extent
