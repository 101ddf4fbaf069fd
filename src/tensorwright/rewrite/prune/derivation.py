"""What follows from a set of rules, by equality saturation of well-typed terms.

A rule of the set is applied only where its condition is known to hold and all its terms are
well-typed.  All bounds are counts, so the answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from tensorwright.rewrite.axioms import Axiom
from tensorwright.rewrite.egraph.egraph import Id
from tensorwright.rewrite.egraph.typed_graph import Binding, TypedGraph
from tensorwright.rewrite.prove import Limits, Problem, Step, problems_of
from tensorwright.rewrite.prove.explain import chains_of, used_applications
from tensorwright.rewrite.prove.saturate import Application, Saturation, Search
from tensorwright.rewrite.prune.ruleset import (
    Joint,
    RuleSet,
    larger_side,
    usable_directions,
)
from tensorwright.rewrite.terms import Apply, Rule, Term, operator_names

__all__ = ["DERIVE_LIMITS", "PRUNE_LIMITS", "QUICK_LIMITS", "Derived", "derive", "same_power"]

QUICK_LIMITS = Limits(rounds=2, nodes=300, matches=100)
PRUNE_LIMITS = Limits(rounds=6, nodes=1500, matches=200)
DERIVE_LIMITS = Limits(rounds=8, nodes=4000, matches=400)

Pairs: TypeAlias = tuple[tuple[Id, Id], ...]
Option: TypeAlias = tuple[Id, dict[str, Id]]
"""A class at which a pattern matches, and what its inputs stand for there."""
Table: TypeAlias = tuple[tuple[str, ...], dict[tuple[Id, ...], list[Option]]]
"""Options of a pattern by what the names stand for that it shares with those before."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A rule follows from others.

    names   of those that the derivation uses, sorted
    chains  for each pair of roots, the terms from left to right, at the first ranks
    """

    names: tuple[str, ...]
    chains: tuple[tuple[Step, ...], ...]


def derive(rule: Rule, rules: RuleSet, limits: Limits = DERIVE_LIMITS) -> Derived | None:
    """How a rule follows from others; None where that was not found.

    Both sides are there from the start, and every rule is used wherever it fits.  Rules of one root
    come first: with others, what is equal is often told by way of terms that neither side needs.
    """

    def at_one(problem: Problem, some: RuleSet) -> Derived | None:
        plain = _meeting(problem, some.of_one_root(), limits, is_told=True)
        return plain or _meeting(problem, some, limits, is_told=True)

    return _at_all_ranks(rule, rules, at_one)


def same_power(rule: Rule, rules: RuleSet, limits: Limits = PRUNE_LIMITS) -> tuple[str, ...] | None:
    """The names of the rules that say and rewrite all that a rule does; None where they may not.

    A rule that can be applied in one direction follows from others as an equality, and so does one
    of a single root.  One of several roots must, besides, be found from each of its sides alone:
    merging two products is not implied by the rules that take a merged product apart, for those do
    not say which products to merge.
    """
    is_joint = len(rule.left) > 1 and all(usable_directions(rule))
    at_one = _both_ways if is_joint else _meeting
    found = _at_all_ranks(rule, rules, lambda problem, some: at_one(problem, some, limits))
    return None if found is None else found.names


def _at_all_ranks(
    rule: Rule, rules: RuleSet, at_one: Callable[[Problem, RuleSet], Derived | None]
) -> Derived | None:
    names: set[str] = set()
    first: Derived | None = None
    stages = _stages(rule, rules)
    for problem in problems_of(rule):
        attempts = (at_one(problem, some) for some in stages)
        found = next((each for each in attempts if each is not None), None)
        if found is None:
            return None
        names.update(found.names)
        first = first or found
    return None if first is None else Derived(tuple(sorted(names)), first.chains)


def _stages(rule: Rule, rules: RuleSet) -> tuple[RuleSet, ...]:
    """Some of the rules, then all: large rules fill the graph, and small ones mostly suffice."""
    own = operator_names(*rule.left, *rule.right)
    sets = (rules.smaller_than(larger_side(rule)), rules.among(own))
    return (*(some for some in sets if len(some) < len(rules)), rules)


def _meeting(
    problem: Problem, rules: RuleSet, limits: Limits, *, is_told: bool = False
) -> Derived | None:
    """Both sides first, then all rules; with the chains of terms if they are to be told."""
    run = _Run(problem, limits)
    goal = run.goal(problem.rule.left, problem.rule.right)
    if goal is None or not run.rounds(rules.axioms, rules.joint, goal):
        return None
    return run.derived(goal) if is_told else Derived(run.names(goal), ())


def _both_ways(problem: Problem, rules: RuleSet, limits: Limits) -> Derived | None:
    """By reversible rules from both sides at once, else from each side alone."""
    sides = (problem.rule.left, problem.rule.right)
    reversible = tuple(each for each in rules.joint if each.is_reversible)
    run = _Run(problem, limits)
    goal = run.goal(*sides)
    if goal is None:
        return None
    if run.rounds(rules.reversible, reversible, goal):
        return Derived(run.names(goal), ())
    names: set[str] = set()
    for start, end in (sides, sides[::-1]):
        run = _Run(problem, limits)
        run.goal(start, start)
        run.rounds(rules.axioms, rules.joint, ())
        goal = run.goal(start, end)
        if goal is None or not run.rounds(rules.reversible, reversible, goal):
            return None
        names.update(run.names(goal))
    return Derived(tuple(sorted(names)), ())


class _Run:
    """One e-graph, on which sets of rules are applied one after the other."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.typed = TypedGraph(dict(problem.shapes), problem.known)
        self.limits = limits
        self.applications: list[Application] = []
        self._known: dict[Apply, tuple[int, list[Option]]] = {}

    def goal(self, left: Sequence[Term], right: Sequence[Term]) -> Pairs | None:
        """The nodes of two sides, added where they are missing; None where they may not fit."""
        found: list[tuple[Id, Id]] = []
        for one, other in zip(left, right, strict=True):
            ends = (self.typed.add(one), self.typed.add(other))
            if ends[0] is None or ends[1] is None:
                return None
            if not self.typed.have_equal_shapes(ends[0], ends[1]):
                return None
            found.append((ends[0], ends[1]))
        return tuple(found)

    def rounds(self, axioms: Sequence[Axiom], joint: Sequence[Joint], goal: Pairs) -> bool:
        """Apply rules until the goal is reached, nothing changes or a limit is; whether it is."""
        search = Search(self.typed, axioms, self.limits)
        search.applications = self.applications
        done: set[tuple[object, ...]] = set()
        for _ in range(self.limits.rounds):
            if search.is_proved(goal):
                return True
            is_changed = search.round(goal)
            is_changed |= self._apply(joint, done)
            if not is_changed or self._is_full():
                break
        return search.is_proved(goal)

    def _is_full(self) -> bool:
        return len(self.typed.graph) > self.limits.nodes

    def _apply(self, joint: Sequence[Joint], done: set[tuple[object, ...]]) -> bool:
        """Find where rules of several roots match, then apply them there."""
        found: list[tuple[Joint, dict[str, Id]]] = []
        for number, each in enumerate(joint):
            for nodes in islice(self._matches(each), self.limits.matches):
                key = (number, *sorted(nodes.items()))
                if key not in done:
                    done.add(key)
                    found.append((each, nodes))
        is_changed = False
        for each, nodes in found:
            if self._is_full():
                break
            is_changed |= self._fire(each.rule, nodes)
        return is_changed

    def _matches(self, joint: Joint) -> Iterator[dict[str, Id]]:
        """What the inputs stand for where all patterns match, at nodes that are not all equal."""
        options = [self._options(pattern) for pattern in joint.patterns]
        if not all(options):
            return
        bound = set(options[0][0][1])
        tables = []
        for some in options[1:]:
            names = some[0][1]
            shared = tuple(name for name in names if name in bound)
            table: dict[tuple[Id, ...], list[Option]] = {}
            for option in some:
                table.setdefault(tuple(option[1][name] for name in shared), []).append(option)
            tables.append((shared, table))
            bound.update(names)
        for root, nodes in options[0]:
            for whole, is_one in _joined(nodes, root, tables):
                if not is_one:
                    yield whole

    def _options(self, pattern: Apply) -> list[Option]:
        """The classes at which a pattern matches with what its inputs stand for there.

        Many joint patterns share one; what was found is good until the graph changes.
        """
        graph = self.typed.graph
        known = self._known.get(pattern)
        if known is None or known[0] != graph.version:
            options = [
                (graph.find(name), match.nodes)
                for name in graph.with_operator(pattern.operator)
                for match in self.typed.matches(pattern, name)
            ]
            known = self._known[pattern] = (graph.version, options)
        return known[1]

    def _fire(self, rule: Rule, nodes: dict[str, Id]) -> bool:
        typed = self.typed
        shapes = {name: typed.shape(node) for name, node in nodes.items()}
        if not all(typed.holds_at(fact, {}, shapes) for fact in rule.condition):
            return False
        binding = Binding(nodes, {})
        pairs: list[tuple[Id, Id]] = []
        for one, other in zip(rule.left, rule.right, strict=True):
            left, right = typed.add(one, binding), typed.add(other, binding)
            if left is None or right is None or not typed.have_equal_shapes(left, right):
                return False
            pairs.append((left, right))
        is_changed = False
        for left, right in pairs:
            if typed.graph.union(left, right, len(self.applications)):
                axiom = Axiom(rule.name, rule, ())
                self.applications.append(Application(axiom, binding, left, right))
                is_changed = True
        return is_changed

    def names(self, goal: Pairs) -> tuple[str, ...]:
        """The rules that the equality of some pairs needs."""
        used = used_applications(self._saturation(goal))
        return tuple(sorted({self.applications[number].axiom.name for number in used}))

    def derived(self, goal: Pairs) -> Derived:
        """The same with the chains of terms."""
        return Derived(self.names(goal), chains_of(self._saturation(goal)))

    def _saturation(self, goal: Pairs) -> Saturation:
        return Saturation(
            graph=self.typed,
            roots=goal,
            applications=tuple(self.applications),
            is_proved=True,
            is_complete=False,
        )


def _joined(
    nodes: dict[str, Id], root: Id, tables: Sequence[Table]
) -> Iterator[tuple[dict[str, Id], bool]]:
    """A match of the first pattern with those of the others that fit; whether all are at one root.

    One after the other: there may be many, and few are asked for.
    """
    if not tables:
        yield nodes, True
        return
    shared, table = tables[0]
    for other, own in table.get(tuple(nodes[name] for name in shared), ()):
        for whole, is_one in _joined(nodes | own, root, tables[1:]):
            yield whole, is_one and other == root
