"""The contract of a record store; `memory_store`, `json_lines_store`, `sqlite_store` fulfil it.

JSON lines: one fact per line, a record, the text of a workload, or a tuning session.

{"kind": "workload", "schema": 1, "workload": KEY, "text": TEXT}
{"kind": "record", "schema": 1, ...}                    see `record.py`
{"kind": "session", "schema": 1, ...}                   see `record.py`

The valid records and their order, which are the same in every store.

A trace may have several measurements: a lucky first one, and slower ones when the best traces are
measured again. The newest record of a trace is valid, and the trace counts only if it is OK.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from tensorwright.base import atomic_writer, now_utc
from tensorwright.records.record import (
    SCHEMA,
    Record,
    SavedSession,
    Status,
    from_fields,
    is_encodable,
    parse_object,
    record_error,
    session_from_fields,
    to_json,
    to_line,
)


class WorkloadText(NamedTuple):
    """Key of a workload and its text for people."""

    workload: str
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of some lines, in order."""

    records: tuple[Record, ...]
    texts: tuple[WorkloadText, ...]
    sessions: tuple[SavedSession, ...]


def text_to_line(text: WorkloadText) -> str:
    """The text of a workload as one JSON line, without its newline."""
    return to_json({"kind": "workload", "schema": SCHEMA, **text._asdict()})


def write_lines(
    path: str | os.PathLike[str], records: Iterable[Record], texts: Iterable[WorkloadText]
) -> int:
    """Write texts, then records; return the number of records.

    Raises:  OutputError if the file cannot be written; an old file is then unchanged.
    """
    count = 0
    with atomic_writer(path) as file:
        for text in texts:
            file.write(text_to_line(text).encode() + b"\n")
        for record in records:
            file.write(to_line(record).encode() + b"\n")
            count += 1
    return count


