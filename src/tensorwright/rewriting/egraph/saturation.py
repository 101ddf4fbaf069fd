"""Apply rewrites to an e-graph until a goal is reached, nothing new is found or a limit is reached.

    goal      relu(relu(relu(?x))) = relu(?x)        rewrite: relu(relu(?x)) -> relu(?x)
    round 1   the rewrite matches at the two outer nodes: both are equal to their arguments
    round 2   is not needed: GoalReached(rounds=1, nodes=4)

All limits are counts, so that the answer is the same on every machine.

Source:  Tate et al., Equality saturation, POPL 2009; Willsey et al., egg, POPL 2021;
         Yang et al., TENSAT, MLSys 2021 (rewrites of several roots).

Why two nodes are equal: the applications of a proof, and the chain of terms.

ewadd(relu(relu(?x)), ?y)
by relu-relu                       an instance of a rewrite inside an argument
ewadd(relu(?x), ?y)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias

from tensorwright.processes import never
from tensorwright.rewriting.egraph.analysis import Applies, Data, Scope, Value
from tensorwright.rewriting.egraph.egraph import EGraph, Head, Id
from tensorwright.rewriting.egraph.matching import Bound, Match, Matcher, Merge, instance_params
from tensorwright.rewriting.egraph.patterns import Pattern, Rewrite
from tensorwright.rewriting.egraph.searching import GraphIndex, Search, searches_for
from tensorwright.rewriting.terms import Apply, Term


@dataclass(frozen=True, slots=True)
class Limits:
    """When a saturation stops: rounds, nodes, and matches of one rewrite at one trigger a round."""

    rounds: int = 8
    nodes: int = 6000
    matches: int = 400


@dataclass(frozen=True, slots=True)
class GoalReached:
    """All pairs of the goal are equal."""

    rounds: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Saturated:
    """The rewrites find nothing new."""

    rounds: int
    nodes: int


@dataclass(frozen=True, slots=True)
class BudgetSpent:
    """A limit was reached; `limit` is its name in `Limits`."""

    limit: str
    rounds: int
    nodes: int


StopReason: TypeAlias = GoalReached | Saturated | BudgetSpent

Goal: TypeAlias = tuple[tuple[Id, Id], ...]
"""Pairs of nodes that are to become equal; empty for no goal."""


@dataclass(frozen=True, slots=True)
class Application:
    """An instance of a rewrite: the values of its variables, and two nodes that it made equal."""

    rewrite: Rewrite
    nodes: dict[str, Id]
    params: dict[str, Value]
    left: Id
    right: Id


Template: TypeAlias = "int | tuple[Head, tuple[Template, ...]]"
"""A term to be built: the index of a tensor variable, or a head over templates."""
Plan: TypeAlias = tuple[tuple[Template, Template], ...]
"""The pairs of nodes that an application makes equal."""


class Runner(Generic[Data]):
    """Applies rewrites to one graph, whose terms may come from anywhere.

    is_open       whether rewrites are tried at a class with these data; everywhere where None
    should_stop   asked between rewrites; it ends a round early
    applications  the reasons of the graph's unions, by their numbers
    matcher, index   those of the graph
    """

    def __init__(
        self,
        graph: EGraph[Data],
        limits: Limits,
        is_open: Callable[[Data], bool] | None = None,
        should_stop: Callable[[], bool] = never,
    ) -> None:
        self.graph = graph
        self.limits = limits
        self._should_stop = should_stop
        self.applications: list[Application] = []
        self.matcher = Matcher(graph)
        self.index = GraphIndex(graph, self.matcher, is_open)
        self._plans: dict[tuple[object, ...], Plan | None] = {}
        self._merged: set[Id] = set()

    def run(self, rewrites: Iterable[Rewrite], goal: Goal = ()) -> StopReason:
        """Apply rewrites round by round, all of them anew."""
        phases = searches_for(self.index, rewrites)
        rounds = 0
        is_changed = True
        while is_changed and rounds < self.limits.rounds and not self._is_reached(goal):
            rounds += 1
            is_changed = self._round(phases, goal) and not self._is_full()
        if self._is_reached(goal):
            return GoalReached(rounds, len(self.graph))
        if self._is_full():
            return BudgetSpent("nodes", rounds, len(self.graph))
        if is_changed:
            return BudgetSpent("rounds", rounds, len(self.graph))
        if any(search.is_cut for phase in phases for search in phase):
            return BudgetSpent("matches", rounds, len(self.graph))
        return Saturated(rounds, len(self.graph))

    def merge(self, merges: Iterable[Merge]) -> bool:
        """Apply merges to neighbours in their groups, and along chains; whether anything changed.

        The result of a merge is not a member of a group.
        """
        is_changed = False
        for merge in merges:
            if self._should_stop():
                break
            merged = set(map(self.graph.find, self._merged))
            groups: dict[tuple[int, ...], dict[Id, Bound]] = {}
            for leader, bound in self.index.options(merge.root):
                if leader not in merged:
                    key = tuple(bound[name] for name in merge.shared)
                    groups.setdefault(key, {}).setdefault(leader, bound)
            for group in groups.values():
                is_changed |= self._merge_group(merge, list(group.values()))
            self.graph.clock += 1
            if self._is_full():
                break
        return is_changed

    def _merge_group(self, merge: Merge, members: list[Bound]) -> bool:
        """Merge chains of members; members that cannot join a chain are tried with each other."""
        is_changed = False
        while len(members) > 1 and not self._is_full():
            chain = last = members[0]
            others: list[Bound] = []
            for member in members[1:]:
                merged = self._merge_pair(merge, chain, member)
                if merged is None:
                    others.append(member)
                    continue
                if last is not chain:
                    self._merge_pair(merge, last, member)
                chain, last, is_changed = merged, member, True
            members = others
        return is_changed

    def _merge_pair(self, merge: Merge, one: Bound, other: Bound) -> Bound | None:
        """The merge of two members as a member: its variables; None where they cannot be merged."""
        rewrite = merge.rewrite
        match = merge.match(one, other)
        if self.planned(rewrite, match) is None:
            return None
        self.apply(rewrite, match)
        scope = self.matcher.scope(rewrite.variables, match)
        data = tuple(map(self.graph.data_number, match.nodes))
        template = self._template(merge.merged, scope, data)
        name = None if template is None else self._build(template[0], match)
        if name is None:
            return None
        self._merged.add(name)
        matches = self.matcher.at(merge.root, name)
        return matches[0].bound(merge.root.variables) if matches else None

    def _is_full(self) -> bool:
        return len(self.graph) > self.limits.nodes

    def _is_reached(self, goal: Goal) -> bool:
        return bool(goal) and all(self.graph.are_equal(left, right) for left, right in goal)

    def _round(self, phases: Sequence[Sequence[Search[Data]]], goal: Goal) -> bool:
        """Apply every rewrite once wherever something new matches; whether anything changed.

        Rewrites of several roots come second, after the equalities of the others.
        """
        is_changed = False
        for phase in phases:
            matched: list[tuple[Rewrite, list[Match]]] = []
            for search in phase:
                if self._should_stop():
                    break
                matched.append((search.rewrite, search.matches(self.limits.matches)))
            self.graph.clock += 1
            for rewrite, matches in matched:
                if self._should_stop():
                    return True
                has_one_root = len(rewrite.left) == 1
                for match in matches:
                    is_changed |= self.apply(rewrite, match)
                    if not has_one_root and self._is_full():  # one match adds many nodes
                        return True
                if self._is_full() or self._is_reached(goal):
                    return True
        return is_changed

    def apply(self, rewrite: Rewrite, match: Match) -> bool:
        """Make the sides of a rewrite equal; whether anything changed."""
        plan = self.planned(rewrite, match)
        if plan is None:
            return False
        built = [(self._build(left, match), self._build(right, match)) for left, right in plan]
        is_changed = False
        for left, right in built:
            if left is None or right is None:
                continue
            if self.graph.union(left, right, len(self.applications)):
                nodes = dict(zip(rewrite.variables.tensors, match.nodes, strict=True))
                params = self.matcher.values(rewrite.variables, match)
                self.applications.append(Application(rewrite, nodes, params, left, right))
                is_changed = True
        return is_changed

    def planned(
        self, rewrite: Rewrite, match: Match, data: tuple[int, ...] | None = None
    ) -> Plan | None:
        """The templates for a match; None where the condition is not known to hold, or a side may
        be ill-typed.  Remembered for all nodes that have the same data.

        data   the numbers of those, where the nodes are not of this graph
        """
        if data is None:
            data = tuple(map(self.graph.data_number, match.nodes))
        key = (rewrite.number, match.values, match.sizes, data)
        if key not in self._plans:
            self._plans[key] = self._plan(rewrite, match, data)
        return self._plans[key]

    def _plan(self, rewrite: Rewrite, match: Match, data: tuple[int, ...]) -> Plan | None:
        analysis = self.graph.analysis
        if not self.matcher.sizes_agree(rewrite.variables, match, data):
            return None
        scope = self.matcher.scope(rewrite.variables, match, data)
        if not all(analysis.holds(fact, scope) for fact in rewrite.rule.condition):
            return None
        if analysis.admits(rewrite.rule, scope) is not Applies.YES:
            return None
        plan: list[tuple[Template, Template]] = []
        for one, other in zip(rewrite.left, rewrite.right, strict=True):
            left, right = self._template(one, scope, data), self._template(other, scope, data)
            if left is None or right is None:
                return None
            if not analysis.may_merge(*(self.graph.data_at(side[1]) for side in (left, right))):
                return None
            plan.append((left[0], right[0]))
        return tuple(plan)

    def _template(
        self, pattern: Pattern, scope: Scope[Data], data: tuple[int, ...]
    ) -> tuple[Template, int] | None:
        """The template of a pattern and the number of its data; None where it may be ill-typed."""
        if isinstance(pattern, int):
            return pattern, data[pattern]
        args: list[Template] = []
        below: list[int] = []
        for arg in pattern.args:
            template = self._template(arg, scope, data)
            if template is None:
                return None
            args.append(template[0])
            below.append(template[1])
        params = instance_params(pattern.params, scope, self.graph.analysis)
        if params is None:
            return None
        head = self.graph.head(pattern.operator, params)
        made = self.graph.made(head, tuple(below))
        return None if made is None else ((head, tuple(args)), made)

    def _build(self, template: Template, match: Match) -> Id | None:
        """The node of a template; None where a class has other data than was planned with."""
        if isinstance(template, int):
            return match.nodes[template]
        head, args = template
        children: list[Id] = []
        for arg in args:
            child = self._build(arg, match)
            if child is None:
                return None
            children.append(child)
        return self.graph.put(head, tuple(children))


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a chain: the term before, the rule and its direction, the term after.

    forward  whether the rule was read from left to right
    """

    before: Term
    rule: str
    forward: bool
    after: Term


