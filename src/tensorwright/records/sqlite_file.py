"""The SQLite file of the records: open it, and turn SQLite's errors into tensorwright's.

Write-ahead logging lets several processes read while one writes.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from tensorwright.base import OutputError, RecordError, make_folder, now_utc
from tensorwright.records.record import SCHEMA, TOOL_VERSION, record_error

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
