"""The consequences of a set of rules, by equality saturation of well-typed terms.

    relu-relu: relu(relu(?x)) == relu(?x)                   the rule that is kept
    relu(relu(relu(?x))) == relu(?x)                        Derived(("relu-relu",), chains)
    relu(?x) == ?x                                          None

A rule of the set is applied only where its condition is known to hold and all its terms are
well-typed.  All bounds are counts, so the answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tensorwright.rewriting.derivation.ruleset import RuleSet, larger_side, usable_directions
from tensorwright.rewriting.egraph import (
    Chain,
    Goal,
    GoalReached,
    Limits,
    Rewrite,
    used_applications,
)
from tensorwright.rewriting.prove import Problem, cases_of, has_parameter_variables, problems_of
from tensorwright.rewriting.prove.explain import chains_of
from tensorwright.rewriting.prove.saturate import ProofSearch
from tensorwright.rewriting.terms import Rule, operator_names

QUICK_LIMITS = Limits(rounds=2, nodes=300, matches=100)
PRUNE_LIMITS = Limits(rounds=6, nodes=1500, matches=200)
DERIVE_LIMITS = Limits(rounds=8, nodes=4000, matches=400)


@dataclass(frozen=True, slots=True)
class Derived:
    """A rule follows from others.

    names   of those that the derivation uses, sorted
    chains  for each pair of roots, the terms from left to right, at the first ranks
    """

    names: tuple[str, ...]
    chains: tuple[Chain, ...]


def derive(rule: Rule, rules: RuleSet, limits: Limits = DERIVE_LIMITS) -> Derived | None:
    """The derivation of a rule from others; None where none was found.

    Both sides are there from the start, and every rule is used wherever it fits.  Rules of one root
    come first: with others, the explanation of an equality often passes through terms that neither
    side needs.
    """

    def at_one(problem: Problem, some: RuleSet) -> Derived | None:
        plain = _meeting(problem, some.of_one_root(), limits, is_told=True)
        return plain or _meeting(problem, some, limits, is_told=True)

    return _at_all_ranks(rule, rules, at_one)


def subsuming_rules(
    rule: Rule, rules: RuleSet, limits: Limits = PRUNE_LIMITS
) -> tuple[str, ...] | None:
    """The names of rules that imply a rule and replace its uses; None where there may be none.

    A rule that can be applied in one direction follows from others as an equality, and so does one
    of a single root.  One of several roots must, besides, be found from each of its sides alone:
    merging two products is not implied by the rules that take a merged product apart, because those
    do not say which products to merge.  So must one whose other side has parameters that are
    computed.
    """
    directions = usable_directions(rule)
    if len(rule.left) > 1 and all(directions):
        at_one = _both_ways
    elif has_parameter_variables(rule) and any(directions) and not all(directions):
        at_one = partial(_from_side, is_turned=not directions[0])
    else:
        at_one = _meeting
    derivation = _at_all_ranks(rule, rules, lambda problem, some: at_one(problem, some, limits))
    return None if derivation is None else derivation.names


def _at_all_ranks(
    rule: Rule, rules: RuleSet, at_one: Callable[[Problem, RuleSet], Derived | None]
) -> Derived | None:
    names: set[str] = set()
    first: Derived | None = None
    stages = _stages(rule, rules)
    for problem in (each for case in cases_of(rule) for each in problems_of(case)):
        attempts = (at_one(problem, some) for some in stages)
        derivation = next((each for each in attempts if each is not None), None)
        if derivation is None:
            return None
        names.update(derivation.names)
        first = first or derivation
    return None if first is None else Derived(tuple(sorted(names)), first.chains)


def _stages(rule: Rule, rules: RuleSet) -> tuple[RuleSet, ...]:
    """Some of the rules, then all: large rules fill the graph, and small ones mostly suffice."""
    own = operator_names(*rule.roots)
    sets = (rules.smaller_than(larger_side(rule)), rules.among(own))
    return (*(some for some in sets if len(some) < len(rules)), rules)


def _meeting(
    problem: Problem, rules: RuleSet, limits: Limits, *, is_told: bool = False
) -> Derived | None:
    """Both sides first, then all rules; with the chains of terms if they are to be told."""
    search = ProofSearch(problem, limits)
    goal = search.goal(problem.rule.left, problem.rule.right)
    if goal is None or not _reaches(search, rules.rewrites, goal):
        return None
    chains = chains_of(search.runner, goal, problem.assumptions) if is_told else ()
    return Derived(tuple(sorted(_names(search, goal))), chains)


def _both_ways(problem: Problem, rules: RuleSet, limits: Limits) -> Derived | None:
    """By reversible rules from both sides at once, else from each side alone."""
    sides = (problem.rule.left, problem.rule.right)
    search = ProofSearch(problem, limits)
    goal = search.goal(*sides)
    if goal is None:
        return None
    if _reaches(search, rules.reversible, goal):
        return Derived(tuple(sorted(_names(search, goal))), ())
    one = _from_side(problem, rules, limits, is_turned=False)
    other = _from_side(problem, rules, limits, is_turned=True)
    if one is None or other is None:
        return None
    return Derived(tuple(sorted({*one.names, *other.names})), ())


def _from_side(
    problem: Problem, rules: RuleSet, limits: Limits, *, is_turned: bool
) -> Derived | None:
    """All rules from the left side alone, or the right one, then reversible ones from both."""
    start, end = problem.rule.left, problem.rule.right
    if is_turned:
        start, end = end, start
    search = ProofSearch(problem, limits)
    search.goal(start, start)
    search.runner.run(rules.rewrites)
    goal = search.goal(start, end)
    if goal is None or not _reaches(search, rules.reversible, goal):
        return None
    return Derived(tuple(sorted(_names(search, goal))), ())


def _reaches(search: ProofSearch, rewrites: Sequence[Rewrite], goal: Goal) -> bool:
    return isinstance(search.runner.run(rewrites, goal), GoalReached)


def _names(search: ProofSearch, goal: Goal) -> set[str]:
    """The rules that the equality of some pairs needs."""
    return {each.rewrite.name for each in used_applications(search.runner, goal)}
