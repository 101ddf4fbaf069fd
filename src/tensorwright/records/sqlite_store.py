"""The default record store: one SQLite file.

Write-ahead logging lets several processes read while one writes, and every `append` is one
transaction that has reached the disk when it returns. Its file must lie on a local disk: network
file systems do not give SQLite the locks it needs.

A record as a row of the table `record`. Lists are JSON texts; no column is opaque bytes.

Open the SQLite file of the records, and turn SQLite's errors into tensorwright's.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any, TypeVar

from tensorwright.base import OutputError, RecordError, make_folder, now_utc
from tensorwright.records.record import (
    SCHEMA,
    TOOL_VERSION,
    Record,
    SavedSession,
    build_record,
    record_error,
    to_fields,
    to_json,
)
from tensorwright.records.store import RecordStore, Selection, WorkloadText

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

CREATE = """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE workload (workload TEXT PRIMARY KEY, text TEXT NOT NULL);
    CREATE TABLE session (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, model TEXT NOT NULL, arguments TEXT NOT NULL,
        state TEXT NOT NULL, started TEXT NOT NULL, updated TEXT NOT NULL);
    CREATE TABLE record (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, schema INTEGER NOT NULL,
        tool TEXT NOT NULL, workload TEXT NOT NULL, target TEXT NOT NULL, hardware TEXT NOT NULL,
        threads INTEGER NOT NULL, trace TEXT NOT NULL, decisions TEXT NOT NULL,
        times_s TEXT NOT NULL, median_s REAL, status TEXT NOT NULL, error TEXT NOT NULL,
        seed INTEGER NOT NULL, round INTEGER NOT NULL, moment TEXT NOT NULL);
    CREATE INDEX setting ON record (workload, target, hardware, threads);
"""


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


APPLICATION_ID = 0x74776772  # "twgr": identifies the file, even for the program `file`
FAULTS = (sqlite3.Error, UnicodeDecodeError)  # Python decodes what SQLite says of a damaged file
_MAGIC = b"SQLite format 3\x00"
_MOVE = "move the file away, or name another one"
_SALVAGE = (
    "save what can be read with `sqlite3 FILE .recover | sqlite3 NEW`, or move the file away: "
    "tuning then starts from the beginning"
)
_FULL = ("SQLITE_FULL", "SQLITE_IOERR")
_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")
_CORRUPT = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_UNWRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")


def open_database(path: str, busy_s: float) -> sqlite3.Connection:
    """Open the file, or create it with empty tables.

    If the user may not write to the file or its folder, it is opened for reading: a tuned store may
    be part of a read-only image.
    Raises:  RecordError for a corrupt, foreign, locked or newer file; OutputError if it cannot be
             created. The file is not changed in any of these cases.
    """
    is_read_only = _is_read_only(Path(path))
    if not is_read_only:
        make_folder(Path(path).absolute().parent)
    _check_header(path)
    database: sqlite3.Connection | None = None
    try:
        database = sqlite3.connect(
            Path(path).absolute().as_uri() + ("?mode=ro&immutable=1" if is_read_only else ""),
            uri=True,
            timeout=busy_s,
            isolation_level=None,
            check_same_thread=False,
        )
        if is_read_only:
            _check_owner(database, path)
            return database
        _create_or_check(database, path)
        _use_write_ahead_log(database, busy_s)
        return database
    except BaseException as error:
        if database is not None:
            database.close()
        if isinstance(error, FAULTS):
            raise explain(path, error) from error
        raise


def copy_to_memory(database: sqlite3.Connection | None, path: str) -> sqlite3.Connection:
    """A database in memory with what another one holds, which is closed; None holds nothing."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if database is not None:
        database.backup(memory)
        database.close()
    _create_or_check(memory, path)
    return memory


def explain(path: str, error: sqlite3.Error | UnicodeDecodeError) -> RecordError | OutputError:
    """The error as a message for the user, with its remedy."""
    name = getattr(error, "sqlite_errorname", None) or ""
    where = f"file {path}"
    if name.startswith(_FULL):
        return OutputError(
            stage="records",
            where=where,
            reason=f"cannot be written ({error}): is the disk full? None of this was stored",
            remedy="free some space and repeat; earlier records are safe",
        )
    if name.startswith(_UNWRITABLE):
        return OutputError(
            stage="records",
            where=where,
            reason=f"cannot be opened for writing ({error})",
            remedy="choose a folder that you may write to (knob home)",
        )
    if name.startswith(_LOCKED):
        reason, remedy = "another process has locked it", "wait for that process, or end it"
    elif name.startswith(_CORRUPT) or isinstance(error, UnicodeDecodeError):
        reason, remedy = f"the record store is corrupt ({error})", _SALVAGE
    else:
        reason, remedy = f"the record store fails: {error}", _MOVE
    return record_error(where, reason, remedy)


def _is_read_only(path: Path) -> bool:
    """Whether the file exists and cannot be written; SQLite writes beside it, too."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _check_header(path: str) -> None:
    """Refuse a file of another kind before SQLite opens it."""
    try:
        with Path(path).open("rb") as file:
            header = file.read(len(_MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise record_error(
            f"file {path}",
            f"cannot be read: {error.strerror}",
            "check the path and its permissions",
        ) from error
    if header and header != _MAGIC:
        raise _foreign(path, "it is not an SQLite database")


def _create_or_check(database: sqlite3.Connection, path: str) -> None:
    if not _is_empty(database):
        _check_owner(database, path)
        return
    database.execute("BEGIN IMMEDIATE")
    if _is_empty(database):  # if not, another process has created the tables
        for statement in CREATE.split(";"):
            database.execute(statement)
        facts = (("schema", str(SCHEMA)), ("tool", TOOL_VERSION), ("created", now_utc()))
        database.executemany("INSERT INTO meta VALUES (?, ?)", facts)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute("COMMIT")
    _check_owner(database, path)


def _is_empty(database: sqlite3.Connection) -> bool:
    tables = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
    owner = database.execute("PRAGMA application_id").fetchone()[0]
    return bool(tables == 0 and owner == 0)


def _check_owner(database: sqlite3.Connection, path: str) -> None:
    owner = database.execute("PRAGMA application_id").fetchone()[0]
    if owner != APPLICATION_ID:
        raise _foreign(path, "it is the database of another program")
    rows = database.execute("SELECT value FROM meta WHERE name = 'schema'").fetchall()
    schema = int(rows[0][0]) if rows and str(rows[0][0]).isdecimal() else 0
    if schema > SCHEMA:
        raise record_error(
            f"file {path}",
            f"schema {schema}, made by a newer tensorwright; this one reads up to {SCHEMA}",
            "upgrade tensorwright, or name another file",
        )
    if schema < 1:
        reason = "the record store is corrupt (it names no schema)"
        raise record_error(f"file {path}", reason, _SALVAGE)


def _use_write_ahead_log(database: sqlite3.Connection, busy_s: float) -> None:
    """Switch the file to write-ahead logging, once; SQLite itself does not wait for a lock here."""
    deadline = time.monotonic() + busy_s
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            is_locked = (error.sqlite_errorname or "").startswith(_LOCKED)
            if not is_locked or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    database.execute("PRAGMA synchronous = FULL")


def _foreign(path: str, reason: str) -> RecordError:
    return record_error(
        f"file {os.fspath(path)}", f"{reason}, not a record store of tensorwright", _MOVE
    )


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
