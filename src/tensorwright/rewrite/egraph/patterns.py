"""Patterns of axioms in the form in which a matcher uses them: variables are numbered.

A pattern has tensor variables and parameter variables, each with a place in a tuple.  All patterns
of an axiom share the numbering, so that a match at one of its terms fills the places for both of
its sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from tensorwright.rewrite.axioms import Axiom, variables_of
from tensorwright.rewrite.terms import Apply, Input, Param, Term, applications, operator_names

__all__ = [
    "AxiomPattern",
    "NodePattern",
    "Pattern",
    "Trigger",
    "Variables",
    "Way",
    "trigger_of",
    "ways_of",
]

_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Variables:
    """The names of tensor variables and of parameter variables, in the order of their places."""

    tensors: tuple[str, ...]
    params: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodePattern:
    """An application in a pattern.

    number  its own; results that depend on it are kept under it
    args    the places of tensor variables, and patterns
    """

    number: int
    operator: str
    params: tuple[Param, ...]
    args: tuple[Pattern, ...]


Pattern: TypeAlias = int | NodePattern


@dataclass(frozen=True, slots=True, eq=False)
class Trigger:
    """A pattern to be looked for.

    depth  how many levels of classes below the root a change of which may give a new match
    """

    pattern: NodePattern
    variables: Variables
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class AxiomPattern:
    """An axiom as patterns; its triggers have the same variables.

    number     its own
    operators  those of both sides
    """

    number: int
    axiom: Axiom
    operators: frozenset[str]
    variables: Variables
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """An axiom tried at one of its triggers."""

    axiom: AxiomPattern
    trigger: Trigger


def variables_in(*terms: Term) -> Variables:
    """The variables of some terms, sorted."""
    names = variables_of(*terms)
    params = tuple(sorted(name for name in names if name.startswith("_")))
    return Variables(tuple(sorted(names - set(params))), params)


def trigger_of(term: Apply, variables: Variables | None = None) -> Trigger:
    """A term as a pattern to be looked for."""
    own = variables_in(term) if variables is None else variables
    repeated = any(times > 1 for times in Counter(_leaves(term)).values())
    return Trigger(_node_pattern(term, own), own, _height(term) - 1 + repeated)


def _pattern(term: Term, variables: Variables) -> Pattern:
    if isinstance(term, Input):
        return variables.tensors.index(term.name)
    return _node_pattern(term, variables)


def _node_pattern(term: Apply, variables: Variables) -> NodePattern:
    args = tuple(_pattern(arg, variables) for arg in term.args)
    return NodePattern(next(_NUMBERS), term.operator, term.params, args)


def _height(term: Term) -> int:
    if isinstance(term, Input):
        return 0
    return 1 + max((_height(arg) for arg in term.args), default=0)


def _leaves(term: Term) -> list[str]:
    if isinstance(term, Input):
        return [term.name]
    return [name for arg in term.args for name in _leaves(arg)]


def _ways(axiom: Axiom) -> tuple[tuple[int, Way], ...]:
    """An axiom at every trigger, with the number of operators that the sides have more than it."""
    left, right = axiom.rule.left[0], axiom.rule.right[0]
    variables = variables_in(left, right)
    sides = (_pattern(left, variables), _pattern(right, variables))
    operators = operator_names(left, right)
    pattern = AxiomPattern(next(_NUMBERS), axiom, operators, variables, *sides)
    largest = max(len(applications(side)) for side in (left, right))
    return tuple(
        (largest - len(applications(each)), Way(pattern, trigger_of(each, variables)))
        for each in axiom.triggers
        if isinstance(each, Apply)
    )


_KEPT = 20_000
_known: dict[int, tuple[Axiom, tuple[tuple[int, Way], ...]]] = {}


def ways_of(axioms: Iterable[Axiom]) -> tuple[Way, ...]:
    """Every axiom at every trigger, those that shrink terms first.

    What was made for an axiom is kept by its identity: comparing axioms takes longer.
    """
    found: list[tuple[int, Way]] = []
    for axiom in axioms:
        known = _known.get(id(axiom))
        if known is None:
            if len(_known) >= _KEPT:
                _known.clear()
            known = _known[id(axiom)] = (axiom, _ways(axiom))
        found += known[1]
    found.sort(key=lambda entry: entry[0])
    return tuple(way for _, way in found)
