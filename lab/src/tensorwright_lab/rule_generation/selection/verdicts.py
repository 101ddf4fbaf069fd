"""What was found out about candidates, kept on the disk: a run that was stopped goes on.

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
from pathlib import Path
from typing import IO

from tensorwright.base import output_error
from tensorwright.rewriting.prove import stamp_of
from tensorwright.rewriting.text import rule_text
from tensorwright_lab.rule_generation.selection import examine

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
