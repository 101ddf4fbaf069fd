"""Prove by saturation: apply axioms wherever they match until both sides are known to be equal.

Bounded by counts alone, so that the answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.base import InternalError
from tensorwright.rewrite.axioms import Axiom
from tensorwright.rewrite.dims import Shape
from tensorwright.rewrite.egraph.egraph import Head, Id
from tensorwright.rewrite.egraph.matching import Match, Value
from tensorwright.rewrite.egraph.patterns import AxiomPattern, Pattern, Way, ways_of
from tensorwright.rewrite.egraph.typed_graph import Binding, TypedGraph
from tensorwright.rewrite.prove.problem import Problem

__all__ = ["Application", "Limits", "Saturation", "Search", "saturate"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When a saturation stops: rounds, nodes, and matches of one axiom at one trigger a round."""

    rounds: int = 8
    nodes: int = 6000
    matches: int = 400


@dataclass(frozen=True, slots=True)
class Application:
    """An instance of an axiom: what its variables stood for, and the two equal nodes."""

    axiom: Axiom
    binding: Binding
    left: Id
    right: Id


@dataclass(frozen=True, slots=True)
class Saturation:
    """The result.

    graph         the e-graph, with a node for each root
    roots         (left, right) nodes, in order
    applications  the reasons that links of proofs name by their number
    is_proved     whether each pair of roots is equal
    is_complete   whether nothing was left to do (else a limit was reached, or all was proved)
    """

    graph: TypedGraph
    roots: tuple[tuple[Id, Id], ...]
    applications: tuple[Application, ...]
    is_proved: bool
    is_complete: bool


Node: TypeAlias = "tuple[Head, tuple[Node | int, ...]]"
"""What is to be built: a head over the places of tensor variables and what was built before."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What an axiom builds for given parameters and shapes: the same for all tensors of them."""

    left: Node | int
    right: Node | int


