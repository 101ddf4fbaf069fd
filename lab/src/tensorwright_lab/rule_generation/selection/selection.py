"""From candidates to kept rules: the smallest proved set that rewrites all that they rewrite.

    candidates                        relu(relu(?x)) == relu(?x), exp(relu(relu(?x))) == ...
    the first is not implied          it is proved, named and kept
    the second follows from it        Dropped(rule, ("relu-relu",)): no proof is needed

Candidates are taken from small and general to large and special, in batches of a fixed size.  What
the kept rules imply is dropped, so that only the others need a proof: what follows from proved
rules is true.  Of the others a basis is proved: those that the basis would imply if it were proved
wait for its proofs.  The result depends on neither the number of processes nor their speed.

What was found out about candidates, kept on the disk: a run that was stopped goes on.

    {"key": "5e88...", "rule": "relu(relu(?x)) == relu(?x)", "answer": "proved", "as": ...}
    {"key": "a37f...", "rule": "exp(relu(relu(?x))) == ...", "answer": "implied", "names": [...]}
    {"key": "09c1...", "rule": "relu(?x) == ?x", "answer": "refuted", "reason": "refuted"}

One JSON object a line.  A line holds for the candidate, the axioms and the version of the prover
(the stamp), and the rules that were kept when it was written.  What ended for lack of time is not
written.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO

from tensorwright.base import InternalError, output_error
from tensorwright.farm import Farm, FarmOutcome, Unit
from tensorwright.graph import free_name
from tensorwright.processes import Done, Raised
from tensorwright.rewriting import terms
from tensorwright.rewriting.operators import ArgumentRole, arguments_of
from tensorwright.rewriting.prove import special_case, stamp_of
from tensorwright.rewriting.text import rule_text
from tensorwright_lab.rule_generation.answers import CALLER
from tensorwright_lab.rule_generation.derivation import rule_set
from tensorwright_lab.rule_generation.operator_facts import (
    operator_count,
    sides_key,
    systematic_name,
)
from tensorwright_lab.rule_generation.selection import examine
from tensorwright_lab.rule_generation.selection.examine import QUICK_LIMITS, subsuming_rules
from tensorwright_lab.rule_generation.selection.free_parameters import without_parameters

SELECTION_VERSION = 4
"""Raise it with every change that may change what follows from kept rules."""


class Verdicts:
    """Answers by question, read from a file and appended to it.

    Raises:  OutputError where the file cannot be read or written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._stamp = stamp_of()
        self._answers: dict[str, examine.Answer] = {}
        self._file: IO[str] | None = None
        self._is_cut = False
        self._last: tuple[examine.Kept | None, str] = (None, "")
        if path is not None:
            self._read(path)

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, question: examine.Question) -> examine.Answer | None:
        """The answer that is known."""
        return self._answers.get(self._key(question))

    def put(self, question: examine.Question, answer: examine.Answer) -> None:
        """Keep an answer."""
        if isinstance(answer, examine.Fails) and answer.is_lost:
            return
        key = self._key(question)
        self._answers[key] = answer
        if self._path is None:
            return
        line = json.dumps(
            {"key": key, "rule": rule_text(question.rule), **examine.plain_answer(answer)}
        )
        try:
            if self._file is None:
                self._file = self._path.open("a", encoding="utf-8")
                if self._is_cut:
                    self._file.write("\n")
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise output_error(self._path, error) from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _key(self, question: examine.Question) -> str:
        about = "proof"
        if question.kept is not None:
            about = f"{self._hash_of(question.kept)} without {question.without}"
        return _hash(f"{self._stamp} {about} {rule_text(question.rule)}")

    def _hash_of(self, kept: examine.Kept) -> str:
        """What changes when a rule is kept more or less; many questions have the same rules."""
        if self._last[0] is not kept:
            self._last = (kept, _hash(f"{SELECTION_VERSION}\n{kept.text}"))
        return self._last[1]

    def _read(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
        except OSError as error:
            raise output_error(path, error) from error
        self._is_cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            entry = _entry(line)
            if entry is not None:
                self._answers[entry[0]] = entry[1]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _entry(line: str) -> tuple[str, examine.Answer] | None:
    """A line's key and answer; None for a line that was cut off."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError:
        return None
    return entry["key"], examine.answer_of(entry)


_PATIENCE_S = 300.0
BATCH = 64
"""Candidates that are asked at a time, whatever the number of processes."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that is not kept, with the names of the rules that imply it."""

    rule: terms.Rule
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a selection is; `here` leaves out what was known from an earlier run.

    Finally the kept rules are counted once more, while those that others imply are looked for.
    """

    done: int
    total: int
    here: int
    kept: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The kept rules, stamped and named, and what became of the other candidates.

    derive_s  seconds of all processes that looked for what is implied; `prove_s` for proofs
    """

    kept: tuple[terms.Rule, ...]
    implied: tuple[Dropped, ...]
    refuted: tuple[terms.Rule, ...]
    unknown: tuple[tuple[terms.Rule, str], ...]
    derive_s: float
    prove_s: float
    elapsed_s: float


def selection_order(rule: terms.Rule) -> tuple[int, int, int, str]:
    """Small before large, many inputs before few, then by text."""
    text = rule_text(rule)
    sides = rule.roots
    size = operator_count(*rule.left) + operator_count(*rule.right)
    return size, -len(terms.input_names(*sides)), len(text), text


def select_rules(
    candidates: Sequence[terms.Rule],
    farm: Farm = CALLER,
    kept: Sequence[terms.Rule] = (),
    verdicts: Path | None = None,
    progress: Callable[[Progress], None] = lambda each: None,
    names: Mapping[str, str] = MappingProxyType({}),
) -> Selection:
    """Keep the proved rules among candidates that those kept before do not imply.

    Equalities of constants are left out: without a tensor they speak of one size alone.

    farm      who answers questions
    kept      rules that are there already; the result has them first
    verdicts  where answers are kept as they come, so that a run that was stopped goes on
    names     of rules by `sides_key`; the others get systematic names

    Raises:  MachineError where Z3 is missing; OutputError where verdicts cannot be written.
    """
    ordered = sorted(filter(_has_tensors, candidates), key=selection_order)
    with closing(Verdicts(verdicts)) as store:
        selector = _Selector(list(kept), store, farm, progress, len(ordered), names)
        for start in range(0, len(ordered), BATCH):
            selector.batch(ordered[start : start + BATCH])
        selector.minimise(len(kept))
    return selector.result()


def _has_tensors(rule: terms.Rule) -> bool:
    """Whether an input is more than the number by which a tensor is multiplied."""
    roots = rule.roots
    factors = arguments_of(ArgumentRole.NUMBER, *roots)
    return any(terms.Input(name) not in factors for name in terms.input_names(*roots))


def minimise_rules(
    rules: Sequence[terms.Rule], farm: Farm = CALLER, verdicts: Path | None = None
) -> Selection:
    """Leave out proved rules that others of no more operators imply, the last ones first.

    Raises:  OutputError where verdicts cannot be written.
    """
    with closing(Verdicts(verdicts)) as store:
        selector = _Selector(list(rules), store, farm)
        selector.minimise(0)
    return selector.result()


@dataclass(slots=True)
class _Selector:
    kept: list[terms.Rule]
    verdicts: Verdicts
    farm: Farm
    report: Callable[[Progress], None] = lambda each: None
    total: int = 0
    names: Mapping[str, str] = field(default_factory=dict)
    start: float = field(default_factory=time.perf_counter)
    done: int = 0
    resumed: int | None = None
    derive_s: float = 0.0
    prove_s: float = 0.0
    implied: list[Dropped] = field(default_factory=list)
    refuted: list[terms.Rule] = field(default_factory=list)
    unknown: list[tuple[terms.Rule, str]] = field(default_factory=list)

    def batch(self, rules: Sequence[terms.Rule]) -> None:
        """Drop what is implied, then prove a basis of the others, until none is left."""
        waiting = list(rules)
        seen: set[str] = set()
        while waiting:
            kept = examine.Kept(tuple(self.kept))
            answers = self._answers([examine.Question(rule, kept) for rule in waiting])
            still_open = []
            for rule, answer in zip(waiting, answers, strict=True):
                if isinstance(answer, examine.Implied):
                    self._drop(rule, answer.names)
                else:
                    still_open.append(rule)
            basis, waiting = self._split(still_open, seen)
            answers = self._answers([examine.Question(rule, None) for rule in basis])
            for rule, answer in zip(basis, answers, strict=True):
                self._settle(rule, answer)

    def _split(
        self, rules: Sequence[terms.Rule], seen: set[str]
    ) -> tuple[list[terms.Rule], list[terms.Rule]]:
        """Those to prove, and those that would follow at once from them for all ranks.

        What was kept alone does not imply any of them: only rules over the operators of each are
        tried with those of the basis.  Of rules that differ in parameters the first is proved, for
        as many parameters as may be, before the others.

        seen    the forms of rules of which one was proved before, without their parameters
        """
        forms = {rule: rule_text(without_parameters(rule)) for rule in rules}
        first = {form: rule for rule, form in reversed(forms.items())}
        waits = [rule for rule, form in forms.items() if form not in seen and first[form] != rule]
        seen.update(first)
        rules = [rule for rule in rules if rule not in waits]
        basis: list[terms.Rule] = []
        later: list[terms.Rule] = []
        assumed = rule_set(self.kept)
        start = time.perf_counter()
        for rule in rules:
            own = assumed.among(terms.operator_names(*rule.roots))
            if basis and subsuming_rules(rule, own, QUICK_LIMITS) is not None:
                later.append(rule)
                continue
            basis.append(rule)
            assumed = assumed.plus(
                replace(examine.without_ranks(rule), name=f"assumed-{len(basis)}")
            )
        self.derive_s += time.perf_counter() - start
        return basis, [*later, *waits]

    def _answers(
        self, questions: Sequence[examine.Question], *, each_counts: bool = False
    ) -> list[examine.Answer]:
        answers = {n: self.verdicts.get(each) for n, each in enumerate(questions)}
        unknown = [number for number, answer in answers.items() if answer is None]
        if each_counts:
            self.done += len(questions) - len(unknown)
        if unknown and self.resumed is None:
            self.resumed = self.done
        units = (
            Unit("rules.examine", questions[number].payload(), _PATIENCE_S) for number in unknown
        )
        for index, outcome in self.farm.results(units):
            question = questions[unknown[index]]
            answer = self._answer(question, outcome)
            answers[unknown[index]] = answer
            self.verdicts.put(question, answer)
            self.done += each_counts
            self._tell()
        return [answer for answer in answers.values() if answer is not None]

    def _answer(self, question: examine.Question, outcome: FarmOutcome) -> examine.Answer:
        if isinstance(outcome, Raised) and outcome.error is not None:
            raise outcome.error
        if not isinstance(outcome, Done):
            return examine.Fails(str(outcome), is_refuted=False, is_lost=True)
        plain = outcome.value.data
        if question.kept is None:
            self.prove_s += plain["time_s"]
        else:
            self.derive_s += plain["time_s"]
        return examine.answer_of(plain)

    def _tell(self) -> None:
        here = self.done - (self.resumed or 0)
        self.report(Progress(self.done, self.total, here, len(self.kept)))

    def _drop(self, rule: terms.Rule, names: tuple[str, ...]) -> None:
        self.implied.append(Dropped(rule, names))
        self.done += 1

    def _settle(self, rule: terms.Rule, answer: examine.Answer) -> None:
        self.done += 1
        match answer:
            case examine.Holds(proved):
                self._keep(rule, terms.canonical_rule(proved))
            case examine.Fails(reason, is_refuted):
                if is_refuted:
                    self.refuted.append(rule)
                else:
                    self.unknown.append((rule, reason))
            case examine.Implied() | examine.Open():
                raise InternalError(
                    stage="rules", where=rule_text(rule), reason="a proof has no such answer"
                )

    def _keep(self, rule: terms.Rule, proved: terms.Rule) -> None:
        """Keep a proved rule, unless one that was kept meanwhile says the same."""
        same = next((each for each in self.kept if special_case(proved, each)), None)
        if same is not None:
            self.implied.append(Dropped(rule, (same.name,)))
            return
        listed = self.names.get(sides_key(proved)) or self.names.get(sides_key(rule))
        name = listed or rule.name or systematic_name(proved)
        name = free_name(name, {each.name for each in self.kept}, 2, "-")
        self.kept.append(replace(proved, name=name))

    def minimise(self, count: int) -> None:
        """Drop rules that others of no more operators imply, the last first; `count` of them stay.

        What all the others together do not imply is not implied by fewer of them.  A derivation
        from all the others is good as long as none of those that it uses is dropped.
        """
        new = self.kept[count:]
        kept = examine.Kept(tuple(self.kept))
        self.done, self.total, self.resumed = 0, len(new), None
        questions = [examine.Question(rule, kept, rule.name) for rule in new]
        answers = self._answers(questions, each_counts=True)
        dropped: set[str] = set()
        for rule, answer in reversed(list(zip(new, answers, strict=True))):
            if not isinstance(answer, examine.Implied):
                continue
            names: tuple[str, ...] | None = answer.names
            rest = [each for each in self.kept if each is not rule]
            if not dropped.isdisjoint(answer.names):
                start = time.perf_counter()
                names = subsuming_rules(rule, examine.instead_of(rule, rule_set(rest)))
                self.derive_s += time.perf_counter() - start
            if names is not None:
                self.kept = rest
                dropped.add(rule.name)
                self._forget(rule, names)

    def _forget(self, rule: terms.Rule, names: tuple[str, ...]) -> None:
        """Drop a kept rule: what it implied, those that imply it do."""
        for number, each in enumerate(self.implied):
            if rule.name in each.names:
                instead = {*each.names, *names} - {rule.name}
                self.implied[number] = replace(each, names=tuple(sorted(instead)))
        self.implied.append(Dropped(rule, names))

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
