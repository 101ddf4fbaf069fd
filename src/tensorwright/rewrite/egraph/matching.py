"""Find the instances of patterns in an e-graph.

What a head (an operator with its parameters) makes of a pattern's parameters is found out once.
A match is three tuples: the classes of the tensor variables, the values of the parameter variables
(numbered, so that they compare fast), and the sizes that are known only when all is bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.rewrite.dims import Dim
from tensorwright.rewrite.egraph.egraph import EGraph, Head, Id
from tensorwright.rewrite.egraph.patterns import NodePattern, Trigger, Variables
from tensorwright.rewrite.terms import Param

__all__ = ["Match", "Matcher", "Value"]

Value: TypeAlias = "Param | tuple[Param, ...]"
_FREE = Id(-1)

Waiting: TypeAlias = tuple[tuple[Dim, Param], ...]
Partial: TypeAlias = tuple[tuple[Id, ...], tuple[int, ...], Waiting]


@dataclass(frozen=True, slots=True)
class Match:
    """What the variables of a pattern stand for, by their places.

    values   numbers of parameter values, see `Matcher.value`
    waiting  sizes in the pattern with the parameters that they must be equal to
    """

    nodes: tuple[Id, ...]
    values: tuple[int, ...]
    waiting: Waiting


Fitted: TypeAlias = "tuple[tuple[tuple[int, int], ...], Waiting]"
"""(place, number of the value) for each parameter variable, and what waits."""


class Matcher:
    """Looks for patterns in a graph."""

    def __init__(self, graph: EGraph) -> None:
        self._graph = graph
        self._numbers: dict[Value, int] = {}
        self._values: list[Value] = []
        self._fitted: dict[tuple[int, Head], Fitted | None] = {}

    def number(self, value: Value) -> int:
        """The number of a parameter, or of several."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self._values)
            self._values.append(value)
        return known

    def value(self, number: int) -> Value:
        """The parameter of this number."""
        return self._values[number]

    def at(self, trigger: Trigger, name: Id) -> Iterator[Match]:
        """The ways in which a node is an instance of a pattern."""
        variables = trigger.variables
        start = ((_FREE,) * len(variables.tensors), (-1,) * len(variables.params), ())
        for nodes, values, waiting in self._node(trigger.pattern, variables, name, start):
            yield Match(nodes, values, waiting)

    def _class(
        self, pattern: NodePattern, variables: Variables, name: Id, partial: Partial
    ) -> list[Partial]:
        found: list[Partial] = []
        for member in self._graph.members(name, pattern.operator):
            found += self._node(pattern, variables, member, partial)
        return found

    def _node(
        self, pattern: NodePattern, variables: Variables, name: Id, partial: Partial
    ) -> list[Partial]:
        graph = self._graph
        head = graph.head_of(name)
        key = (pattern.number, head)
        if key not in self._fitted:
            self._fitted[key] = self._fit(pattern, variables, head)
        fitted = self._fitted[key]
        if fitted is None:
            return []
        nodes, values, waiting = partial
        for place, value in fitted[0]:
            bound = values[place]
            if bound < 0:
                values = (*values[:place], value, *values[place + 1 :])
            elif bound != value:
                return []
        found: list[Partial] = [(nodes, values, waiting + fitted[1])]
        for arg, child in zip(pattern.args, graph.children(name), strict=True):
            if isinstance(arg, int):
                found = _bound(found, arg, graph.find(child))
            else:
                found = [
                    more for each in found for more in self._class(arg, variables, child, each)
                ]
            if not found:
                break
        return found

    def _fit(self, pattern: NodePattern, variables: Variables, head: Head) -> Fitted | None:
        """Bind parameter variables; a last variable takes all that are left; sizes wait."""
        operator, actual = self._graph.parts(head)
        wanted = pattern.params
        if operator != pattern.operator or len(wanted) > len(actual):
            return None
        if not wanted and actual:
            return None
        bound: dict[int, int] = {}
        later: list[tuple[Dim, Param]] = []
        for place, param in enumerate(wanted):
            value: Value = actual[place]
            if place == len(wanted) - 1 and len(actual) > len(wanted):
                value = actual[place:]
            if isinstance(param, str) and param.startswith("_"):
                number = self.number(value)
                if bound.setdefault(variables.params.index(param), number) != number:
                    return None
            elif isinstance(value, tuple):
                return None
            elif isinstance(param, Dim):
                later.append((param, value))
            elif param != value:
                return None
        return tuple(bound.items()), tuple(later)


def _bound(found: list[Partial], place: int, leader: Id) -> list[Partial]:
    """The partial matches in which a tensor variable is, or becomes, a class."""
    kept: list[Partial] = []
    for partial in found:
        nodes = partial[0]
        if nodes[place] == _FREE:
            nodes = (*nodes[:place], leader, *nodes[place + 1 :])
            kept.append((nodes, partial[1], partial[2]))
        elif nodes[place] == leader:
            kept.append(partial)
    return kept
