"""A record store that lives as long as its process, for tests and for tuning without a file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from tensorwright.records.exchange import WorkloadText
from tensorwright.records.ranking import Selection
from tensorwright.records.record import Record
from tensorwright.records.session import SavedSession
from tensorwright.records.store import RecordStore


class MemoryStore(RecordStore):
    """See `RecordStore`; nothing is written to a file."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._records: dict[str, Record] = {}
        self._texts: dict[str, str] = {}
        self._sessions: dict[str, SavedSession] = {}

    def append(self, records: Iterable[Record], texts: Iterable[WorkloadText] = ()) -> int:
        """Add records, and texts of workloads; return how many records were new."""
        new = {record.digest: record for record in records}
        given = list(texts)
        with self._lock:
            before = len(self._records)
            for digest, record in new.items():
                self._records.setdefault(digest, record)
            for workload, text in given:
                self._texts.setdefault(workload, text)
            return len(self._records) - before

    def find_new(self, records: Iterable[Record]) -> tuple[Record, ...]:
        """The records that the store lacks, each once."""
        with self._lock:
            given = {record.digest: record for record in records}
            return tuple(r for digest, r in given.items() if digest not in self._records)

    def select(self, selection: Selection) -> Iterator[Record]:
        """The records of a selection, at the time when the first one is requested."""
        with self._lock:
            records = tuple(self._records.values())
        return (record for record in records if selection.matches(record))

    def workload_text(self, workload: str) -> str | None:
        """The readable text of a workload."""
        with self._lock:
            return self._texts.get(workload)

    def workload_texts(self) -> tuple[WorkloadText, ...]:
        """All texts, by key."""
        with self._lock:
            return tuple(WorkloadText(*item) for item in sorted(self._texts.items()))

    def remove(self, records: Iterable[Record]) -> int:
        """Remove records; return how many of them the store had."""
        given = list(records)
        with self._lock:
            return sum(self._records.pop(record.digest, None) is not None for record in given)

    def save_session(self, session: SavedSession) -> None:
        """Add a tuning session, or replace the one of the same id."""
        with self._lock:
            self._sessions[session.id] = session

    def sessions(self) -> tuple[SavedSession, ...]:
        """All tuning sessions, the last updated first."""
        with self._lock:
            sessions = tuple(self._sessions.values())
        return tuple(sorted(sessions, key=lambda s: (s.updated, s.id), reverse=True))

    def close(self) -> None:
        """Do nothing: the records live as long as the object."""