class Search:
    """Applies axioms round by round to a graph, whose terms may come from anywhere.

    among    axioms of these operators alone are used; None for all
    without  the name of axioms that are not used
    """

    def __init__(
        self,
        graph: TypedGraph,
        axioms: Sequence[Axiom],
        limits: Limits,
        among: frozenset[str] | None = None,
        without: str = "",
    ) -> None:
        self.graph = graph
        self.ways = [
            way
            for way in ways_of(axioms)
            if way.axiom.axiom.name != without and (among is None or way.axiom.operators <= among)
        ]
        self.limits = limits
        self.applications: list[Application] = []
        self._since = [0] * len(self.ways)
        self._done: set[tuple[object, ...]] = set()
        self._plans: dict[tuple[object, ...], _Plan | None] = {}
        self._fresh: dict[tuple[int, int, Id], bool] = {}

    def round(self, goal: tuple[tuple[Id, Id], ...]) -> bool:
        """Apply every axiom once wherever something new matches; whether anything changed."""
        graph = self.graph.graph
        self._fresh.clear()
        found = [(way, self._matches(place, way)) for place, way in enumerate(self.ways)]
        graph.clock += 1
        changed = False
        for way, matches in found:
            for match in matches:
                changed |= self._apply(way.axiom, match)
            if len(graph) > self.limits.nodes or self.is_proved(goal):
                return False
        return changed

    def is_proved(self, goal: tuple[tuple[Id, Id], ...]) -> bool:
        """Whether there is a goal and each of its pairs is equal."""
        return bool(goal) and all(self.graph.graph.are_equal(left, right) for left, right in goal)

    def _matches(self, place: int, way: Way) -> list[Match]:
        """The new matches; those beyond the limit are left for the next round."""
        graph = self.graph.graph
        since = self._since[place]
        found: list[Match] = []
        for name in graph.with_operator(way.trigger.pattern.operator):
            if graph.born(name) < since and not self._is_fresh(name, way.trigger.depth, since):
                continue
            for match in self.graph.matcher.at(way.trigger, name):
                key = (way.axiom.number, match.nodes, match.values, match.waiting)
                if key in self._done:
                    continue
                self._done.add(key)
                found.append(match)
                if len(found) >= self.limits.matches:
                    return found
        self._since[place] = graph.clock + 1
        return found

    def _is_fresh(self, name: Id, depth: int, since: int) -> bool:
        """Whether a class below a node has changed, so many levels down."""
        if depth == 0:
            return False
        key = (since, depth, name)
        known = self._fresh.get(key)
        if known is None:
            self._fresh[key] = False
            graph = self.graph.graph
            known = self._fresh[key] = any(
                graph.changed(leader) >= since
                or any(self._is_fresh(each, depth - 1, since) for each in graph.members(leader))
                for leader in map(graph.find, graph.children(name))
            )
        return known

    def _apply(self, axiom: AxiomPattern, match: Match) -> bool:
        shapes = tuple(self.graph.shape_number(node) for node in match.nodes)
        key = (axiom.number, match.values, match.waiting, shapes)
        if key not in self._plans:
            self._plans[key] = self._plan(axiom, match, shapes)
        plan = self._plans[key]
        if plan is None:
            return False
        left, right = self._built(plan.left, match), self._built(plan.right, match)
        if not self.graph.graph.union(left, right, len(self.applications)):
            return False
        binding = self.graph.binding(axiom.variables, match)
        self.applications.append(Application(axiom.axiom, binding, left, right))
        return True

    def _plan(self, axiom: AxiomPattern, match: Match, shapes: tuple[int, ...]) -> _Plan | None:
        """What is to be built; None where the axiom does not apply."""
        graph = self.graph
        values = {
            name: graph.matcher.value(number)
            for name, number in zip(axiom.variables.params, match.values, strict=True)
        }
        named = {
            name: graph.shape_at(number)
            for name, number in zip(axiom.variables.tensors, shapes, strict=True)
        }
        if any(graph.size_at(size, values, named) != value for size, value in match.waiting):
            return None
        if not all(graph.holds_at(fact, values, named) for fact in axiom.axiom.rule.condition):
            return None
        left = self._planned(axiom.left, values, named, shapes)
        right = self._planned(axiom.right, values, named, shapes)
        if left is None or right is None or not graph.are_equal_shapes(left[1], right[1]):
            return None
        return _Plan(left[0], right[0])

    def _planned(
        self,
        pattern: Pattern,
        values: Mapping[str, Value],
        named: Mapping[str, Shape],
        shapes: tuple[int, ...],
    ) -> tuple[Node | int, int] | None:
        """What a pattern becomes, and the number of its shape; None where it may be ill-typed."""
        if isinstance(pattern, int):
            return pattern, shapes[pattern]
        args: list[Node | int] = []
        below: list[int] = []
        for arg in pattern.args:
            found = self._planned(arg, values, named, shapes)
            if found is None:
                return None
            args.append(found[0])
            below.append(found[1])
        params = self.graph.params_at(pattern.params, values, named)
        if params is None:
            return None
        head = self.graph.graph.head(pattern.operator, params)
        shape = self.graph.result(head, tuple(below))
        return None if shape is None else ((head, tuple(args)), shape)

    def _built(self, node: Node | int, match: Match) -> Id:
        if isinstance(node, int):
            return match.nodes[node]
        head, args = node
        name = self.graph.put(head, tuple(self._built(arg, match) for arg in args))
        if name is None:
            raise InternalError(
                stage="rules", where="saturation", reason="a planned term is ill-typed"
            )
        return name


def saturate(
    problem: Problem,
    axioms: Sequence[Axiom],
    limits: Limits | None = None,
    among: frozenset[str] | None = None,
    without: str = "",
) -> Saturation | None:
    """Look for a proof; None where the two sides need not have the same shape.

    among    axioms of these operators alone are used; None for all
    without  the name of axioms that are not used
    """
    bounds = Limits() if limits is None else limits
    graph = TypedGraph(dict(problem.shapes), problem.known)
    goal: list[tuple[Id, Id]] = []
    for left, right in zip(problem.rule.left, problem.rule.right, strict=True):
        ends = (graph.add(left), graph.add(right))
        if ends[0] is None or ends[1] is None or not graph.have_equal_shapes(ends[0], ends[1]):
            return None
        goal.append((ends[0], ends[1]))
    search = Search(graph, axioms, bounds, among, without)
    pairs = tuple(goal)
    is_complete = False
    for _ in range(bounds.rounds):
        if search.is_proved(pairs):
            break
        if not search.round(pairs):
            is_complete = len(graph.graph) <= bounds.nodes
            break
    return Saturation(
        graph, pairs, tuple(search.applications), search.is_proved(pairs), is_complete
    )