Chain: TypeAlias = tuple[Step, ...]


def used_applications(runner: Runner[Any], goal: Goal) -> tuple[Application, ...]:
    """The applications that the equality of all pairs needs, in the order in which they came."""
    graph = runner.graph
    used: set[int] = set()
    seen: set[tuple[Id, Id]] = set()
    waiting = list(goal)
    while waiting:
        left, right = waiting.pop()
        if left == right or (left, right) in seen:
            continue
        seen.add((left, right))
        for link in graph.explain(left, right):
            if link.reason is not None:
                used.add(link.reason)
                continue
            waiting.extend(zip(graph.children(link.left), graph.children(link.right), strict=True))
    return tuple(runner.applications[number] for number in sorted(used))


def chain_between(runner: Runner[Any], left: Id, right: Id) -> Iterator[Step]:
    """The steps from the term of a node to that of an equal one."""
    graph = runner.graph
    for link in graph.explain(left, right) if left != right else ():
        if link.reason is None:
            yield from _inside(runner, link.left, link.right)
            continue
        application = runner.applications[link.reason]
        yield Step(
            before=graph.term(link.left),
            rule=application.rewrite.name,
            forward=link.left == application.left,
            after=graph.term(link.right),
        )


def _inside(runner: Runner[Any], left: Id, right: Id) -> Iterator[Step]:
    """The steps inside the arguments of two congruent nodes, one argument after the other."""
    graph = runner.graph
    operator, params = graph.parts(graph.head_of(left))
    ends = tuple(zip(graph.children(left), graph.children(right), strict=True))
    args = [graph.term(child) for child, _ in ends]
    for number, (one, two) in enumerate(ends):
        for step in chain_between(runner, one, two):
            before, after = (
                Apply(operator, params, (*args[:number], term, *args[number + 1 :]))
                for term in (step.before, step.after)
            )
            yield replace(step, before=before, after=after)
        args[number] = graph.term(two)
