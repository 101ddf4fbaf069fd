"""Instances of axioms: where a saturation applied one, told in terms instead of nodes.

axiom     transpose[_p](relu(?x)) == relu(transpose[_p](?x))
instance  _p = (1, 0), ?x = concat[0](?a, ?b) of rank 2
opened    the axiom at rank 2 with the words and numbers of the instance, for all sizes

Rules with parameter variables: the cases that a proof for all values of them has.

    split0[_axis, x._axis](concat[_axis](?x, ?y)) == ?x
    cases       _axis = 0, 1, 2, 3, each at the ranks that have such a dimension
    conv2d[_h, _v, _pad, _act](concat[0](?x, ?y), ?w) == concat[0](...)
    cases       _pad is `same` or any other, _act is none or relu; _h and _v are any number

A variable with few values up to the largest rank is written out: a dimension, a permutation, a word
of a list.  The others are left open: a number becomes a size `_h_` that is at least 1 (0 where the
operator takes it), and a word becomes one of which only the form is known.

Theorem.  A case in which a variable is open holds for all its values.  Proof: its proof applies
axioms that hold for all values of the parameter at which the open one stands (an axiom of a given
value does not match), where their conditions and the shapes of their terms follow for all numbers.
So each of its steps holds when a value takes the place of the open one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from typing import TypeAlias

from tensorwright.base import UsageError
from tensorwright.expr import IndexExpr
from tensorwright.rewriting import terms
from tensorwright.rewriting.dims import Extent, Size, atoms_of, resized
from tensorwright.rewriting.egraph import Rewrite, Value, is_parameter_variable
from tensorwright.rewriting.operators import Parameter, operator_named
from tensorwright.rewriting.prove import problem
from tensorwright.rewriting.text import rule_text

Values = Mapping[str, tuple[terms.Param, ...]]
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
    args: tuple[tuple[str, terms.Term], ...]
    params: tuple[tuple[str, Value], ...]
    left: terms.Term
    right: terms.Term


@dataclass(frozen=True, slots=True)
class OpenAxiom:
    """An axiom at given ranks, words and numbers; its sizes are variables again.

    sizes  the names of the size variables; `Extent(name, 0)` stands for one
    """

    name: str
    left: terms.Term
    right: terms.Term
    facts: tuple[terms.Fact, ...]
    triggers: tuple[terms.Term, ...]
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
    values: dict[str, tuple[terms.Param, ...]] = {}
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
        facts=problem.facts_of(concrete_rule(rule, values)),
        triggers=tuple(
            filled(trigger.patterns[0].term, values) for trigger in instance.rewrite.triggers
        ),
        ranks=instance.ranks,
        sizes=tuple(sizes),
    )


def _size_names(name: str, values: tuple[terms.Param, ...]) -> list[str]:
    return [f"{name}_{index}" for index in range(len(values))]


def sizes_of(instance: Instance) -> dict[str, terms.Param]:
    """The value in the instance of each size variable of the opened instance."""
    sizes: dict[str, terms.Param] = {}
    for name, value in instance.params:
        listed = value if isinstance(value, tuple) else (value,)
        sizes |= zip(_size_names(name, listed), listed, strict=True)
    return sizes


def concrete_rule(rule: terms.Rule, values: Values) -> terms.Rule:
    """The rule that one with parameter variables is for given values of them."""
    return replace(
        rule,
        left=tuple(filled(side, values) for side in rule.left),
        right=tuple(filled(side, values) for side in rule.right),
        condition=tuple(
            terms.resized_fact(fact, partial(_size_of, values))
            for fact in rule.condition
            if not (isinstance(fact, terms.Different) and _is_different(fact, values))
        ),
    )


def _is_different(fact: terms.Different, values: Values) -> bool:
    left, right = values.get(fact.left), values.get(fact.right)
    return left is not None and right is not None and left != right


def _fixed(side: terms.Term) -> set[str]:
    """The parameter variables that stand where no size may."""
    return {
        param
        for each in terms.applications(side)
        for index, param in enumerate(each.params)
        if isinstance(param, str) and not size_parameter(each.operator, index)
    }


def filled(term: terms.Term, values: Values) -> terms.Term:
    """A pattern with its parameter variables replaced."""

    def replaced(param: terms.Param) -> tuple[terms.Param, ...]:
        if isinstance(param, terms.Reordered):
            return param.value(values) or _IMPOSSIBLE
        if isinstance(param, str):
            return values.get(param, (param,))
        return (resized(param, partial(_size_of, values)),)

    return terms.with_params(term, replaced)


def _size_of(values: Values, extent: Extent) -> Size:
    """The size of an extent: the value of the variable that it is, or that names its axis."""
    if extent.variable:
        axis = values.get(extent.variable, ("",))[0]
        return Extent(extent.name, axis) if isinstance(axis, int) else extent
    value = values.get(extent.name, (extent.name,))[0]
    return value if isinstance(value, int | IndexExpr) else extent


Places: TypeAlias = tuple[tuple[Parameter, bool], ...]
"""The parameters at which a variable stands, and whether it is the last of its application."""
ParameterValues: TypeAlias = dict[str, tuple[terms.Param, ...]]


def places_of(rule: terms.Rule) -> dict[str, Places]:
    """The parameter variables of a rule, and where each stands.

    Raises:  UsageError for one that is never a parameter by itself, or that stands at parameters of
    different kinds.
    """
    uses: dict[str, list[tuple[Parameter, bool]]] = {}
    named: dict[str, None] = {}
    for each in terms.applications(*rule.roots):
        kinds = operator_named(each.operator).parameters
        for index, param in enumerate(each.params):
            if isinstance(param, str) and is_parameter_variable(param) and kinds:
                kind = kinds[min(index, len(kinds) - 1)]
                uses.setdefault(param, []).append((kind, index == len(each.params) - 1))
            elif isinstance(param, terms.Reordered):
                named.update(dict.fromkeys(param.names))
            elif isinstance(param, IndexExpr):
                named.update(dict.fromkeys(terms.names_of(atoms_of(param))))
    for fact in rule.condition:
        named.update(dict.fromkeys(sorted(terms.names_in(fact))))
    missing = [name for name in named if name.startswith("_") and name not in uses]
    if missing:
        raise _fault(rule, f"{missing[0]} is not a parameter of any operator")
    places = {name: tuple(each) for name, each in uses.items()}
    for name, some in places.items():
        if len({_kind(parameter) for parameter, _ in some}) > 1:
            raise _fault(rule, f"{name} stands at parameters of different kinds")
    return places


def has_parameter_variables(rule: terms.Rule) -> bool:
    """Whether a rule has a variable for a parameter."""
    if any(name.startswith("_") for fact in rule.condition for name in terms.names_in(fact)):
        return True
    return any(
        isinstance(param, terms.Reordered)
        or (isinstance(param, str) and is_parameter_variable(param))
        for each in terms.applications(*rule.roots)
        for param in each.params
    )


def _fault(rule: terms.Rule, reason: str) -> UsageError:
    return UsageError(
        stage="rules",
        where=f"rule {rule_text(rule)}",
        reason=reason,
        remedy="docs/rules.md says what a variable of parameters may stand for",
    )


def _kind(parameter: Parameter) -> str:
    if parameter.is_word:
        return "word"
    if parameter.is_axis:
        return "axis"
    return "order" if parameter.is_order else "number"


def is_of_several(places: Places) -> bool:
    """Whether a variable stands for all parameters that are left, and not for one."""
    return all(parameter.repeats and is_last for parameter, is_last in places)


def cases_of(rule: terms.Rule) -> tuple[terms.Rule, ...]:
    """The rules without variables that together are equivalent to the rule."""
    if not has_parameter_variables(rule):
        return (rule,)
    return tuple(dict.fromkeys(case for _, case in assigned_cases(rule)))


def assigned_cases(rule: terms.Rule) -> Iterator[tuple[ParameterValues, terms.Rule]]:
    """The cases, each with what the variables stand for in it."""
    places = places_of(rule)
    for name, some in places.items():
        if any(each.repeats and is_last for each, is_last in some) and not is_of_several(some):
            raise _fault(rule, f"{name} stands for one parameter, and for all that are left")
    most = problem.most_dimensions(rule)
    values = [tuple(values_of_variables(name, each, most)) for name, each in places.items()]
    longest = max(most, problem.longest_list(rule))
    for chosen in product(*values):
        assigned = dict(zip(places, chosen, strict=True))
        case = concrete_rule(rule, assigned)
        is_excluded = any(isinstance(fact, terms.Different) for fact in case.condition)
        if not is_excluded and problem.longest_list(case) <= longest:
            yield assigned, case


def values_of_variables(name: str, places: Places, most: int) -> Iterator[tuple[terms.Param, ...]]:
    """The values of a variable that are written out, and its open value."""
    parameter = places[0][0]
    if parameter.is_word:
        if not all(each.form for each, _ in places):
            shared = set(parameter.words).intersection(*(each.words for each, _ in places))
            yield from ((word,) for word in sorted(shared))
            return
        yield from ((word,) for word in parameter.excluded)
        yield (f"{name}_",)
    elif parameter.is_axis:
        yield from ((axis,) for axis in range(most))
    elif parameter.is_order:
        for rank in range(1, most + 1):
            yield from permutations(range(rank))
    elif is_of_several(places):
        for count in range(1, most + 1):
            yield tuple(_open(f"{name}:{at}", places) for at in range(count))
    else:
        yield (_open(name, places),)


def _open(name: str, places: Places) -> Size:
    """A size of which nothing is known; no solved extent has a name with this end."""
    size = Extent(f"{name}_", 0)
    return size if any(each.least for each, _ in places) else size - 1


def sampled_instances(rule: terms.Rule, count: int, seed: int) -> Iterator[terms.Rule]:
    """The rule for some random values of its variables that its condition does not exclude."""
    if not has_parameter_variables(rule):
        yield rule
        return
    places = places_of(rule)
    chance = random.Random(seed)
    for attempt in range(count):
        values = random_values(places, chance, 3 + attempt // 8)
        instance = concrete_rule(rule, values)
        if not any(isinstance(fact, terms.Different) for fact in instance.condition):
            yield instance


def random_values(
    places: Mapping[str, Places], chance: random.Random, largest: int
) -> ParameterValues:
    """Values of parameter variables, by the parameters at which they stand."""
    return {
        name: _random_value(*_most_exacting(each), chance, largest) for name, each in places.items()
    }


def _most_exacting(places: Places) -> tuple[Parameter, bool]:
    """The position that decides: the last that takes no size, else one of many parameters."""
    others = [position for position in places if not position[0].is_size]
    return others[-1] if others else min(places, key=lambda position: position[1])


def _random_value(
    parameter: Parameter, is_last: bool, chance: random.Random, largest: int
) -> tuple[terms.Param, ...]:
    if parameter.is_word:
        return (chance.choice((*parameter.words, *parameter.samples)),)
    if parameter.repeats and parameter.is_size:
        count = chance.randint(1, problem.MAX_RANK) if is_last else 1
        return tuple(chance.randint(1, largest) for _ in range(count))
    if parameter.is_order:
        return chance.choice(list(permutations(range(chance.randint(2, problem.MAX_RANK)))))
    if parameter.is_axis:
        return (chance.randint(0, problem.MAX_RANK - 1),)
    if parameter.name.startswith("stride"):
        return (chance.choice((1, 1, 2)),)
    if parameter.is_size:
        return (chance.randint(parameter.least, largest),)
    return (chance.choice((1, 2, 3)),)
