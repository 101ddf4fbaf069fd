"""Open a record store by its name.

Find the best schedule on record for a workload, and warn of records that cannot be used.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias, TypeVar

from tensorwright import schedule
from tensorwright.base import RecordError, TensorwrightError, UsageError, knobs, make_home
from tensorwright.records.lines import read_lines
from tensorwright.records.record import Record, Setting, is_current, record_error
from tensorwright.records.store import MemoryStore, RecordStore

_MOST_TRIED = 20
_MOST_READ = 200
_Result = TypeVar("_Result")


def best_record(
    store: RecordStore, workload: schedule.Workload, setting: Setting, *, algorithms: bool = True
) -> tuple[Record, schedule.Trace] | None:
    """The fastest record whose schedule still replays, and the schedule; None if there is none.

    Measurements of older versions count only if this version has none.  A warning says which
    records are skipped, and why.
    algorithms   whether the schedule may use another algorithm
    """
    state = schedule.state_of(workload)
    records = store.top(_MOST_READ, **setting.filters(workload.key))
    most = _MOST_TRIED if algorithms else _MOST_READ
    for record in sorted(records, key=lambda one: not is_current(one))[:most]:
        try:
            trace = schedule.parse_trace(record.trace)
            schedule.replay(state, trace)
        except TensorwrightError as error:
            text = (
                f"workload {workload.name} ({workload.key}): the record of {record.when} "
                f"by version {record.tool_version} is skipped: {error}"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            continue
        if algorithms or not schedule.uses_algorithm(trace):
            return record, trace
    return None


Records: TypeAlias = RecordStore | str | os.PathLike[str]
"""A record store, or the path of one."""

LINES_SUFFIXES = (".jsonl", ".ndjson")
_SQLITE = b"SQLite format 3\0"


def default_path() -> Path:
    """The default record store: `records.sqlite` in the folder of the knob `home`."""
    return knobs.HOME.get() / knobs.RECORDS_FILE


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a record store, by its name or its first bytes."""
    if Path(path).suffix.lower() in LINES_SUFFIXES:
        return True
    with Path(path).open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


class LinesStore(MemoryStore):
    """The facts of a file of JSON lines.  It can be read, and not written to."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        facts = read_lines(path)
        self.append(facts.records, facts.texts)
        for session in facts.sessions:
            self.save_session(session)
        self.path = os.fspath(path)

    def _write(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        if self.path:
            raise _only_read(self.path)
        return super()._write(work)


def _only_read(path: str | os.PathLike[str]) -> RecordError:
    return record_error(
        f"file {path}",
        "JSON lines are for exchange: they can be read, and not written to",
        "name a store, FILE.sqlite; to add the lines to it:\n"
        f"  tensorwright records import {path} --records FILE.sqlite",
    )


def open_store(
    path: str | os.PathLike[str] | None = None, create: bool = True, *, spare: bool = False
) -> RecordStore:
    """Open a store.  A file of JSON lines, whose name ends in .jsonl or .ndjson, can only be read.

    path    None for `default_path()`
    create  False: a missing file is not created; a reader then gets an empty store in memory
    spare   whether the default store goes on in memory, with a warning, when its disk is full
    Raises:  RecordError and OutputError, as the stores do.
    """
    named = Path(path) if path is not None else default_path()
    if not create and not (named.exists() and named.stat().st_size):  # a full disk leaves no byte
        return MemoryStore()
    if path is None and not named.exists():
        make_home()
    if named.suffix.lower() in LINES_SUFFIXES:
        if create:
            raise _only_read(named)
        return LinesStore(named)
    return RecordStore(named, spare=spare and path is None)


@contextlib.contextmanager
def opened(
    records: Records | None, *, create: bool = False, spare: bool = False
) -> Iterator[RecordStore]:
    """An open store, or the store at a path, open inside the block; the default store if None.

    create   whether a missing file is created        spare   as of `open_store`
    Raises:  UsageError for another object.
    """
    if records is None or isinstance(records, (str, os.PathLike)):
        with open_store(records, create=create, spare=spare) as store:
            yield store
    elif isinstance(records, RecordStore):
        yield records
    else:
        raise UsageError(
            stage="records",
            where=f"records {records!r}",
            reason="it is neither a path nor a record store",
            remedy="give the path of a record store, or leave it out for the user's",
        )
