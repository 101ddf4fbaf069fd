"""Examine one candidate: whether it follows from the kept rules, and else whether it has a proof.

Question(rule, kept)              Implied(("relu-relu",)), or Open()
Question(rule, None)              Holds(the rule with its stamp, axioms), or Fails(reason)
Question(rule, kept, "old")       the same without the rule `old` and those that are larger
examined(payload)                 the same as a unit of a farm; rules travel as text

Whether rules imply a rule and replace its uses, not only its equality.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, TypeAlias

from tensorwright.expr import IndexExpr, of_terms, terms_of
from tensorwright.farm import Payload
from tensorwright.rewriting.assumptions import assume
from tensorwright.rewriting.dims import Size, atoms_of
from tensorwright.rewriting.egraph import Limits, usable_directions
from tensorwright.rewriting.prove import (
    Problem,
    Proved,
    Refuted,
    has_parameter_variables,
    prove,
    stamped,
)
from tensorwright.rewriting.prove.saturate import ProofSearch
from tensorwright.rewriting.terms import ConditionAtom, Different, Equal, Rank, Rule
from tensorwright.rewriting.text import parse_rule, parse_rules, rule_text
from tensorwright_lab.rule_generation.derivation import (
    Derived,
    RuleSet,
    at_all_ranks,
    larger_side,
    meeting,
    reaches,
    rule_set,
    rules_used,
)
from tensorwright_lab.rule_generation.selection.free_parameters import freed

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


_FREEING_LIMITS = Limits(rounds=4, nodes=800, matches=100)


@dataclass(frozen=True, slots=True)
class Implied:
    """The rules of these names rewrite all that the candidate rewrites."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Holds:
    """The candidate is proved, for the shapes that the rule says; it has the stamp.

    axioms  the names of those that the proof needs
    """

    rule: Rule
    axioms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fails:
    """The candidate is refuted, or neither proved nor refuted.

    is_lost  whether time ended the search: on another machine the answer may be another
    """

    reason: str
    is_refuted: bool
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Open:
    """The rules that were asked do not imply the candidate."""


Answer: TypeAlias = Implied | Open | Holds | Fails


class Kept:
    """The rules that many questions share, each with a name."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules

    @cached_property
    def prepared(self) -> RuleSet:
        """The rules made ready for use."""
        return rule_set(self.rules)

    @cached_property
    def text(self) -> str:
        """The rules, one a line."""
        return "\n".join(map(rule_text, self.rules))


@lru_cache(maxsize=1)
def _received(text: str) -> Kept:
    """A process that gets the same rules a second time does not read them again."""
    return Kept(parse_rules(text.splitlines()))


@dataclass(frozen=True, slots=True)
class Question:
    """A candidate: do the kept rules imply it?  If there are none: is it proved?

    without  the name of a kept rule that is to be replaced: rules that have more operators are left
             out with it
    """

    rule: Rule
    kept: Kept | None
    without: str = ""

    def payload(self) -> Payload:
        """The question as plain data."""
        kept = None if self.kept is None else self.kept.text
        return Payload({"rule": rule_text(self.rule), "kept": kept, "without": self.without})


def examined(payload: Payload) -> Payload:
    """Answer a question; with the seconds that it took.

    Raises:  MachineError where Z3 is missing.
    """
    start = time.perf_counter()
    kept = payload.data["kept"]
    rule, without = parse_rule(payload.data["rule"]), payload.data["without"]
    answer = examine(Question(rule, None if kept is None else _received(kept), without))
    return Payload({"time_s": time.perf_counter() - start, **plain_answer(answer)})


def plain_answer(answer: Answer) -> dict[str, Any]:
    """An answer as plain data."""
    match answer:
        case Implied(names):
            return {"answer": "implied", "names": names}
        case Open():
            return {"answer": "open"}
        case Holds(rule, axioms):
            return {"answer": "proved", "as": rule_text(rule), "axioms": axioms}
        case Fails(reason, is_refuted):
            return {"answer": "refuted" if is_refuted else "unknown", "reason": reason}


def answer_of(plain: Mapping[str, Any]) -> Answer:
    """The inverse of `plain_answer`."""
    kind = plain["answer"]
    if kind == "implied":
        return Implied(tuple(plain["names"]))
    if kind == "open":
        return Open()
    if kind == "proved":
        return Holds(parse_rule(plain["as"]), tuple(plain["axioms"]))
    return Fails(plain["reason"], kind == "refuted")


def examine(question: Question) -> Answer:
    """Answer a question.  Raises: MachineError where Z3 is missing."""
    if question.kept is None:
        return decide(question.rule)
    rules = question.kept.prepared
    if question.without:
        rules = instead_of(question.rule, rules.without(question.without))
    names = subsuming_rules(question.rule, rules)
    return Open() if names is None else Implied(names)


def instead_of(rule: Rule, others: RuleSet) -> RuleSet:
    """The rules that a rule may be dropped for: a simple rule is of more use than a large one, and
    one of one root is found where one of several roots is not.
    """
    smaller = others.smaller_than(larger_side(rule) + 1)
    return smaller.of_one_root() if len(rule.left) == 1 else smaller


def decide(rule: Rule, limits: Limits | None = None) -> Holds | Fails:
    """Prove a candidate, for all ranks and all parameters for which that goes."""
    reasons: list[str] = []
    tidy = tidied(rule)
    for form in dict.fromkeys((without_ranks(tidy), tidy)):
        outcome = prove(form, limits=limits)
        if isinstance(outcome, Proved):
            return _for_all_parameters(outcome, limits)
        reasons.append("" if isinstance(outcome, Refuted) else outcome.reason)
    return Fails(reasons[-1] or "refuted", is_refuted=not reasons[-1])


def _for_all_parameters(proved: Proved, limits: Limits | None) -> Holds:
    """The proved rule, or a more general one."""

    def is_proved(rule: Rule) -> bool:
        return isinstance(prove(rule, limits=_FREEING_LIMITS, confirm=False), Proved)

    general = freed(proved.rule, is_proved)
    outcome = proved if general is proved.rule else prove(general, limits=limits)
    best = outcome if isinstance(outcome, Proved) else proved
    return Holds(stamped(best), best.axioms)


def without_ranks(rule: Rule) -> Rule:
    """The rule for all ranks."""
    return replace(rule, condition=tuple(f for f in rule.condition if not isinstance(f, Rank)))


def tidied(rule: Rule) -> Rule:
    """The rule with its condition in the plainest form: each equality less what is the same on both
    sides, `a + b = a + c` is `b = c`, and without those that follow from the facts before.
    """
    kept: list[ConditionAtom] = []
    for fact in rule.condition:
        if not isinstance(fact, Equal):
            kept.append(fact)
            continue
        assumptions = assume(each for each in kept if not isinstance(each, Rank | Different))
        if assumptions is None:
            return rule
        gap = assumptions.normal(fact.left) - assumptions.normal(fact.right)
        if gap != 0:
            kept.append(_equality(gap, fact))
    return replace(rule, condition=tuple(kept))


def _equality(gap: Size, fact: Equal) -> Equal:
    """`gap = 0` with what is added on the left and what is subtracted on the right."""
    if isinstance(gap, int) or any(each.name.startswith("_") for each in atoms_of(gap)):
        return fact
    left = _part(gap, 1)
    right = _part(gap, -1)
    return Equal(right, left) if isinstance(left, int) else Equal(left, right)


def _part(gap: IndexExpr, sign: int) -> Size:
    return of_terms((m, factor * sign) for m, factor in terms_of(gap) if factor * sign > 0)
