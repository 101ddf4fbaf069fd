"""Whether rules imply a rule and replace its uses, not only its equality."""

from __future__ import annotations

from functools import partial

from tensorwright.rewriting.derivation import (
    Derived,
    RuleSet,
    at_all_ranks,
    meeting,
    reaches,
    rules_used,
    usable_directions,
)
from tensorwright.rewriting.egraph import Limits
from tensorwright.rewriting.prove import Problem, has_parameter_variables
from tensorwright.rewriting.prove.saturate import ProofSearch
from tensorwright.rewriting.terms import Rule

QUICK_LIMITS = Limits(rounds=2, nodes=300, matches=100)
PRUNE_LIMITS = Limits(rounds=6, nodes=1500, matches=200)


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
        at_one = partial(_from_side, is_reversed=not directions[0])
    else:
        at_one = meeting
    derivation = at_all_ranks(rule, rules, lambda problem, some: at_one(problem, some, limits))
    return None if derivation is None else derivation.names


def _both_ways(problem: Problem, rules: RuleSet, limits: Limits) -> Derived | None:
    """By reversible rules from both sides at once, else from each side alone."""
    sides = (problem.rule.left, problem.rule.right)
    search = ProofSearch(problem, limits)
    goal = search.goal(*sides)
    if goal is None:
        return None
    if reaches(search, rules.reversible, goal):
        return Derived(tuple(sorted(rules_used(search, goal))), ())
    one = _from_side(problem, rules, limits, is_reversed=False)
    other = _from_side(problem, rules, limits, is_reversed=True)
    if one is None or other is None:
        return None
    return Derived(tuple(sorted({*one.names, *other.names})), ())


def _from_side(
    problem: Problem, rules: RuleSet, limits: Limits, *, is_reversed: bool
) -> Derived | None:
    """All rules from the left side alone, or the right one, then reversible ones from both."""
    start, end = problem.rule.left, problem.rule.right
    if is_reversed:
        start, end = end, start
    search = ProofSearch(problem, limits)
    search.goal(start, start)
    search.runner.run(rules.rewrites)
    goal = search.goal(start, end)
    if goal is None or not reaches(search, rules.reversible, goal):
        return None
    return Derived(tuple(sorted(rules_used(search, goal))), ())
