"""From candidates to kept rules: the smallest proved set that rewrites all that they rewrite.

Candidates are taken from small and general to large and special.  One that the kept rules imply is
dropped, so that only the others need a proof: a rule that follows from proved rules is true.
Batches have a fixed size and are asked against what was kept before them; what is proved in a
batch is compared once more with what the batch has added.  So the result depends on neither the
number of processes nor their speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tensorwright.rewrite.prove.crew import Crew, Lost
from tensorwright.rewrite.prune.derivation import same_power
from tensorwright.rewrite.prune.examine import (
    Answer,
    Examined,
    Fails,
    Holds,
    Implied,
    Question,
    examine,
)
from tensorwright.rewrite.prune.naming import systematic_name
from tensorwright.rewrite.prune.ruleset import RuleSet, rule_set
from tensorwright.rewrite.prune.verdicts import Verdicts
from tensorwright.rewrite.terms import Rule, canonical_rule, input_names, operator_count
from tensorwright.rewrite.text import rule_text

__all__ = ["Dropped", "Progress", "Selection", "select_rules", "selection_order"]

BATCH = 48
"""Candidates that are asked at a time, whatever the number of processes."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that is not kept, with the names of the rules that imply it."""

    rule: Rule
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a selection is; `asked` leaves out what was known from an earlier run."""

    done: int
    total: int
    asked: int
    kept: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The kept rules, stamped and named, and what became of the other candidates.

    derive_s  seconds of all processes that looked for what is implied; `prove_s` for proofs
    """

    kept: tuple[Rule, ...]
    implied: tuple[Dropped, ...]
    refuted: tuple[Rule, ...]
    unknown: tuple[tuple[Rule, str], ...]
    derive_s: float
    prove_s: float
    elapsed_s: float


def selection_order(rule: Rule) -> tuple[int, int, int, str]:
    """Small before large, many inputs before few, then by text."""
    text = rule_text(rule)
    sides = (*rule.left, *rule.right)
    size = operator_count(*rule.left) + operator_count(*rule.right)
    return size, -len(input_names(*sides)), len(text), text


def select_rules(
    candidates: Sequence[Rule],
    workers: int = 2,
    kept: Sequence[Rule] = (),
    verdicts: Path | None = None,
    progress: Callable[[Progress], None] = lambda each: None,
    patience_s: float = 300.0,
) -> Selection:
    """Keep the proved rules among candidates that those kept before do not imply.

    kept      rules that are there already; the result has them first
    verdicts  where answers are kept as they come, so that a run that was stopped goes on

    Raises:  MachineError where Z3 is missing; OutputError where verdicts cannot be written.
    """
    store = Verdicts(verdicts)
    selector = _Selector(kept, store, progress, len(candidates))
    try:
        with Crew[Question, Examined](examine, workers, patience_s) as crew:
            ordered = sorted(candidates, key=selection_order)
            for start in range(0, len(ordered), BATCH):
                selector.batch(ordered[start : start + BATCH], crew)
    finally:
        store.close()
    return selector.result()


class _Selector:
    def __init__(
        self,
        kept: Sequence[Rule],
        verdicts: Verdicts,
        progress: Callable[[Progress], None],
        total: int,
    ) -> None:
        self.kept = list(kept)
        self.verdicts = verdicts
        self.report = progress
        self.total = total
        self.start = time.perf_counter()
        self.done = self.asked = 0
        self.derive_s = self.prove_s = 0.0
        self.implied: list[Dropped] = []
        self.refuted: list[Rule] = []
        self.unknown: list[tuple[Rule, str]] = []
        self._prepared: RuleSet | None = None

    def batch(self, rules: Sequence[Rule], crew: Crew[Question, Examined]) -> None:
        """Ask for all of them, then settle them in order."""
        before = tuple(self.kept)
        answers = self._answers([Question(rule, before) for rule in rules], crew)
        for rule, answer in zip(rules, answers, strict=True):
            self._settle(rule, answer, len(before))

    def _answers(
        self, questions: Sequence[Question], crew: Crew[Question, Examined]
    ) -> list[Answer]:
        kept_hash = Verdicts.hash_of(questions[0].kept)
        answers = {n: self.verdicts.get(each, kept_hash) for n, each in enumerate(questions)}
        open_ones = [number for number, answer in answers.items() if answer is None]
        self.done += len(questions) - len(open_ones)
        for place, found in crew.run([questions[number] for number in open_ones]):
            number = open_ones[place]
            answer = self._answer(found)
            answers[number] = answer
            self.verdicts.put(questions[number], kept_hash, answer)
            self.done += 1
            self.asked += 1
            self.report(Progress(self.done, self.total, self.asked, len(self.kept)))
        return [answer for answer in answers.values() if answer is not None]

    def _answer(self, found: Examined | Lost) -> Answer:
        if isinstance(found, Lost):
            return Fails(found.reason, is_refuted=False, is_lost=True)
        self.derive_s += found.derive_s
        self.prove_s += found.prove_s
        return found.answer

    def _settle(self, rule: Rule, answer: Answer, known: int) -> None:
        match answer:
            case Implied(names):
                self.implied.append(Dropped(rule, names))
            case Fails(reason, is_refuted):
                if is_refuted:
                    self.refuted.append(rule)
                else:
                    self.unknown.append((rule, reason))
            case Holds():
                self._keep(rule, answer, known)

    def _keep(self, rule: Rule, answer: Holds, known: int) -> None:
        """Keep a proved rule, unless its batch has brought what implies it."""
        proved = canonical_rule(answer.rule)
        if len(self.kept) > known or proved.condition != rule.condition:
            if self._prepared is None:
                self._prepared = rule_set(self.kept)
            start = time.perf_counter()
            names = same_power(proved, self._prepared)
            self.derive_s += time.perf_counter() - start
            if names is not None:
                self.implied.append(Dropped(rule, names))
                return
        name = rule.name or systematic_name(proved, {each.name for each in self.kept})
        self.kept.append(replace(proved, name=name))
        self._prepared = None

    def result(self) -> Selection:
        return Selection(
            kept=tuple(self.kept),
            implied=tuple(self.implied),
            refuted=tuple(self.refuted),
            unknown=tuple(self.unknown),
            derive_s=self.derive_s,
            prove_s=self.prove_s,
            elapsed_s=time.perf_counter() - self.start,
        )
