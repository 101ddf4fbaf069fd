"""The default record store: one SQLite file.

Write-ahead logging lets several processes read while one writes, and every `append` is one
transaction that has reached the disk when it returns. Its file must lie on a local disk: network
file systems do not give SQLite the locks it needs.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from typing import Any, TypeVar

from tensorwright.base import OutputError
from tensorwright.records.exchange import WorkloadText
from tensorwright.records.ranking import Selection
from tensorwright.records.record import Record, record_error
from tensorwright.records.session import SavedSession
from tensorwright.records.sqlite_file import FAULTS, copy_to_memory, explain, open_database
from tensorwright.records.sqlite_rows import COLUMNS, from_row, to_row
from tensorwright.records.store import RecordStore

_Result = TypeVar("_Result")
_PAGE = 512
_NAMES = ", ".join(COLUMNS)
_INSERT = f"INSERT OR IGNORE INTO record ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"
_TOP = f"""
    SELECT {_NAMES} FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY trace ORDER BY moment DESC, id DESC) AS age,
               MIN(id) OVER (PARTITION BY trace) AS first_id
        FROM record WHERE workload = ? AND target = ? AND hardware = ? AND threads = ?)
    WHERE age = 1 AND status = 'ok' ORDER BY median_s, first_id LIMIT ?"""


class SqliteStore(RecordStore):
    """See `RecordStore`.

    busy_s  seconds to wait for another process's transaction before the error "locked"
    spare   whether it goes on in memory, with a warning, when the file cannot be written
    Raises:  RecordError for a corrupt, foreign or locked file and for one of a newer tensorwright;
             OutputError if the file cannot be created, or on writing if it is read-only.
    """

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

    def append(self, records: Iterable[Record], texts: Iterable[WorkloadText] = ()) -> int:
        """Add records, and texts of workloads; return how many records were new."""
        rows = [to_row(record) for record in records]
        given = [tuple(text) for text in texts]

        def add(database: sqlite3.Connection) -> int:
            before = database.total_changes
            database.executemany(_INSERT, rows)
            added = database.total_changes - before
            database.executemany("INSERT OR IGNORE INTO workload VALUES (?, ?)", given)
            return added

        return self._write(add)

    def select(self, selection: Selection) -> Iterator[Record]:
        """The records of a selection, read in pages; no lock is held between two pages."""
        clause, values = _where(selection)
        question = f"SELECT id, {_NAMES} FROM record WHERE id > ?{clause} ORDER BY id LIMIT {_PAGE}"
        last_id, page = -1, self._ask(question, (-1, *values))
        while page:
            for row in page:
                yield from_row(row[1:], self.path)
                last_id = row[0]
            page = self._ask(question, (last_id, *values)) if len(page) == _PAGE else []

    def tally(self, selection: Selection) -> int:
        """The number of records of a selection."""
        clause, values = _where(selection)
        question = f"SELECT COUNT(*) FROM record WHERE id > ?{clause}"
        return int(self._ask(question, (-1, *values))[0][0])

    def top(
        self, k: int, *, workload: str, target: str, hardware: str, threads: int
    ) -> tuple[Record, ...]:
        """The k fastest traces by median, each once, the fastest first."""
        rows = self._ask(_TOP, (workload, target, hardware, threads, k))
        return tuple(from_row(row, self.path) for row in rows)

    def workloads(self) -> tuple[str, ...]:
        """The keys of all workloads with records, in the order of their first records."""
        rows = self._ask("SELECT workload FROM record GROUP BY workload ORDER BY MIN(id)")
        return tuple(row[0] for row in rows)

    def workload_text(self, workload: str) -> str | None:
        """The readable text of a workload."""
        rows = self._ask("SELECT text FROM workload WHERE workload = ?", (workload,))
        return rows[0][0] if rows else None

    def workload_texts(self) -> tuple[WorkloadText, ...]:
        """All texts, by key."""
        rows = self._ask("SELECT workload, text FROM workload ORDER BY workload")
        return tuple(WorkloadText(*row) for row in rows)

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

    def sessions(self) -> tuple[SavedSession, ...]:
        """All tuning sessions, the last updated first."""
        columns = ", ".join(SavedSession.__slots__)
        rows = self._ask(f"SELECT {columns} FROM session ORDER BY updated DESC, id DESC")
        return tuple(SavedSession(*row) for row in rows)

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                database.close()

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

    def _ask(self, question: str, values: tuple[object, ...] = ()) -> list[Any]:
        with self._open() as database:
            return database.execute(question, values).fetchall()


def _where(selection: Selection) -> tuple[str, tuple[str | int, ...]]:
    """SQL that continues "WHERE id > ?", with its values."""
    given = [(name, value) for name, value in selection.items if value is not None]
    return "".join(f" AND {name} = ?" for name, _ in given), tuple(value for _, value in given)
