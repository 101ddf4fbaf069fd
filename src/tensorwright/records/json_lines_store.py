"""A record store in one text file that a person can read, grep and put under version control.

Appending is one locked write of whole lines. Only `remove` rewrites the file: it replaces it by a
new one. A process that is killed within a write leaves an incomplete last line. Readers skip this
line, and the next append removes it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tensorwright import base
from tensorwright.records.lines import WorkloadText, parse_lines, text_to_line
from tensorwright.records.record import Record, SavedSession, record_error, session_to_line, to_line
from tensorwright.records.store import MemoryStore, RecordStore

_STARTS = (b'{"decisions": ', b'{"kind": ', b'{"arguments": ')


class JsonLinesStore(RecordStore):
    """See `RecordStore`. A store in memory has all records; each call reads only new lines.

    busy_s  seconds to wait for another process's write before the error "locked"
    Raises:  RecordError for a bad line, with file and line; OutputError if the file cannot be
             created.
    """

    def __init__(self, path: str | os.PathLike[str], busy_s: float = 30.0) -> None:
        self.path = os.fspath(path)
        self._busy_s = busy_s
        self._lock = threading.RLock()
        self._memory = MemoryStore()
        self._file = -1
        self._read_bytes = 0
        self._read_lines = 0
        self._ends_line = True
        self._is_closed = False
        base.make_folder(Path(path).absolute().parent)
        try:
            self.rows("workloads")
        except BaseException:
            self.close()
            raise

    def append(self, records: Iterable[Record], texts: Iterable[WorkloadText] = ()) -> int:
        """Add records, and texts of workloads; return how many records were new."""
        given, given_texts = {record.digest: record for record in records}, list(texts)
        with self._open():
            memory = self._memory
            new = [each for digest, each in given.items() if not memory.rows("record", digest)]
            fresh = [each for each in given_texts if memory.workload_text(each.workload) is None]
            self._add([text_to_line(text) for text in fresh] + [to_line(each) for each in new])
            return len(new)

    def remove(self, records: Iterable[Record]) -> int:
        """Remove records; the file is replaced in one step."""
        given = list(records)
        with self._open():
            removed = self._memory.remove(given)
            if removed:
                self._replace()
            return removed

    def save_session(self, session: SavedSession) -> None:
        """Add a tuning session, or replace the one of the same id: its last line counts."""
        with self._open():
            self._add([session_to_line(session)])

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._lock:
            self._is_closed = True
            self._forget()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Hold the lock of the file, after reading all of it."""
        with self._lock:
            if self._is_closed:
                raise self._error("the store has been closed", "open it again")
            while True:
                self._open_file()
                try:
                    with base.hold_lock(self._file, self._busy_s):
                        if base.is_same_file(self._file, Path(self.path)):
                            self._read_new()
                            with self._memory._open() as database:
                                yield database
                            return
                except TimeoutError:
                    raise self._error(
                        "another process has locked it", "wait for that process, or end it"
                    ) from None
                self._forget()

    def _open_file(self) -> None:
        if self._file >= 0:
            return
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise base.output_error(self.path, error) from error

    def _forget(self) -> None:
        """Close the replaced file, and start reading from the beginning."""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._read_bytes, self._read_lines, self._ends_line = -1, 0, 0, True
        self._memory = MemoryStore()

    def _read_new(self) -> None:
        """Read the whole lines that any process has added."""
        size = os.fstat(self._file).st_size
        content = os.pread(self._file, size - self._read_bytes, self._read_bytes)
        end = content.rfind(b"\n") + 1
        if not _is_torn(content[end:]):
            end = len(content)
        whole = content[:end]
        facts = parse_lines(whole, self.path, self._read_lines + 1)
        self._memory.append(facts.records, facts.texts)
        for session in facts.sessions:
            self._memory.save_session(session)
        if whole:
            self._ends_line = whole.endswith(b"\n")
        self._read_bytes += len(whole)
        self._read_lines += whole.count(b"\n")

    def _add(self, lines: list[str]) -> None:
        """Write lines after the last whole line; they are on the disk when it returns."""
        if not lines:
            return
        start = "" if self._ends_line else "\n"
        content = (start + "".join(line + "\n" for line in lines)).encode()
        try:
            os.ftruncate(self._file, self._read_bytes)
            _write_all(self._file, content, self._read_bytes)
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._read_bytes)
            raise self._unwritable(error) from error
        self._read_new()

    def _replace(self) -> None:
        memory = self._memory
        with base.atomic_writer(self.path) as file:
            for text in memory.workload_texts():
                file.write(text_to_line(text).encode() + b"\n")
            for record in memory.query():
                file.write(to_line(record).encode() + b"\n")
            for session in reversed(memory.sessions()):
                file.write(session_to_line(session).encode() + b"\n")

    def _unwritable(self, error: OSError) -> base.OutputError:
        cause = base.output_error(self.path, error)
        return base.OutputError(
            stage="records",
            where=cause.where,
            reason=f"{cause.reason}; none of this was stored",
            remedy="free some space and repeat; earlier records are safe",
        )

    def _error(self, reason: str, remedy: str) -> base.RecordError:
        where = f"file {self.path}"
        return record_error(where, reason, remedy)


def _is_torn(tail: bytes) -> bool:
    """Whether the bytes after the last newline are an incomplete line of a store.

    A line that a user added without its newline is complete. Bytes with which no line of a store
    begins must stay, so that the parser refuses them.
    """
    is_ours = any(tail[: len(start)] == start[: len(tail)] for start in _STARTS)
    if not is_ours:
        return False
    try:
        json.loads(tail)
    except ValueError:
        return True
    return False


def _write_all(file: int, content: bytes, offset: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(file, view, offset)
        view = view[written:]
        offset += written
