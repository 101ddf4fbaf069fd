"""Open a record store by its name.

Find the best schedule on record for a workload, and warn of records that cannot be used.

Note the queries to a record store and their answers, and check whether they are still the same.

Compiling reads some of the records, and each answer decides what is read next.  So if all noted
queries have the same answers again, compiling gives the same result, whatever else changed.

Source: Mokhov, Mitchell, Peyton Jones, "Build systems a la carte", ICFP 2018, section 4.2.2
(verifying traces).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tensorwright import schedule
from tensorwright.base import Target, TensorwrightError, knobs, make_home
from tensorwright.records.json_lines_store import JsonLinesStore, MemoryStore
from tensorwright.records.record import Record, SavedSession, is_current
from tensorwright.records.sqlite_store import SqliteStore
from tensorwright.records.store import RecordStore, Selection, WorkloadText

_MOST_TRIED = 20
_MOST_READ = 200


def best_trace(
    store: RecordStore,
    workload: schedule.Workload,
    target: Target,
    hardware: str,
    threads: int,
    *,
    algorithms: bool = True,
) -> schedule.Trace | None:
    """The fastest schedule on record that still replays; None if there is none.

    Measurements of older versions count only if this version has none.  A warning says which
    records are skipped, and why.
    algorithms   whether the schedule may use another algorithm
    """
    best = best_record(store, workload, target, hardware, threads, algorithms=algorithms)
    return best[1] if best is not None else None


def best_record(
    store: RecordStore,
    workload: schedule.Workload,
    target: Target,
    hardware: str,
    threads: int,
    *,
    algorithms: bool = True,
) -> tuple[Record, schedule.Trace] | None:
    """As `best_trace`, with the record."""
    state = schedule.state_of(workload)
    records = store.top(
        _MOST_READ,
        workload=workload.key,
        target=target.key,
        hardware=hardware,
        threads=threads,
    )
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


Read: TypeAlias = tuple[str, list[Any], str]
"""A query, its arguments, and the digest of its answer, as values that JSON has."""


class WatchedStore(RecordStore):
    """A store that notes the queries to another one.

    reads   each query once, in order
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._noted: dict[str, Read] = {}

    @property
    def reads(self) -> tuple[Read, ...]:
        """The queries, and digests of their answers."""
        return tuple(self._noted.values())

    def append(self, records: Iterable[Record], texts: Iterable[WorkloadText] = ()) -> int:
        """As that of the other store."""
        return self._store.append(records, texts)

    def select(self, selection: Selection) -> Iterator[Record]:
        """As that of the other store."""
        yield from self._ask("select", *(value for _, value in selection.items))

    def workload_texts(self) -> tuple[WorkloadText, ...]:
        """As that of the other store."""
        answer: tuple[WorkloadText, ...] = self._ask("texts")
        return answer

    def remove(self, records: Iterable[Record]) -> int:
        """As that of the other store."""
        return self._store.remove(records)

    def save_session(self, session: SavedSession) -> None:
        """As that of the other store."""
        self._store.save_session(session)

    def sessions(self) -> tuple[SavedSession, ...]:
        """As that of the other store."""
        answer: tuple[SavedSession, ...] = self._ask("sessions")
        return answer

    def session(self, id_or_name: str) -> SavedSession | None:
        """As that of the other store."""
        answer: SavedSession | None = self._ask("session", id_or_name)
        return answer

    def sessions_about(self, *texts: str) -> tuple[SavedSession, ...]:
        """As that of the other store."""
        answer: tuple[SavedSession, ...] = self._ask("sessions about", *texts)
        return answer

    def top(
        self, k: int, *, workload: str, target: str, hardware: str, threads: int
    ) -> tuple[Record, ...]:
        """As that of the other store."""
        answer: tuple[Record, ...] = self._ask("top", k, workload, target, hardware, threads)
        return answer

    def close(self) -> None:
        """Leave the other store open: its owner closes it."""

    def _ask(self, question: str, *arguments: Any) -> Any:
        answer = ask(self._store, question, *arguments)
        key = repr((question, arguments))
        self._noted.setdefault(key, (question, list(arguments), digest_of(answer)))
        return answer


def answers_alike(store: RecordStore, reads: Sequence[Sequence[Any]]) -> bool:
    """Whether a store gives the noted answers to all noted queries."""
    return all(
        digest_of(ask(store, question, *arguments)) == digest
        for question, arguments, digest in reads
    )


def ask(store: RecordStore, question: str, *arguments: Any) -> Any:
    """The answer to a query of `WatchedStore`."""
    match question, arguments:
        case "select", fields:
            return tuple(store.select(Selection(*fields)))
        case "texts", ():
            return store.workload_texts()
        case "sessions", ():
            return store.sessions()
        case "session", (name,):
            return store.session(name)
        case "sessions about", texts:
            return store.sessions_about(*texts)
        case "top", (k, workload, target, hardware, threads):
            return store.top(
                k, workload=workload, target=target, hardware=hardware, threads=threads
            )
    raise AssertionError(f"not a query: {question}")


def digest_of(answer: object) -> str:
    """The digest of an answer's repr, which has all fields of records, sessions and texts."""
    return hashlib.sha256(repr(answer).encode()).hexdigest()


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


def open_store(
    path: str | os.PathLike[str] | None = None, create: bool = True, *, spare: bool = False
) -> RecordStore:
    """Open a store: JSON lines for a name that ends in .jsonl or .ndjson, otherwise SQLite.

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
        return JsonLinesStore(named)
    return SqliteStore(named, spare=spare and path is None)


@contextlib.contextmanager
def opened(
    records: Records | None, *, create: bool = False, spare: bool = False
) -> Iterator[RecordStore]:
    """An open store, or the store at a path, open inside the block; the default store if None.

    create   whether a missing file is created        spare   as of `open_store`
    """
    if records is None or isinstance(records, (str, os.PathLike)):
        with open_store(records, create=create, spare=spare) as store:
            yield store
    else:
        yield records
