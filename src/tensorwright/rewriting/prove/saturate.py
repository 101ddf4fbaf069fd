"""Prove by saturation: axioms are rewrites, and both sides of a rule are to become equal.

goal     relu(transpose[1, 0](transpose[1, 0](?x))) = relu(?x)
axioms   transpose-transpose, with 600 others
proof    both sides are in one class after one round, because of an instance inside relu

Proofs for people and for Z3: chains of terms, and the instances of axioms.

split0[0, x.0](concat[0](?x, ?y))
by split-of-concat                 the instance: _axis = 0, ?x and ?y of rank 2
?x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tensorwright.expr import IndexExpr
from tensorwright.rewriting import egraph
from tensorwright.rewriting.assumptions import Assumptions
from tensorwright.rewriting.axioms import Axiom
from tensorwright.rewriting.dims import Extent, Shape, Size, atoms_of, value_of
from tensorwright.rewriting.prove.instances import Instance
from tensorwright.rewriting.prove.problem import Problem
from tensorwright.rewriting.terms import Input, Param, Term, operator_names, with_params


class ProofSearch:
    """The e-graph of a problem, in which rewrites make terms equal."""

    def __init__(self, problem: Problem, limits: egraph.Limits) -> None:
        self.analysis = egraph.ShapeAnalysis(dict(problem.shapes), problem.assumptions)
        self.graph: egraph.EGraph[Shape] = egraph.EGraph(self.analysis)
        self.runner = egraph.Runner(self.graph, limits)
        for name, _ in problem.shapes:
            self.graph.add(Input(name))

    def goal(self, left: Sequence[Term], right: Sequence[Term]) -> egraph.Goal | None:
        """The nodes of two sides, added where they are missing; None where they may not fit."""
        pairs: list[tuple[egraph.Id, egraph.Id]] = []
        for one, other in zip(left, right, strict=True):
            ends = (self.graph.add(one), self.graph.add(other))
            if ends[0] is None or ends[1] is None:
                return None
            if not self.analysis.may_merge(self.graph.data(ends[0]), self.graph.data(ends[1])):
                return None
            pairs.append((ends[0], ends[1]))
        return tuple(pairs)


@dataclass(frozen=True, slots=True)
class Saturation:
    """The result for a problem: the runner with its graph, the goal, why it stopped."""

    runner: egraph.Runner[Shape]
    goal: egraph.Goal
    stop: egraph.StopReason

    @property
    def is_proved(self) -> bool:
        """Whether each pair of roots is equal."""
        return isinstance(self.stop, egraph.GoalReached)


@lru_cache(maxsize=16)
def axiom_rewrites(axioms: tuple[Axiom, ...]) -> tuple[egraph.Rewrite, ...]:
    """Axioms as rewrites, each tried at its triggers; axioms are told apart by identity."""
    return tuple(
        egraph.rewrite_of(each.rule, [(term,) for term in each.triggers]) for each in axioms
    )


@lru_cache(maxsize=1024)
def within_reach(
    axioms: tuple[Axiom, ...], operators: frozenset[str]
) -> tuple[egraph.Rewrite, ...]:
    """The axioms that may match terms reachable from some operators."""
    rewrites = axiom_rewrites(axioms)
    waiting = list(range(len(rewrites)))
    triggers = _trigger_operators(axioms)
    reach = operators
    reached: set[int] = set()
    while True:
        now = [number for number in waiting if any(own <= reach for own in triggers[number])]
        if not now:
            return tuple(rewrites[number] for number in sorted(reached))
        reached.update(now)
        waiting = [number for number in waiting if number not in reached]
        reach = reach.union(*(rewrites[number].operators for number in now))


@lru_cache(maxsize=16)
def _trigger_operators(axioms: tuple[Axiom, ...]) -> tuple[tuple[frozenset[str], ...], ...]:
    return tuple(
        tuple(
            operator_names(*(pattern.term for pattern in trigger.patterns))
            for trigger in rewrite.triggers
        )
        for rewrite in axiom_rewrites(axioms)
    )


def saturate(
    problem: Problem,
    axioms: Sequence[Axiom],
    limits: egraph.Limits | None = None,
    among: frozenset[str] | None = None,
) -> Saturation | None:
    """Look for a proof; None where the two sides need not have the same shape.

    among   axioms of these operators alone are used; None for all
    """
    search = ProofSearch(problem, limits or egraph.Limits())
    goal = search.goal(problem.rule.left, problem.rule.right)
    if goal is None:
        return None
    own = operator_names(*problem.rule.roots)
    used = [
        each
        for each in within_reach(tuple(axioms), own)
        if among is None or each.operators <= among
    ]
    return Saturation(search.runner, goal, search.runner.run(used, goal))


def instances_of(proof: Saturation) -> tuple[Instance, ...]:
    """The axiom instances of the proof, in the order in which they were found."""
    graph = proof.runner.graph

    def instance(application: egraph.Application) -> Instance:
        nodes = sorted(application.nodes.items())
        return Instance(
            rewrite=application.rewrite,
            ranks=tuple((name, len(graph.data(node))) for name, node in nodes),
            args=tuple((name, graph.term(node)) for name, node in nodes),
            params=tuple(sorted(application.params.items(), key=lambda item: item[0])),
            left=graph.term(application.left),
            right=graph.term(application.right),
        )

    return tuple(map(instance, egraph.used_applications(proof.runner, proof.goal)))


def chains_of(
    runner: egraph.Runner[Any], goal: egraph.Goal, assumptions: Assumptions
) -> tuple[egraph.Chain, ...]:
    """For each pair of roots the chain of terms from the left one to the right one."""
    readable = _Readable(assumptions)
    return tuple(
        tuple(
            replace(step, before=readable.term(step.before), after=readable.term(step.after))
            for step in egraph.chain_between(runner, left, right)
        )
        for left, right in goal
    )


class _Readable:
    """Replaces the fresh extents that solving introduced by extents of inputs."""

    def __init__(self, assumptions: Assumptions) -> None:
        self._whole: dict[Param, Param] = {}
        self._parts: dict[Extent, Size] = {}
        for extent, size in assumptions.quotients:
            mark = f"_{extent.name}{extent.axis}_"
            own = next((e for e in atoms_of(size) if e.name.startswith(mark)), None)
            if own is not None and isinstance(size, IndexExpr):
                self._whole[size] = extent
                self._parts[own] = extent // (size // own)

    def term(self, term: Term) -> Term:
        return with_params(term, lambda param: (self._param(param),))

    def _param(self, param: Param) -> Param:
        if not isinstance(param, IndexExpr):
            return param
        whole = self._whole.get(param)
        if whole is not None:
            return whole
        parts = dict(self._parts)  # each is put in once: they may contain each other
        while any(extent in parts for extent in atoms_of(param)):
            values = {each: parts.pop(each, each) for each in atoms_of(param)}
            param = value_of(param, values)
        return param
