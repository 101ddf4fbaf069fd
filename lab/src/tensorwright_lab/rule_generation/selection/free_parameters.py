"""A proved rule becomes one for all the parameters for which it is proved.

    relu(conv2d[1, 1, same, none](?x, ?w)) == conv2d[1, 1, same, relu](?x, ?w)
    relu(conv2d[_h, _v, _pad, none](?x, ?w)) == conv2d[_h, _v, _pad, relu](?x, ?w)
    split1[1, x1.1](concat[1](?x1, ?x2)) == ?x2
    split1[_axis, x1._axis](concat[_axis](?x1, ?x2)) == ?x2

Parameters of one kind that have one value become one variable, all of them at once if that is
proved, else one after the other.  Where two dimensions are to differ, the condition says so.  A
rule that could be applied in a direction still can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from tensorwright.expr import IndexExpr
from tensorwright.rewriting import terms
from tensorwright.rewriting.dims import Extent, Size, resized
from tensorwright.rewriting.egraph import usable_directions
from tensorwright.rewriting.operators import MOVING, Parameter, operator_named
from tensorwright.rewriting.prove import (
    has_parameter_variables,
    problems_of,
)
from tensorwright.rewriting.prove.instances import (
    assigned_cases,
    places_of,
    values_of_variables,
)
from tensorwright.rewriting.prove.problem import most_dimensions
from tensorwright_lab.rule_generation.derivation import larger_side

_MOST_CASES = 600
_MOST_OPERATORS = 3
"""How many cases are proved at most; in how large a rule whole shapes are freed."""
_NAMES = {
    "stride_d": "_d",
    "stride_h": "_h",
    "stride_w": "_v",
    "padding": "_pad",
    "activation": "_act",
    "kernel_d": "_kd",
    "kernel_h": "_kh",
    "kernel_w": "_kw",
}


@dataclass(frozen=True, slots=True)
class _Slot:
    """Parameters of one kind that have one value: what a variable may take the place of.

    kind    the name of the parameter        value   one, or all of a permutation or a shape
    """

    kind: str
    value: terms.Param | tuple[terms.Param, ...]
    variable: str

    @property
    def is_axis(self) -> bool:
        return self.kind == "axis"

    @property
    def is_shape(self) -> bool:
        return self.kind == "size"


def freed(rule: terms.Rule, is_proved: Callable[[terms.Rule], bool]) -> terms.Rule:
    """The rule for all parameters for which it is proved; itself if there are no more."""
    if has_parameter_variables(rule):
        return rule
    slots = _slots(rule)
    if larger_side(rule) > _MOST_OPERATORS:
        slots = tuple(slot for slot in slots if not slot.is_shape)
    others = tuple(slot for slot in slots if not slot.is_axis)
    groups = dict.fromkeys((slots, others, *((slot,) for slot in slots)))
    free = rule
    taken: tuple[_Slot, ...] = ()
    for chosen in groups:
        if not chosen or set(chosen) & set(taken):
            continue
        for candidate in _candidates(rule, (*taken, *chosen)):
            if _is_as_usable(candidate, rule) and is_proved(candidate):
                free, taken = candidate, (*taken, *chosen)
                break
    return _without_needless(rule, free, taken)


def _without_needless(rule: terms.Rule, free: terms.Rule, taken: tuple[_Slot, ...]) -> terms.Rule:
    """Without variables that can only have their former value."""
    if not taken:
        return rule
    values = _fitting_values(free)
    kept = [
        slot for slot in taken if values.get(slot.variable, set()) - {slot.value, (slot.value,)}
    ]
    if len(kept) == len(taken):
        return free
    fewer = _with_variables(rule, kept)
    names = {slot.variable for slot in kept}
    different = (
        fact
        for fact in free.condition
        if isinstance(fact, terms.Different) and {fact.left, fact.right} <= names
    )
    return replace(fewer, condition=(*fewer.condition, *different))


def without_parameters(rule: terms.Rule) -> terms.Rule:
    """The form that rules share if they differ in parameters and conditions alone."""

    def bare(term: terms.Term) -> terms.Term:
        return terms.with_params(term, lambda param: ())

    left, right = tuple(map(bare, rule.left)), tuple(map(bare, rule.right))
    return terms.canonical_rule(terms.Rule(left, right))


def _slots(rule: terms.Rule) -> tuple[_Slot, ...]:
    """The parameters that may be freed, in the order of appearance."""
    values: dict[tuple[str, terms.Param | tuple[terms.Param, ...]], None] = {}
    for each in terms.applications(*rule.roots):
        for parameter, value in _valued(each):
            values.setdefault((parameter.name, value))
    names: dict[str, int] = {}
    slots: list[_Slot] = []
    for kind, value in values:
        names[kind] = names.get(kind, 0) + 1
        number = "" if names[kind] == 1 else str(names[kind])
        slots.append(_Slot(kind, value, f"{_NAMES.get(kind, f'_{kind}')}{number}"))
    return tuple(slots)


def _valued(term: terms.Apply) -> Iterator[tuple[Parameter, terms.Param | tuple[terms.Param, ...]]]:
    """The parameters of an application that have a value which may become a variable."""
    operator = operator_named(term.operator)
    if operator.parameters and operator.parameters[0].repeats:
        if term.params:
            yield operator.parameters[0], term.params
        return
    for parameter, value in zip(operator.kinds_of(term.params), term.params, strict=True):
        if not isinstance(value, IndexExpr):
            yield parameter, value


def _candidates(rule: terms.Rule, slots: Sequence[_Slot]) -> Iterator[terms.Rule]:
    """The rule with variables; where that says too much, of dimensions that differ."""
    general = _with_variables(rule, slots)
    if _case_count(general) > _MOST_CASES:
        return
    yield general
    axes = [slot.variable for slot in slots if slot.is_axis]
    if len(axes) > 1:
        different = tuple(terms.Different(*pair) for pair in combinations(axes, 2))
        yield replace(general, condition=(*general.condition, *different))


def _with_variables(rule: terms.Rule, slots: Sequence[_Slot]) -> terms.Rule:
    variables = {(slot.kind, slot.value): slot.variable for slot in slots}

    def along(extent: Extent) -> Size:
        variable = variables.get(("axis", extent.axis))
        return extent if variable is None else Extent(extent.name, -1, variable)

    def term(each: terms.Term) -> terms.Term:
        if isinstance(each, terms.Input):
            return each
        params: list[terms.Param] = []
        kinds = operator_named(each.operator).kinds_of(each.params)
        whole = variables.get((kinds[0].name, each.params)) if kinds else None
        if whole is not None:
            params.append(whole)
        else:
            for kind, param in zip(kinds, each.params, strict=True):
                own = resized(param, along) if isinstance(param, IndexExpr) else param
                is_free = not isinstance(param, IndexExpr) and not kind.repeats
                params.append(variables.get((kind.name, param), own) if is_free else own)
        return terms.Apply(each.operator, tuple(params), tuple(map(term, each.args)))

    condition: tuple[terms.ConditionAtom, ...] = tuple(
        terms.resized_fact(fact, along) for fact in rule.condition
    )
    left, right = tuple(map(term, rule.left)), tuple(map(term, rule.right))
    return replace(rule, left=left, right=right, condition=condition)


def _is_as_usable(general: terms.Rule, rule: terms.Rule) -> bool:
    """Whether it can be applied where the rule can; but for what never pays: to merge tensors that
    share nothing, and to move elements there and back.
    """
    if len(rule.left) > 1:
        names = [set(terms.input_names(root)) for root in rule.left]
        if not set.intersection(*names):
            return any(usable_directions(general))
    ways = ((rule.left, rule.right), (rule.right, rule.left))
    wanted = (
        could and not _only_moves_more(*way)
        for could, way in zip(usable_directions(rule), ways, strict=True)
    )
    return all(
        can or not is_wanted
        for is_wanted, can in zip(wanted, usable_directions(general), strict=True)
    )


def _only_moves_more(start: Sequence[terms.Term], end: Sequence[terms.Term]) -> bool:
    """Whether elements that were moved are moved once more, and nothing else is done."""
    before, after = (
        Counter(each.operator for each in terms.applications(*side)) for side in (start, end)
    )
    return before <= after and before != after and set(after) <= MOVING


def _case_count(rule: terms.Rule) -> int:
    """How many cases a rule has at most; those that do not fit included."""
    most = most_dimensions(rule)
    values = (values_of_variables(name, each, most) for name, each in places_of(rule).items())
    return prod(len(tuple(each)) for each in values)


def _fitting_values(rule: terms.Rule) -> dict[str, set[tuple[terms.Param, ...]]]:
    """The values of each variable where both sides are well-typed, over all cases; a size where any
    number fits.
    """
    fitting: dict[str, set[tuple[terms.Param, ...]]] = {}
    for assigned, case in assigned_cases(rule):
        for problem in problems_of(case):
            for name, value in assigned.items():
                told = (
                    problem.assumptions.normal(each) if isinstance(each, IndexExpr) else each
                    for each in value
                )
                fitting.setdefault(name, set()).add(tuple(told))
    return fitting
