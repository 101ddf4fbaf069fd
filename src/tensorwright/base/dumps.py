"""Show what each stage makes: in numbered files or on the terminal where the knob `dump` asks for
it, or in a list for a command that shows it.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from tensorwright.base.files import make_folder, write_atomically
from tensorwright.base.knobs import DUMP, DUMP_DIR


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
