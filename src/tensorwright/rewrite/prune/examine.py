"""One candidate: does it follow from the rules that are kept, and if not, can it be proved?"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorwright.rewrite.prove import Limits, Proved, Refuted, prove, stamped
from tensorwright.rewrite.prune.derivation import same_power
from tensorwright.rewrite.prune.ruleset import RuleSet, rule_set
from tensorwright.rewrite.prune.tidy import tidied
from tensorwright.rewrite.terms import Rank, Rule

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
    """Prove a candidate, for all ranks if that goes."""
    reasons: list[str] = []
    tidy = tidied(rule)
    for form in dict.fromkeys((without_ranks(tidy), tidy)):
        outcome = prove(form, limits=limits)
        if isinstance(outcome, Proved):
            return Holds(stamped(outcome), outcome.axioms)
        reasons.append("" if isinstance(outcome, Refuted) else outcome.reason)
    return Fails(reasons[-1] or "refuted", is_refuted=not reasons[-1])


def without_ranks(rule: Rule) -> Rule:
    """The rule for all ranks."""
    return replace(rule, condition=tuple(f for f in rule.condition if not isinstance(f, Rank)))
