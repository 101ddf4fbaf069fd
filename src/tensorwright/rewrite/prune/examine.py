"""One candidate: does it follow from the rules that are kept, and if not, can it be proved?

A candidate was found at one choice of ranks and with ungrouped convolutions.  It is proved for as
many shapes as possible: for all ranks if that goes, with one group where groups make it false.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorwright.rewrite.meaning import infer
from tensorwright.rewrite.prove import (
    Limits,
    Proved,
    Refuted,
    conditioned,
    problems_of,
    prove,
    stamped,
)
from tensorwright.rewrite.prune.derivation import same_power
from tensorwright.rewrite.prune.ruleset import RuleSet, rule_set
from tensorwright.rewrite.terms import Equal, Fact, Rank, Rule, applications

__all__ = [
    "Answer",
    "Examined",
    "Fails",
    "Holds",
    "Implied",
    "Open",
    "Question",
    "decide",
    "examine",
    "without_ranks",
]


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


@dataclass(frozen=True, slots=True)
class Question:
    """A candidate: do the rules of `kept`, which have names, imply it?  If None: is it proved?"""

    rule: Rule
    kept: tuple[Rule, ...] | None


@dataclass(frozen=True, slots=True)
class Examined:
    """The answer and the seconds that it took."""

    answer: Answer
    time_s: float


def examine(question: Question) -> Examined:
    """Answer a question.  Raises: MachineError where Z3 is missing."""
    start = time.perf_counter()
    answer: Answer
    if question.kept is None:
        answer = decide(question.rule)
    else:
        names = same_power(question.rule, _prepared(question.kept))
        answer = Open() if names is None else Implied(names)
    return Examined(answer, time.perf_counter() - start)


_last: list[tuple[tuple[Rule, ...], RuleSet]] = []


def _prepared(kept: tuple[Rule, ...]) -> RuleSet:
    """The rule set of some rules; that of the last question is at hand."""
    if not _last or _last[0][0] != kept:
        _last[:] = [(kept, rule_set(kept))]
    return _last[0][1]


def decide(rule: Rule, limits: Limits | None = None) -> Holds | Fails:
    """Prove a candidate in the most general of its forms that can be proved."""
    reasons: list[str] = []
    for form in _forms(rule):
        outcome = prove(form, limits=limits)
        if isinstance(outcome, Proved):
            weakest = _weakened(outcome, limits)
            return Holds(stamped(weakest), weakest.axioms)
        reasons.append("refuted" if isinstance(outcome, Refuted) else outcome.reason)
    is_refuted = all(reason == "refuted" for reason in reasons)
    return Fails(reasons[0] if is_refuted else _first_other(reasons), is_refuted)


def _first_other(reasons: list[str]) -> str:
    return next(reason for reason in reasons if reason != "refuted")


def _forms(rule: Rule) -> Iterator[Rule]:
    """Forms of a candidate, from general to special."""
    free = without_ranks(rule)
    yield free
    if free != rule:
        yield rule
    for form in dict.fromkeys((free, rule)):
        facts = _one_group(form)
        if facts:
            yield replace(form, condition=(*form.condition, *facts))
    found = conditioned(free)
    if found is not None:
        yield found


def without_ranks(rule: Rule) -> Rule:
    """The rule for all ranks."""
    return replace(rule, condition=tuple(f for f in rule.condition if not isinstance(f, Rank)))


def _one_group(rule: Rule) -> tuple[Fact, ...]:
    """That each convolution has one group, where that is not decided."""
    problems = problems_of(rule)
    if not problems:
        return ()
    shapes = dict(problems[0].shapes)
    found: dict[Fact, None] = {}
    for each in applications(*rule.left, *rule.right):
        if each.operator == "conv2d":
            data, kernel = infer(each.args, shapes).shapes
            fact = Equal(data[1], kernel[1])
            if not problems[0].known.entails(fact):
                found.setdefault(fact)
    return tuple(found)


def _weakened(proved: Proved, limits: Limits | None) -> Proved:
    """Leave out equalities of the condition one by one, as long as the rule is proved."""
    for fact in proved.rule.condition:
        if isinstance(fact, Equal):
            rule = proved.rule
            fewer = replace(rule, condition=tuple(f for f in rule.condition if f != fact))
            outcome = prove(fewer, limits=limits)
            if isinstance(outcome, Proved):
                proved = outcome
    return proved
