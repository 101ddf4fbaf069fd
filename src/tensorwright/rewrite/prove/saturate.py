"""Prove by saturation: apply axioms wherever they match until both sides are known to be equal.

Bounded by counts alone, so that the answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tensorwright.rewrite.axioms import Axiom
from tensorwright.rewrite.prove.egraph import Id
from tensorwright.rewrite.prove.problem import Problem
from tensorwright.rewrite.prove.typed_graph import Binding, TypedGraph
from tensorwright.rewrite.terms import Apply, Term, applications

__all__ = ["Application", "Limits", "Saturation", "saturate"]


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


@dataclass(frozen=True, slots=True)
class _Way:
    """An axiom tried at one of its triggers."""

    axiom: Axiom
    trigger: Apply
    number: int


def _ways(axioms: Iterable[Axiom]) -> tuple[_Way, ...]:
    """Every axiom at every trigger, those that shrink terms first."""
    found = [
        _Way(axiom, trigger, number)
        for number, axiom in enumerate(axioms)
        for trigger in axiom.triggers
        if isinstance(trigger, Apply)
    ]
    found.sort(key=lambda way: (_growth(way), way.number))
    return tuple(found)


def _growth(way: _Way) -> int:
    sides = (*way.axiom.rule.left, *way.axiom.rule.right)
    return max(len(applications(side)) for side in sides) - len(applications(way.trigger))


class _Search:
    def __init__(self, graph: TypedGraph, axioms: Iterable[Axiom], limits: Limits) -> None:
        self.graph = graph
        self.ways = _ways(axioms)
        self.limits = limits
        self.applications: list[Application] = []
        self._done: set[tuple[object, ...]] = set()

    def round(self, goal: tuple[tuple[Id, Id], ...]) -> bool:
        """Apply every axiom once wherever it matches; whether anything changed."""
        changed = False
        found = [(way, tuple(self._matches(way))) for way in self.ways]
        for way, bindings in found:
            for binding in bindings:
                changed |= self._apply(way.axiom, binding)
            if len(self.graph.graph) > self.limits.nodes or self.is_proved(goal):
                return False
        return changed

    def is_proved(self, goal: tuple[tuple[Id, Id], ...]) -> bool:
        return all(self.graph.graph.are_equal(left, right) for left, right in goal)

    def _matches(self, way: _Way) -> Iterator[Binding]:
        count = 0
        for name in self.graph.graph.with_operator(way.trigger.operator):
            for binding in self.graph.matches(way.trigger, name):
                key = self._key(way.number, binding)
                if key in self._done:
                    continue
                self._done.add(key)
                yield binding
                count += 1
                if count >= self.limits.matches:
                    return

    def _key(self, number: int, binding: Binding) -> tuple[object, ...]:
        find = self.graph.graph.find
        nodes = tuple((name, find(node)) for name, node in sorted(binding.nodes.items()))
        return (number, nodes, tuple(sorted(binding.params.items(), key=lambda item: item[0])))

    def _apply(self, axiom: Axiom, binding: Binding) -> bool:
        graph = self.graph
        if not all(graph.holds(fact, binding) for fact in axiom.rule.condition):
            return False
        sides: list[Id] = []
        for term in (axiom.rule.left[0], axiom.rule.right[0]):
            name = _added(graph, term, binding)
            if name is None:
                return False
            sides.append(name)
        left, right = sides
        if graph.graph.are_equal(left, right) or not graph.have_equal_shapes(left, right):
            return False
        graph.graph.union(left, right, len(self.applications))
        self.applications.append(Application(axiom, binding, left, right))
        return True


def _added(graph: TypedGraph, term: Term, binding: Binding) -> Id | None:
    return graph.add(term, binding)


def saturate(
    problem: Problem, axioms: Iterable[Axiom], limits: Limits | None = None
) -> Saturation | None:
    """Look for a proof; None where the two sides need not have the same shape."""
    bounds = Limits() if limits is None else limits
    graph = TypedGraph(dict(problem.shapes), problem.known)
    goal: list[tuple[Id, Id]] = []
    for left, right in zip(problem.rule.left, problem.rule.right, strict=True):
        ends = (graph.add(left), graph.add(right))
        if ends[0] is None or ends[1] is None or not graph.have_equal_shapes(ends[0], ends[1]):
            return None
        goal.append((ends[0], ends[1]))
    search = _Search(graph, axioms, bounds)
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
