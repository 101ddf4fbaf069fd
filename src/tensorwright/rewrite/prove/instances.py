"""Instances of axioms: where a saturation applied one, told in terms instead of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tensorwright.rewrite.dims import Dim, Extent, Size, atoms_of, value_of
from tensorwright.rewrite.egraph import Rewrite, Value
from tensorwright.rewrite.operators import operator_named
from tensorwright.rewrite.terms import (
    AtLeast,
    Divides,
    Equal,
    Fact,
    Input,
    Param,
    Rank,
    Rule,
    Term,
    applications,
)

__all__ = ["Instance", "OpenAxiom", "concrete_rule", "opened", "size_parameter", "sizes_of"]

Values = Mapping[str, tuple[Param, ...]]


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


def size_parameter(operator: str, place: int) -> bool:
    """Whether a parameter of an operator may be a size."""
    parameters = operator_named(operator).parameters
    return parameters[min(place, len(parameters) - 1)].is_size


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
        values[name] = tuple(Dim.of(Extent(each, 0)) for each in names)
    return OpenAxiom(
        name=rule.name,
        left=filled(rule.left[0], values),
        right=filled(rule.right[0], values),
        facts=tuple(_put(f, values) for f in rule.condition if not isinstance(f, Rank)),
        triggers=tuple(
            filled(trigger.patterns[0].term, values) for trigger in instance.rewrite.triggers
        ),
        ranks=instance.ranks,
        sizes=tuple(sizes),
    )


def _size_names(name: str, values: tuple[Param, ...]) -> list[str]:
    return [f"{name}_{place}" for place in range(len(values))]


def sizes_of(instance: Instance) -> dict[str, Param]:
    """What each size variable of the opened instance stands for in the instance."""
    found: dict[str, Param] = {}
    for name, value in instance.params:
        listed = value if isinstance(value, tuple) else (value,)
        found |= zip(_size_names(name, listed), listed, strict=True)
    return found


def concrete_rule(rule: Rule, values: Values) -> Rule:
    """The rule that an axiom's is for given parameters."""
    facts = (f if isinstance(f, Rank) else _put(f, values) for f in rule.condition)
    return replace(
        rule,
        left=tuple(filled(side, values) for side in rule.left),
        right=tuple(filled(side, values) for side in rule.right),
        condition=tuple(facts),
    )


def _fixed(side: Term) -> set[str]:
    """The parameter variables that stand where no size may."""
    return {
        param
        for each in applications(side)
        for place, param in enumerate(each.params)
        if isinstance(param, str) and not size_parameter(each.operator, place)
    }


def filled(term: Term, values: Values) -> Term:
    """A pattern with its parameter variables replaced."""
    if isinstance(term, Input):
        return term
    params: list[Param] = []
    for param in term.params:
        if isinstance(param, str):
            params.extend(values.get(param, (param,)))
        else:
            params.append(_sized(param, values))
    return replace(term, params=tuple(params), args=tuple(filled(arg, values) for arg in term.args))


def _sized(size: Size, values: Values) -> Size:
    extents: dict[Extent, Size] = {}
    for extent in atoms_of(size):
        value = values.get(extent.name, (Dim.of(extent),))[0]
        extents[extent] = Dim.of(extent) if isinstance(value, str) else value
    return value_of(size, extents)


def _put(fact: Fact, values: Values) -> Fact:
    match fact:
        case Equal(left, right):
            return Equal(_sized(left, values), _sized(right, values))
        case AtLeast(left, right):
            return AtLeast(_sized(left, values), _sized(right, values))
        case Divides(divisor, number):
            return Divides(_sized(divisor, values), _sized(number, values))
