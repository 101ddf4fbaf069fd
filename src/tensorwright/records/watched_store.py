"""Note the queries to a record store and their answers, and check whether they are still the same.

Compiling reads some of the records, and each answer decides what is read next.  So if all noted
queries have the same answers again, compiling gives the same result, whatever else changed.

Source: Mokhov, Mitchell, Peyton Jones, "Build systems a la carte", ICFP 2018, section 4.2.2
(verifying traces).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from tensorwright.records.exchange import WorkloadText
from tensorwright.records.ranking import Selection
from tensorwright.records.record import Record
from tensorwright.records.session import SavedSession
from tensorwright.records.store import RecordStore

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
