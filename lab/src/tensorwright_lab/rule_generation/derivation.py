"""Rules that follow from others, by equality saturation of well-typed terms.

    relu-relu: relu(relu(?x)) == relu(?x)                   the rule that is kept
    relu(relu(relu(?x))) == relu(?x)                        Derived(("relu-relu",), chains)
    relu(?x) == ?x                                          None

A rule of the set is applied only where its condition is known to hold and all its terms are
well-typed.  All bounds are counts, so the answer is the same on every machine.  A rule is
reversible if both sides have the same inputs: then each use can be undone by another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tensorwright.rewriting import egraph, terms
from tensorwright.rewriting.prove import Problem, cases_of, problems_of
from tensorwright.rewriting.prove.saturate import ProofSearch, chains_of
from tensorwright_lab.rule_generation.operator_facts import operator_count


@dataclass(frozen=True, slots=True)
class Usable:
    """A rule made ready for use.

    name       that of the rule
    rewrite    None where neither direction can be applied
    roots      how many roots a side has
    count      operators of the larger side
    operators  those of both sides
    """

    name: str
    rewrite: egraph.Rewrite | None
    is_reversible: bool
    roots: int
    count: int
    operators: frozenset[str]


class RuleSet:
    """Rules ready for use; a rewrite has the name of its rule.

    rewrites    of all rules that can be applied
    reversible  those among them that are reversible
    """

    def __init__(self, usable: Iterable[Usable]) -> None:
        self._usable = tuple(usable)
        pairs = [(each, each.rewrite) for each in self._usable if each.rewrite is not None]
        self.rewrites = tuple(rewrite for _, rewrite in pairs)
        self.reversible = tuple(rewrite for each, rewrite in pairs if each.is_reversible)

    def __len__(self) -> int:
        return len(self._usable)

    def smaller_than(self, count: int) -> RuleSet:
        """The rules both of whose sides have fewer operators."""
        return RuleSet(each for each in self._usable if each.count < count)

    def among(self, operators: frozenset[str]) -> RuleSet:
        """The rules that have these operators alone."""
        return RuleSet(each for each in self._usable if each.operators <= operators)

    def of_one_root(self) -> RuleSet:
        """The rules of one root."""
        return RuleSet(each for each in self._usable if each.roots == 1)

    def without(self, name: str) -> RuleSet:
        """The rules with other names."""
        return RuleSet(each for each in self._usable if each.name != name)

    def plus(self, rule: terms.Rule) -> RuleSet:
        """These rules and one more."""
        return RuleSet((*self._usable, _usable(rule)))


def rule_set(rules: Iterable[terms.Rule]) -> RuleSet:
    """Prepare rules; each must have a name of its own."""
    return RuleSet(map(_usable, rules))


@lru_cache(maxsize=4096)
def _usable(rule: terms.Rule) -> Usable:
    return Usable(
        name=rule.name,
        rewrite=egraph.usable_rewrite(rule),
        is_reversible=egraph.variables_of(*rule.left) == egraph.variables_of(*rule.right),
        roots=len(rule.left),
        count=larger_side(rule),
        operators=terms.operator_names(*rule.roots),
    )


def larger_side(rule: terms.Rule) -> int:
    """How many operators the larger side of a rule has."""
    return max(operator_count(*rule.left), operator_count(*rule.right))


DERIVE_LIMITS = egraph.Limits(rounds=8, nodes=4000, matches=400)


@dataclass(frozen=True, slots=True)
class Derived:
    """A rule follows from others.

    names   of those that the derivation uses, sorted
    chains  for each pair of roots, the terms from left to right, at the first ranks
    """

    names: tuple[str, ...]
    chains: tuple[egraph.Chain, ...]


def derive(
    rule: terms.Rule, rules: RuleSet, limits: egraph.Limits = DERIVE_LIMITS
) -> Derived | None:
    """The derivation of a rule from others; None where none was found.

    Both sides are there from the start, and every rule is used wherever it fits.  Rules of one root
    come first: with others, the explanation of an equality often passes through terms that neither
    side needs.
    """

    def at_one(problem: Problem, some: RuleSet) -> Derived | None:
        plain = meeting(problem, some.of_one_root(), limits, has_chains=True)
        return plain or meeting(problem, some, limits, has_chains=True)

    return at_all_ranks(rule, rules, at_one)


def at_all_ranks(
    rule: terms.Rule, rules: RuleSet, at_one: Callable[[Problem, RuleSet], Derived | None]
) -> Derived | None:
    """The derivation at all choices of ranks that fit, from what is derived at one."""
    names: set[str] = set()
    first: Derived | None = None
    # Large rules fill the graph, and small ones, or those of the rule's own operators, mostly do.
    sets = (
        rules.smaller_than(larger_side(rule)),
        rules.among(terms.operator_names(*rule.roots)),
    )
    stages = (*(some for some in sets if len(some) < len(rules)), rules)
    for problem in (each for case in cases_of(rule) for each in problems_of(case)):
        attempts = (at_one(problem, some) for some in stages)
        derivation = next((each for each in attempts if each is not None), None)
        if derivation is None:
            return None
        names.update(derivation.names)
        first = first or derivation
    return None if first is None else Derived(tuple(sorted(names)), first.chains)


def meeting(
    problem: Problem, rules: RuleSet, limits: egraph.Limits, *, has_chains: bool = False
) -> Derived | None:
    """Both sides first, then all rules; with the chains of terms if they are wanted."""
    search = ProofSearch(problem, limits)
    goal = search.goal(problem.rule.left, problem.rule.right)
    if goal is None or not reaches(search, rules.rewrites, goal):
        return None
    chains = chains_of(search.runner, goal, problem.assumptions) if has_chains else ()
    return Derived(tuple(sorted(rules_used(search, goal))), chains)


def reaches(search: ProofSearch, rewrites: Sequence[egraph.Rewrite], goal: egraph.Goal) -> bool:
    """Whether rewrites make all pairs equal."""
    return isinstance(search.runner.run(rewrites, goal), egraph.GoalReached)


def rules_used(search: ProofSearch, goal: egraph.Goal) -> set[str]:
    """The rules that the equality of some pairs needs."""
    return {each.rewrite.name for each in egraph.used_applications(search.runner, goal)}
