"""The record stores: a file of SQLite, or one in memory; and the questions that they answer.

Every `append` is one transaction that has reached the disk when it returns. The file must lie on a
local disk: network file systems do not give SQLite the locks it needs.

A record is a row of the table `record`. Lists are JSON texts; no column is opaque bytes.

The valid records and their order: a trace may have several measurements, a lucky first one, and
slower ones when the best traces are measured again. The newest record of a trace is valid, and the
trace counts only if it is OK.

A `WatchedStore` notes the questions to another store and their answers, and `answers_alike` checks
whether they are still the same. Compiling reads some of the records, and each answer decides what
is read next.  So if all noted questions have the same answers again, compiling gives the same
result, whatever else changed.

Source: Mokhov, Mitchell, Peyton Jones, "Build systems a la carte", ICFP 2018, section 4.2.2
(verifying traces).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from typing import Any, Self, TypeAlias, TypeVar

from tensorwright.base import OutputError, RecordError, now_utc
from tensorwright.records.lines import WorkloadText, read_lines, write_lines
from tensorwright.records.record import (
    Record,
    SavedSession,
    Status,
    build_record,
    record_error,
    to_fields,
    to_json,
)
from tensorwright.records.sqlite_file import FAULTS, copy_to_memory, explain, open_database

COLUMNS = (
    "digest",
    "schema",
    "tool",
    "workload",
    "target",
    "hardware",
    "threads",
    "trace",
    "decisions",
    "times_s",
    "median_s",
    "status",
    "error",
    "seed",
    "round",
    "moment",
)


def to_row(record: Record) -> tuple[object, ...]:
    """The values of COLUMNS."""
    median_s = record.median_s
    fields = to_fields(record) | {
        "digest": record.digest,
        "decisions": to_json(dict(record.decisions)),
        "times_s": to_json(record.times_s),
        "median_s": median_s if math.isfinite(median_s) else None,
        "status": record.status.value,
        "moment": record.when,
    }
    return tuple(fields[name] for name in COLUMNS)


def from_row(row: tuple[object, ...], path: str) -> Record:
    """Build the record of a row.

    Raises:  RecordError if another program has changed the row so that it is not a record.
    """
    value: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    fields = {name: value[name] for name in COLUMNS if name not in ("digest", "median_s", "moment")}
    try:
        for name in ("times_s", "decisions"):
            fields[name] = json.loads(value[name])
        return build_record(fields | {"when": value["moment"]})
    except (ValueError, TypeError, AttributeError, RecordError) as error:
        raise RecordError(
            stage="records",
            where=f"file {path}, record {value['digest']}",
            reason=f"the row is not a record: {error}",
            remedy="delete that row, or move the file away and start a new one",
        ) from error


def rank(records: Iterable[Record]) -> tuple[Record, ...]:
    """The valid OK records of one setting, the fastest first, ties in the given order."""
    newest: dict[str, Record] = {}
    for record in records:
        standing = newest.get(record.trace)
        if standing is None or record.when >= standing.when:
            newest[record.trace] = record
    order = {record.digest: number for number, record in enumerate(newest.values())}
    good = [record for record in newest.values() if record.status is Status.OK]
    return tuple(sorted(good, key=lambda record: (record.median_s, order[record.digest])))


_Result = TypeVar("_Result")
_PAGE = 512
_NAMES = ", ".join(COLUMNS)
_INSERT = f"INSERT OR IGNORE INTO record ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"
_INSERT_TEXT = """
    INSERT INTO workload VALUES (?, ?) ON CONFLICT DO UPDATE SET text = excluded.text
    WHERE length(excluded.text) > length(text)"""
_SESSION = ", ".join(SavedSession.__slots__)
_SELECTED = ("workload", "target", "hardware", "threads", "status")
_QUESTIONS = {
    "top": f"""
    SELECT {_NAMES} FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY trace ORDER BY moment DESC, id DESC) AS age,
               MIN(id) OVER (PARTITION BY trace) AS first_id
        FROM record WHERE workload = ? AND target = ? AND hardware = ? AND threads = ?)
    WHERE age = 1 AND status = 'ok' ORDER BY median_s, first_id LIMIT ?""",
    "workloads": "SELECT workload FROM record GROUP BY workload ORDER BY MIN(id)",
    "text": "SELECT text FROM workload WHERE workload = ?",
    "texts": "SELECT workload, text FROM workload ORDER BY workload",
    "session": f"""
    SELECT {_SESSION} FROM session WHERE id = ? OR name = ?
    ORDER BY id = ? DESC, updated DESC, id DESC LIMIT 1""",
}


def _sql(question: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """A question in SQL, with its values.

    "page" and "count" are about the records with some values: (last id, *those of `_SELECTED`);
    None stands for any. "sessions" have some texts in their arguments.
    """
    if question in _QUESTIONS:
        return _QUESTIONS[question], values
    if question == "sessions":
        about = " AND ".join(["TRUE", *("instr(arguments, ?)" for _ in values)])
        order = "ORDER BY updated DESC, id DESC"
        return f"SELECT {_SESSION} FROM session WHERE {about} {order}", values
    wanted = dict(zip(_SELECTED, values[1:], strict=True))
    given = {name: value for name, value in wanted.items() if value is not None}
    chosen = "".join(f" AND {name} = ?" for name in given)
    what = f"id, {_NAMES}" if question == "page" else "COUNT(*)"
    order = f" ORDER BY id LIMIT {_PAGE}" if question == "page" else ""
    return f"SELECT {what} FROM record WHERE id > ?{chosen}{order}", (values[0], *given.values())


class RecordStore:
    """A set of records, workload texts and tuning sessions, in a file of SQLite.

    busy_s  seconds to wait for another process's transaction before the error "locked"
    spare   whether it goes on in memory, with a warning, when the file cannot be written

    A set:       appending a record that the store has changes nothing.
    Order:       records come out in the order in which they were first appended; those of one call
                 of `append` stay together.
    Threads:     every method may be called from several threads at once.
    Processes:   several processes may have one file open, append to it and read it; each sees what
                 the others have appended before its call began. A store object does not cross a
                 fork or a pickle: open the path again.
    Durability:  when `append` has returned, its records survive a killed process. If it raises, or
                 the process dies within it, the store has none of its records.
    Iterators:   may be left unfinished; records appended meanwhile may or may not come out.
    Errors:      RecordError for a corrupt, foreign or locked file and for one of a newer
                 tensorwright, OutputError for a full disk or a missing permission; the file is
                 never overwritten in such a case.
    """

    has_lost_its_file: bool = False
    """Whether it goes on in memory because its disk is full: what is appended now ends with it."""

    def __init__(
        self, path: str | os.PathLike[str], busy_s: float = 30.0, *, spare: bool = False
    ) -> None:
        self.path = os.fspath(path)
        self._lock = threading.RLock()
        self._spare = spare
        self._database: sqlite3.Connection | None = None
        try:
            self._database = open_database(self.path, busy_s)
        except OutputError as error:
            self._go_on_in_memory(error)

    # What it is told

    def append(self, records: Iterable[Record], texts: Iterable[WorkloadText] = ()) -> int:
        """Add records, and texts of workloads; return how many records were new.

        Of two texts of a workload the longer stays: earlier versions wrote no program.
        """
        rows = [to_row(record) for record in records]
        given = [tuple(text) for text in texts]

        def add(database: sqlite3.Connection) -> int:
            before = database.total_changes
            database.executemany(_INSERT, rows)
            added = database.total_changes - before
            database.executemany(_INSERT_TEXT, given)
            return added

        return self._write(add)

    def remove(self, records: Iterable[Record]) -> int:
        """Remove records; return how many of them the store had."""
        digests = [(record.digest,) for record in records]

        def delete(database: sqlite3.Connection) -> int:
            before = database.total_changes
            database.executemany("DELETE FROM record WHERE digest = ?", digests)
            return database.total_changes - before

        return self._write(delete)

    def save_session(self, session: SavedSession) -> None:
        """Add a tuning session, or replace the one of the same id."""
        places = ", ".join("?" * len(SavedSession.__slots__))
        statement = f"INSERT OR REPLACE INTO session VALUES ({places})"
        self._write(lambda database: database.execute(statement, astuple(session)))

    def renew_session(self, session: SavedSession) -> None:
        """Save a session; if one of its id was saved before, the time of its start is kept."""
        before = self.session(session.id)
        if before is not None and before.id == session.id:
            session = replace(session, started=before.started, updated=now_utc())
        self.save_session(session)

    def import_jsonl(self, path: str | os.PathLike[str]) -> int:
        """Add the records of `export_jsonl`, all or none; return how many records were new.

        Raises:  RecordError that names the file and the line.
        """
        facts = read_lines(path)
        return self.append(facts.records, facts.texts)

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                database.close()

    # What it is asked

    def rows(self, question: str, *values: Any) -> list[Any]:
        """The rows that answer a question of `_sql`; all other answers are made of such rows."""
        with self._open() as database:
            return database.execute(*_sql(question, values)).fetchall()

    def query(
        self,
        *,
        workload: str | None = None,
        target: str | None = None,
        hardware: str | None = None,
        threads: int | None = None,
        status: Status | None = None,
    ) -> Iterator[Record]:
        """The records that have these values; None stands for any.

        They are read in pages; no lock is held between two pages.
        """
        last_id, is_more = -1, True
        while is_more:
            page = self.rows("page", last_id, workload, target, hardware, threads, status)
            for row in page:
                yield from_row(row[1:], self.path)
                last_id = row[0]
            is_more = len(page) == _PAGE

    def count(
        self,
        *,
        workload: str | None = None,
        target: str | None = None,
        hardware: str | None = None,
        threads: int | None = None,
        status: Status | None = None,
    ) -> int:
        """The number of records that have these values."""
        return int(self.rows("count", -1, workload, target, hardware, threads, status)[0][0])

    def top(
        self, k: int, *, workload: str, target: str, hardware: str, threads: int
    ) -> tuple[Record, ...]:
        """The k fastest traces by median, each once, the fastest first.

        The newest record of a trace (by `when`) is valid, and the trace counts only if it is OK: a
        second, slower measurement replaces a lucky first one.
        """
        rows = self.rows("top", workload, target, hardware, threads, k)
        return tuple(from_row(row, self.path) for row in rows)

    def best(self, *, workload: str, target: str, hardware: str, threads: int) -> Record | None:
        """The first of `top`; None without an OK record."""
        best = self.top(1, workload=workload, target=target, hardware=hardware, threads=threads)
        return best[0] if best else None

    def surplus(
        self, keep: int, failures_before: str | None = None, workload: str | None = None
    ) -> tuple[Record, ...]:
        """The records beyond the `keep` best of each setting, of one workload or of all.

        Failures stay, because they save measurements, except those with a `when` before
        `failures_before`.
        """
        settings: dict[tuple[str, str, str, int], list[Record]] = {}
        for record in self.query(workload=workload):
            setting = record.workload, record.target, record.hardware, record.threads
            settings.setdefault(setting, []).append(record)
        surplus = []
        for group in settings.values():
            kept = {record.digest for record in rank(group)[:keep]}
            for record in group:
                is_old = failures_before is not None and record.when < failures_before
                if record.digest not in kept if record.status.is_timed else is_old:
                    surplus.append(record)
        return tuple(surplus)

    def workloads(self) -> tuple[str, ...]:
        """The keys of all workloads with records, in the order of their first records."""
        return tuple(row[0] for row in self.rows("workloads"))

    def workload_text(self, workload: str) -> str | None:
        """The readable text of a workload, so that a record can be explained without its model."""
        rows = self.rows("text", workload)
        return rows[0][0] if rows else None

    def workload_texts(self) -> tuple[WorkloadText, ...]:
        """All texts, by key."""
        return tuple(WorkloadText(*row) for row in self.rows("texts"))

    def sessions(self) -> tuple[SavedSession, ...]:
        """All tuning sessions, the last updated first."""
        return self.sessions_about()

    def sessions_about(self, *texts: str) -> tuple[SavedSession, ...]:
        """The sessions whose arguments contain some texts, in the order of `sessions`."""
        return tuple(SavedSession(*row) for row in self.rows("sessions", *texts))

    def session(self, id_or_name: str) -> SavedSession | None:
        """The session of that id, or otherwise the last updated one of that name."""
        rows = self.rows("session", id_or_name, id_or_name, id_or_name)
        return SavedSession(*rows[0]) if rows else None

    def export_jsonl(
        self, path: str | os.PathLike[str], workloads: Collection[str] | None = None
    ) -> int:
        """Write records and workload texts as JSON lines: the whole file or nothing.

        workloads   the keys of the workloads to write; all if None
        Returns the number of records. Sessions belong to this machine and are not written.
        """
        records, texts = self.query(), self.workload_texts()
        if workloads is not None:
            records = (each for each in records if each.workload in workloads)
            texts = tuple(each for each in texts if each.workload in workloads)
        return write_lines(path, records, texts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The database

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._database is None:
                where = f"file {self.path}"
                raise record_error(where, "the store has been closed", "open it again")
            try:
                yield self._database
            except FAULTS as error:
                raise explain(self.path, error) from error

    def _write(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """One write transaction: committed if the work succeeds, otherwise rolled back."""
        try:
            with self._open() as database:
                database.execute("BEGIN IMMEDIATE")
                try:
                    result = work(database)
                    database.execute("COMMIT")
                except BaseException:
                    if database.in_transaction:
                        database.execute("ROLLBACK")
                    raise
                return result
        except OutputError as error:
            self._go_on_in_memory(error)
            return self._write(work)

    def _go_on_in_memory(self, error: OutputError) -> None:
        """Replace the file by a copy of it in memory.  Raises: the error, unless this is wanted."""
        if not self._spare:
            raise error
        with self._lock:
            self._spare, self.has_lost_its_file = False, True
            self._database = copy_to_memory(self._database, self.path)
        warnings.warn(
            f"{error.where}: {error.reason}. The search goes on, and what it measures is lost at "
            "its end, except the best schedules in the program that it writes",
            RuntimeWarning,
            stacklevel=4,
        )


class MemoryStore(RecordStore):
    """A store that lives as long as its object, for tests and for tuning without a file."""

    def __init__(self) -> None:
        self.path = ""
        self._lock = threading.RLock()
        self._spare = False
        self._database = copy_to_memory(None, self.path)

    def close(self) -> None:
        """Do nothing: the records live as long as the object."""


Read: TypeAlias = tuple[str, list[Any], str]
"""A question, its values, and the digest of its rows, as values that JSON has."""


class WatchedStore(RecordStore):
    """Another store, whose questions are noted."""

    def __init__(self, store: RecordStore) -> None:
        self.path = store.path
        self._store = store
        self._noted: dict[str, Read] = {}

    @property
    def reads(self) -> tuple[Read, ...]:
        """Each question once, in order, with the digest of its answer."""
        return tuple(self._noted.values())

    def rows(self, question: str, *values: Any) -> list[Any]:
        """As those of the other store."""
        answer = self._store.rows(question, *values)
        read = (question, list(values), _digest_of(answer))
        self._noted.setdefault(repr((question, values)), read)
        return answer

    def append(self, records: Iterable[Record], texts: Iterable[WorkloadText] = ()) -> int:
        """As that of the other store."""
        return self._store.append(records, texts)

    def remove(self, records: Iterable[Record]) -> int:
        """As that of the other store."""
        return self._store.remove(records)

    def save_session(self, session: SavedSession) -> None:
        """As that of the other store."""
        self._store.save_session(session)

    def close(self) -> None:
        """Leave the other store open: its owner closes it."""


def answers_alike(store: RecordStore, reads: Sequence[Sequence[Any]]) -> bool:
    """Whether a store gives the noted answers to all noted questions."""
    return all(
        _digest_of(store.rows(question, *values)) == digest for question, values, digest in reads
    )


def _digest_of(rows: list[Any]) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()
