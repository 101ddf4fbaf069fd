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
from tensorwright.rewrite.prove import Limits, Problem, Step, problems_of
from tensorwright.rewrite.prove.egraph import Id
from tensorwright.rewrite.prove.explain import chains_of, used_applications
from tensorwright.rewrite.prove.saturate import Application, Saturation, Search
from tensorwright.rewrite.prove.typed_graph import Binding, TypedGraph
from tensorwright.rewrite.prune.ruleset import Joint, RuleSet, usable_directions
from tensorwright.rewrite.terms import Apply, Rule, Term

__all__ = ["DERIVE_LIMITS", "PRUNE_LIMITS", "QUICK_LIMITS", "Derived", "derive", "same_power"]

QUICK_LIMITS = Limits(rounds=2, nodes=300, matches=100)
PRUNE_LIMITS = Limits(rounds=6, nodes=1500, matches=200)
DERIVE_LIMITS = Limits(rounds=8, nodes=4000, matches=400)

Pairs: TypeAlias = tuple[tuple[Id, Id], ...]


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

    Both sides are there from the start, and every rule is used wherever it fits.
    """
    return _at_all_ranks(rule, lambda problem: _meeting(problem, rules, limits))


def same_power(rule: Rule, rules: RuleSet, limits: Limits = PRUNE_LIMITS) -> tuple[str, ...] | None:
    """The names of the rules that say and rewrite all that a rule does; None where they may not.

    A rule that can be applied in one direction follows from others as an equality, and so does one
    of a single root.  One of several roots must, besides, be found from each of its sides alone:
    merging two products is not implied by the rules that take a merged product apart, for those do
    not say which products to merge.
    """
    is_joint = len(rule.left) > 1 and all(usable_directions(rule))
    at_one = _both_ways if is_joint else _meeting
    found = _at_all_ranks(rule, lambda problem: at_one(problem, rules, limits))
    return None if found is None else found.names


def _at_all_ranks(rule: Rule, at_one: Callable[[Problem], Derived | None]) -> Derived | None:
    names: set[str] = set()
    first: Derived | None = None
    for problem in problems_of(rule):
        found = at_one(problem)
        if found is None:
            return None
        names.update(found.names)
        first = first or found
    return None if first is None else Derived(tuple(sorted(names)), first.chains)


def _meeting(problem: Problem, rules: RuleSet, limits: Limits) -> Derived | None:
    """Both sides first, then all rules."""
    run = _Run(problem, limits)
    goal = run.goal(problem.rule.left, problem.rule.right)
    if goal is None or not run.rounds(rules.axioms, rules.joint, goal):
        return None
    return run.derived(goal)


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
        self._known: dict[Apply, tuple[int, list[tuple[Id, dict[str, Id]]]]] = {}

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
            for number, each in enumerate(joint):
                is_changed |= self._apply(each, number, done)
            if not is_changed or len(self.typed.graph) > self.limits.nodes:
                break
        return search.is_proved(goal)

    def _apply(self, joint: Joint, number: int, done: set[tuple[object, ...]]) -> bool:
        is_changed = False
        matches = list(islice(self._matches(joint), self.limits.matches))
        for nodes in matches:
            key = (number, *sorted(nodes.items()))
            if key not in done:
                done.add(key)
                is_changed |= self._fire(joint.rule, nodes)
        return is_changed

    def _matches(self, joint: Joint) -> Iterator[dict[str, Id]]:
        """What the inputs stand for where all patterns match, at nodes that are not all equal."""
        found: list[tuple[dict[str, Id], tuple[Id, ...]]] = [({}, ())]
        for pattern in joint.patterns:
            options = self._options(pattern)
            if not options or not found:
                return iter(())
            shared = tuple(name for name in options[0][1] if name in found[0][0])
            fitting: dict[tuple[Id, ...], list[tuple[Id, dict[str, Id]]]] = {}
            for root, own in options:
                fitting.setdefault(tuple(own[name] for name in shared), []).append((root, own))
            found = [
                (nodes | own, (*roots, root))
                for nodes, roots in found
                for root, own in fitting.get(tuple(nodes[name] for name in shared), ())
            ]
        return (nodes for nodes, roots in found if len(set(roots)) > 1)

    def _options(self, pattern: Apply) -> list[tuple[Id, dict[str, Id]]]:
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
