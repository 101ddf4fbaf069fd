"""The document printer behind every pseudo-code listing: graphs, schedules, loop nests, reports.

page = Printer()
with page.block("for i in 0..128:", note="@parallel"):
    page.line("C[i] = 0")
str(page)

Show what each stage makes: in numbered files or on the terminal where the knob `dump` asks for
it, or in a list for a command that shows it.  `timed_stage` says how long a stage takes.
"""

from __future__ import annotations

import itertools
import logging
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from tensorwright.base.files import make_folder, write_atomically
from tensorwright.base.knobs import DUMP, DUMP_DIR

LOG = logging.getLogger("tensorwright.compile")
LONG_S = 10.0  # of a stage, from which everybody is told how long it took
INDENT = "  "
HERE = "<- here"


class Printer:
    """Collect indented lines; mutable, used inside one function and then turned into a str.

    A note is text to the right of a line (`where i = i_o*32 + i_i`, `<- here`). The notes of
    neighbouring lines start in one column.
    """

    def __init__(self) -> None:
        self._lines: list[tuple[str, str]] = []
        self._depth = 0

    def line(self, text: str = "", note: str = "") -> None:
        """Add one line, or several where the text has line breaks; the note goes on the first."""
        for row in text.split("\n"):
            self._lines.append((INDENT * self._depth + row if row else "", note))
            note = ""

    def lines(self, texts: Iterable[str]) -> None:
        """Add a line for each text."""
        for text in texts:
            self.line(text)

    @contextmanager
    def indent(self) -> Iterator[None]:
        """Indent the lines added inside by one step."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @contextmanager
    def block(self, header: str, note: str = "") -> Iterator[None]:
        """Add a header line and indent what follows."""
        self.line(header, note)
        with self.indent():
            yield

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add rows of cells in left-aligned columns; rows may have different lengths."""
        count = max((len(row) for row in rows), default=0)
        widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(count)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            self.line("  ".join(cells).rstrip())

    def __str__(self) -> str:
        texts: list[str] = []
        start = 0
        while start < len(self._lines):
            stop = start + 1
            while stop < len(self._lines) and bool(self._lines[stop][1]) == bool(
                self._lines[start][1]
            ):
                stop += 1
            texts += _render(self._lines[start:stop])
            start = stop
        return "\n".join(texts)


def _render(run: Sequence[tuple[str, str]]) -> list[str]:
    """The lines of one run, which all have a note or all have none."""
    column = max(len(text) for text, _ in run) + 4
    return [text.ljust(column) + note if note else text.rstrip() for text, note in run]


@dataclass(frozen=True, slots=True)
class Dump:
    """One program as text.

    stage    one of knobs.DUMP_STAGES       subject   the workload that it is of, "" for the network
    name     the pass that made it, "" where a stage makes one program
    """

    stage: str
    subject: str
    name: str
    text: str


_subject: ContextVar[str] = ContextVar("tensorwright_dump_subject", default="")
_collected: ContextVar[tuple[frozenset[str], list[Dump]] | None] = ContextVar(
    "tensorwright_dumps", default=None
)
_numbers: defaultdict[Path, Iterator[int]] = defaultdict(lambda: itertools.count(1))


def is_dumped(*stages: str) -> bool:
    """Whether somebody wants to see one of these stages."""
    collected = _collected.get()
    wanted = DUMP.get() if collected is None else collected[0]
    return not wanted.isdisjoint(stages)


def dump(stage: str, name: str, render: Callable[[], str], suffix: str = "txt") -> None:
    """Write one program as text, if the knob `dump` names its stage; else do nothing.

    stage    one of knobs.DUMP_STAGES      name     which pass made the program, "" if there is one
    render   called only when needed       suffix   of the file

    With the knob `dump_dir` each text becomes a file <number>-<stage>-<subject>-<name>.<suffix>,
    numbered in the order of the passes; else it goes to the error stream.
    Raises:  OutputError if the folder cannot be written.
    """
    if not is_dumped(stage):
        return
    shown = Dump(stage, _subject.get(), name, render())
    collected = _collected.get()
    folder = DUMP_DIR.get()
    label = "-".join(filter(None, (shown.subject, name)))
    if collected is not None:
        collected[1].append(shown)
    elif folder is None:
        print(f"--- {stage}: {label}\n{shown.text}", file=sys.stderr)
    else:
        number = next(_numbers[folder])
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{number:03}-{stage}-{label}")[:90].rstrip("-")
        write_atomically(make_folder(folder) / f"{plain}.{suffix}", shown.text.rstrip("\n") + "\n")


@contextmanager
def dump_subject(name: str) -> Iterator[None]:
    """Say of which workload the dumps inside are."""
    token = _subject.set(name)
    try:
        yield
    finally:
        _subject.reset(token)


@contextmanager
def collect_dumps(stages: Collection[str]) -> Iterator[list[Dump]]:
    """The dumps of some stages that are made inside, in order, whatever the knobs say."""
    dumps: list[Dump] = []
    token = _collected.set((frozenset(stages), dumps))
    try:
        yield dumps
    finally:
        _collected.reset(token)


@contextmanager
def timed_stage(what: str) -> Iterator[None]:
    """Log how long the block takes: as a warning from `LONG_S` on, else as information."""
    start_s = time.perf_counter()
    try:
        yield
    finally:
        took_s = time.perf_counter() - start_s
        LOG.log(logging.WARNING if took_s >= LONG_S else logging.INFO, "%s: %.1f s", what, took_s)