def read_lines(path: str | os.PathLike[str]) -> Facts:
    """Read a whole file.

    Raises:  RecordError for a file that cannot be read, and for the first bad line.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise record_error(
            f"file {path}", f"cannot be read: {error.strerror}", "check the path"
        ) from error
    return parse_lines(content, path)


def parse_lines(content: bytes, path: str | os.PathLike[str], first_line: int = 1) -> Facts:
    """Read lines; empty ones are allowed.

    Raises:  RecordError that names the first bad line.
    """
    records: list[Record] = []
    texts: list[WorkloadText] = []
    sessions: list[SavedSession] = []
    for number, line in enumerate(content.split(b"\n"), first_line):
        where = f"file {path}, line {number}"
        if not line.strip():
            continue
        match _parse_line(line, where):
            case Record() as record:
                records.append(record)
            case WorkloadText() as text:
                texts.append(text)
            case SavedSession() as session:
                sessions.append(session)
    return Facts(tuple(records), tuple(texts), tuple(sessions))


def _parse_line(line: bytes, where: str) -> Record | WorkloadText | SavedSession:
    try:
        fields = parse_object(line.decode(), where)
    except UnicodeDecodeError:
        raise record_error(where, "not UTF-8 text") from None
    match fields.get("kind"):
        case "record":
            return from_fields(fields, where)
        case "workload":
            return _read_text(fields, where)
        case "session":
            return session_from_fields(fields, where)
        case kind:
            raise record_error(
                where,
                f"unknown kind of fact {kind!r}",
                "give a file that `tensorwright records export` wrote",
            )


def _read_text(fields: dict[str, object], where: str) -> WorkloadText:
    workload, text = fields.get("workload"), fields.get("text")
    for value in (workload, text):
        if not isinstance(value, str) or not value or not is_encodable(value):
            reason = "a workload line needs the texts 'workload' and 'text'"
            raise record_error(where, reason)
    return WorkloadText(str(workload), str(text))


@dataclass(frozen=True, slots=True)
class Selection:
    """The values that selected records have; None stands for any."""

    workload: str | None = None
    target: str | None = None
    hardware: str | None = None
    threads: int | None = None
    status: Status | None = None

    def matches(self, record: Record) -> bool:
        """Whether the record is selected."""
        return all(wanted is None or getattr(record, name) == wanted for name, wanted in self.items)

    @property
    def items(self) -> tuple[tuple[str, str | int | None], ...]:
        """The name and value of every field."""
        return tuple((name, getattr(self, name)) for name in self.__slots__)


class Setting(NamedTuple):
    """Records compete only with records of the same setting."""

    workload: str
    target: str
    hardware: str
    threads: int


def setting_of(record: Record) -> Setting:
    """The setting of a record."""
    return Setting(record.workload, record.target, record.hardware, record.threads)


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


def find_surplus(
    records: Iterable[Record], keep: int, failures_before: str | None
) -> tuple[Record, ...]:
    """The records that `RecordStore.prune` removes: timed records beyond the best, old failures."""
    settings: dict[Setting, list[Record]] = {}
    for record in records:
        settings.setdefault(setting_of(record), []).append(record)
    surplus = []
    for group in settings.values():
        kept = {record.digest for record in rank(group)[:keep]}
        for record in group:
            if record.status.is_timed:
                is_surplus = record.digest not in kept
            else:
                is_surplus = failures_before is not None and record.when < failures_before
            if is_surplus:
                surplus.append(record)
    return tuple(surplus)


class RecordStore(Protocol):
    """A set of records, workload texts and tuning sessions.

    A set:       appending a record that the store has changes nothing.
    Order:       records come out in the order in which they were first appended; those of one call
                 of `append` stay together.
    Threads:     every method may be called from several threads at once.
    Processes:   several processes may have one file open, append to it and read it; each sees what
                 the others have appended before its call began. A store object does not cross a
                 fork or a pickle: open the path again.
    Durability:  when `append` has returned, its records survive a killed process. If it raises, or
                 the process dies within it, an SQLite store has none of its records, and a
                 JSON-lines store has some whole records and no incomplete one.
    Iterators:   may be left unfinished; records appended meanwhile may or may not come out.
    Errors:      RecordError for a corrupt, foreign or locked file, OutputError for a full disk or
                 a missing permission; the file is never overwritten in such a case.
    """

    has_lost_its_file: bool = False
    """Whether it goes on in memory because its disk is full: what is appended now ends with it."""

    @abstractmethod
    def append(self, records: Iterable[Record], texts: Iterable[WorkloadText] = ()) -> int:
        """Add records, and texts of workloads; return how many records were new.

        If a workload already has a text, that text stays.
        """

    @abstractmethod
    def select(self, selection: Selection) -> Iterator[Record]:
        """The records of a selection; `query` is its short form."""

    @abstractmethod
    def workload_texts(self) -> tuple[WorkloadText, ...]:
        """All texts, by key."""

    @abstractmethod
    def remove(self, records: Iterable[Record]) -> int:
        """Remove records; return how many of them the store had."""

    @abstractmethod
    def save_session(self, session: SavedSession) -> None:
        """Add a tuning session, or replace the one of the same id."""

    @abstractmethod
    def sessions(self) -> tuple[SavedSession, ...]:
        """All tuning sessions, the last updated first."""

    @abstractmethod
    def close(self) -> None:
        """Close the file. Closing twice does no harm."""

    def query(
        self,
        *,
        workload: str | None = None,
        target: str | None = None,
        hardware: str | None = None,
        threads: int | None = None,
        status: Status | None = None,
    ) -> Iterator[Record]:
        """The records that have these values; None stands for any."""
        return self.select(Selection(workload, target, hardware, threads, status))

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
        selection = Selection(workload, target, hardware, threads, status)
        return self.tally(selection)

    def tally(self, selection: Selection) -> int:
        """The number of records of a selection; `count` is its short form."""
        return sum(1 for _ in self.select(selection))

    def top(
        self, k: int, *, workload: str, target: str, hardware: str, threads: int
    ) -> tuple[Record, ...]:
        """The k fastest traces by median, each once, the fastest first.

        The newest record of a trace (by `when`) is valid, and the trace counts only if it is OK: a
        second, slower measurement replaces a lucky first one.
        """
        return rank(self.select(Selection(workload, target, hardware, threads)))[:k]

    def surplus(
        self, keep: int, failures_before: str | None = None, workload: str | None = None
    ) -> tuple[Record, ...]:
        """The records beyond the `keep` best of each setting, of one workload or of all.

        Failures stay, because they save measurements, except those with a `when` before
        `failures_before`.
        """
        return tuple(find_surplus(self.select(Selection(workload)), keep, failures_before))

    def prune(self, keep: int, failures_before: str | None = None) -> int:
        """Remove the `surplus`; return how many records were removed."""
        return self.remove(self.surplus(keep, failures_before))

    def workloads(self) -> tuple[str, ...]:
        """The keys of all workloads with records, in the order of their first records."""
        return tuple(dict.fromkeys(record.workload for record in self.select(Selection())))

    def workload_text(self, workload: str) -> str | None:
        """The readable text of a workload, so that a record can be explained without its model."""
        return dict(self.workload_texts()).get(workload)

    def best(self, *, workload: str, target: str, hardware: str, threads: int) -> Record | None:
        """The first of `top`; None without an OK record."""
        best = self.top(1, workload=workload, target=target, hardware=hardware, threads=threads)
        return best[0] if best else None

    def session(self, id_or_name: str) -> SavedSession | None:
        """The session of that id, or otherwise the last updated one of that name."""
        sessions = self.sessions()
        for session in sessions:
            if session.id == id_or_name:
                return session
        return next((session for session in sessions if session.name == id_or_name), None)

    def sessions_about(self, *texts: str) -> tuple[SavedSession, ...]:
        """The sessions whose arguments contain some texts, in the order of `sessions`."""
        return tuple(
            each for each in self.sessions() if all(text in each.arguments for text in texts)
        )

    def renew_session(self, session: SavedSession) -> None:
        """Save a session; if one of its id was saved before, the time of its start is kept."""
        before = self.session(session.id)
        if before is not None and before.id == session.id:
            session = replace(session, started=before.started, updated=now_utc())
        self.save_session(session)

    def export_jsonl(
        self, path: str | os.PathLike[str], workloads: Collection[str] | None = None
    ) -> int:
        """Write records and workload texts as JSON lines: the whole file or nothing.

        workloads   the keys of the workloads to write; all if None
        Returns the number of records. Sessions belong to this machine and are not written.
        """
        records, texts = self.select(Selection()), self.workload_texts()
        if workloads is not None:
            records = (each for each in records if each.workload in workloads)
            texts = tuple(each for each in texts if each.workload in workloads)
        return write_lines(path, records, texts)

    def import_jsonl(self, path: str | os.PathLike[str]) -> int:
        """Add the records of `export_jsonl`, all or none; return how many records were new.

        Raises:  RecordError that names the file and the line.
        """
        facts = read_lines(path)
        return self.append(facts.records, facts.texts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
