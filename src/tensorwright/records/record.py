"""One measurement, as a frozen value and as one JSON line.

A record is a fact: this trace of this workload, on this hardware with this number of threads, took
these times or failed in this way. Two equal records are the same fact, so a store keeps one.

    {"kind": "record", "schema": 1, "tool": "0.1.0+5e6f7a8b9c0d", "workload": "9f3c...",
     "target": "x86-64-v4", "hardware": "x86_64-2c-avx512-1a2b3c4d", "threads": 2,
     "trace": "split(i, 32) ...", "decisions": {"t0": 32}, "times_s": [0.00121, 0.0012],
     "status": "ok", "error": "", "seed": 0, "round": 3, "when": "2026-01-31T12:00:00.000000Z"}

The trace is text, and nothing in this folder reads it. The tool is the version of the
package and a digest of the sources that made and measured the program.

The state of a tuning session in the store, from which the session can continue.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import re
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any

from tensorwright.artifacts import SOURCES
from tensorwright.base import RecordError, Target, now_utc, source_digest
from tensorwright.machine import detect_hardware

SCHEMA = 1
"""The version of the form of records, in every line and in every database."""

_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def _read_version() -> str:
    try:
        return metadata.version("tensorwright")
    except metadata.PackageNotFoundError:
        return "0+source"


TOOL_VERSION = _read_version()
"""The version of this package; "0+source" if it runs from a source folder."""

_MEASURED_BY = ("runtime", "tuning/measuring")
_DIGITS = 12


@functools.cache
def record_tool() -> str:
    """The tool of new records, "0.1.0+5e6f7a8b9c0d".

    It is the version and a digest of the sources that turn a trace into a program and measure it.
    """
    digest = source_digest(*SOURCES, *_MEASURED_BY)[:_DIGITS]
    return f"{TOOL_VERSION.partition('+')[0]}+{digest}"


class Status(StrEnum):
    """How a measurement ended."""

    OK = "ok"
    BUILD_ERROR = "build_error"
    BUILD_TIMEOUT = "build_timeout"
    RUN_ERROR = "run_error"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    WRONG_ANSWER = "wrong_answer"
    OUT_OF_MEMORY = "out_of_memory"
    LOST = "lost"
    """All devices of a farm that got it went away, one after the other."""
    CENSORED = "censored"
    """Stopped after the first runs, because it is clearly slower than the best one."""

    @property
    def is_timed(self) -> bool:
        """Whether such a record has the program's times."""
        return self in (Status.OK, Status.CENSORED)


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement of one program.

    workload   structural key of the workload                 target    name of the target
    hardware   fingerprint, `Hardware.fingerprint`            threads   their number
    trace      the schedule as text                           decisions sorted pairs (name, value)
    times_s    seconds per call, one per repeat               status    how it ended
    error      text of the failure, "" for OK                 seed      of the search
    round      of the search, from 0                          when      UTC, as `now_utc` writes it
    tool_version   the tool that made and measured the program; `record_tool()` if ""

    Raises:  RecordError for a field that is out of range; `where` is "record of WORKLOAD".
    """

    workload: str
    target: str
    hardware: str
    threads: int
    trace: str
    times_s: tuple[float, ...]
    status: Status
    error: str = ""
    decisions: tuple[tuple[str, int], ...] = ()
    seed: int = 0
    round: int = 0
    when: str = ""
    tool_version: str = ""
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if not self.when:
            object.__setattr__(self, "when", now_utc())
        if not self.tool_version:
            object.__setattr__(self, "tool_version", record_tool())
        fault = _find_fault(self)
        if fault:
            raise record_error(f"record of {self.workload!r}", fault, "correct this field")

    @property
    def median_s(self) -> float:
        """Median seconds per call; infinite without times."""
        return statistics.median(self.times_s) if self.times_s else math.inf

    @property
    def digest(self) -> str:
        """The identity of the fact: equal records have equal digests."""
        return hashlib.sha256(to_line(self).encode()).hexdigest()


def to_fields(record: Record) -> dict[str, object]:
    """The fields of a record by their names in lines."""
    fields = asdict(record)
    fields["decisions"] = dict(record.decisions)
    fields["tool"] = fields.pop("tool_version")
    return fields


def to_line(record: Record) -> str:
    """The record as one JSON line, without its newline; floats keep every bit."""
    return to_json({"kind": "record", **to_fields(record)})


def from_fields(fields: dict[str, object], where: str) -> Record:
    """The record of a decoded line.  Raises: RecordError whose `where` is the one given."""
    schema = fields.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise record_error(
            where,
            f"schema {schema}, written by a newer tensorwright; this one reads up to {SCHEMA}",
            "upgrade tensorwright",
        )
    expected = (set(Record.__slots__) - {"tool_version"}) | {"tool", "kind"}
    missing, unknown = sorted(expected - fields.keys()), sorted(fields.keys() - expected)
    if missing or unknown:
        words = [f"lacks {name!r}" for name in missing] + [f"unknown {name!r}" for name in unknown]
        raise record_error(where, "not a record: " + ", ".join(words))
    try:
        return build_record(fields)
    except RecordError as error:
        raise record_error(where, error.reason) from None


def build_record(fields: dict[str, Any]) -> Record:
    """The record of complete fields, the inverse of `to_fields`.

    Raises:  RecordError for a field of another type or out of range.
    """
    times, decisions = fields["times_s"], fields["decisions"]
    if not isinstance(times, list) or not isinstance(decisions, dict):
        raise record_error("record", "times_s must be a list and decisions an object")
    if fields["status"] not in [status.value for status in Status]:
        raise record_error("record", f"unknown status {fields['status']!r}")
    for name in ("when", "tool"):
        if fields[name] == "":
            raise record_error("record", f"{name} is empty")
    plain = {name: value for name, value in fields.items() if name not in ("kind", "tool")}
    plain |= {
        "times_s": tuple(float(t) if type(t) is int else t for t in times),
        "status": Status(fields["status"]),
        "decisions": tuple(sorted(decisions.items())),
        "tool_version": fields["tool"],
    }
    return Record(**plain)


def _find_fault(record: Record) -> str:
    """The fault in the fields, or "". Types are checked, too, because JSON does not check them."""
    texts = ("workload", "target", "hardware", "trace", "error", "when", "tool_version")
    for name in texts:
        text: object = getattr(record, name)
        if not isinstance(text, str) or not is_encodable(text):
            return f"{name} must be text, not {text!r}"
        if not text and name not in ("trace", "error"):
            return f"{name} is empty"
    for name, least in (("threads", 1), ("seed", 0), ("round", 0), ("schema", 1)):
        number = getattr(record, name)
        if type(number) is not int or not least <= number < 2**63:
            return f"{name} must be a whole number, at least {least}, not {number!r}"
    for time_s in record.times_s:
        if type(time_s) is not float or not 0 < time_s < math.inf:
            return f"times_s must hold finite seconds above 0, not {time_s!r}"
    if record.status.is_timed and not record.times_s:
        return f"status {record.status.value} needs times_s"
    if not _are_decisions(record.decisions):
        return f"decisions must be sorted pairs of a name and a whole number: {record.decisions!r}"
    if not _is_moment(record.when):
        return f"when must look like 2026-01-31T12:00:00.000000Z, not {record.when!r}"
    return ""


def _are_decisions(pairs: tuple[tuple[str, int], ...]) -> bool:
    are_typed = all(type(name) is str and type(value) is int for name, value in pairs)
    return are_typed and pairs == tuple(sorted(dict(pairs).items()))


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return _WHEN.fullmatch(text) is not None


def is_encodable(text: str) -> bool:
    """Whether UTF-8 can encode the text; JSON may have half a surrogate pair, which it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_json(value: object) -> str:
    """JSON on one line, with sorted keys and without NaN."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


def lines_of(path: str | os.PathLike[str]) -> Iterator[tuple[int, str, str]]:
    """The lines of a file that are not empty: number, name for errors, text.

    Raises:  RecordError for a file that cannot be read, and for a line that is not UTF-8.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise record_error(f"file {path}", reason, "check the path") from error
    for number, line in enumerate(content.split(b"\n"), 1):
        where = f"file {path}, line {number}"
        try:
            text = line.decode().strip()
        except UnicodeDecodeError:
            raise record_error(where, "not UTF-8 text") from None
        if text:
            yield number, where, text


def parse_object(line: str, where: str) -> dict[str, object]:
    """Decode a line that must hold one JSON object.

    Raises:  RecordError whose `where` is the one given.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise record_error(where, f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise record_error(where, "not a JSON object")
    return value


def with_times(record: Record, times_s: tuple[float, ...]) -> Record:
    """A new measurement of the same trace, which is appended when the best are ranked again."""
    fresh = replace(record, times_s=times_s, status=Status.OK, error="", when=now_utc())
    return replace(fresh, tool_version=record_tool())


_CORRECT = "correct or remove the line"


def record_error(where: str, reason: str, remedy: str = _CORRECT) -> RecordError:
    """An error of a record or its store, with its position."""
    return RecordError(stage="records", where=where, reason=reason, remedy=remedy)


def is_current(record: Record) -> bool:
    """Whether the present sources made it; other sources may compile a trace to other code."""
    return record.tool_version == record_tool()


@dataclass(frozen=True, slots=True)
class Setting:
    """Where programs run; `hardware` is the fingerprint of this machine if ""."""

    target: Target
    threads: int
    hardware: str = ""

    def __post_init__(self) -> None:
        if not self.hardware:
            object.__setattr__(self, "hardware", detect_hardware().fingerprint)

    @property
    def fields(self) -> dict[str, Any]:
        """Those that records and kept facts have of it."""
        return {"target": self.target.key, "hardware": self.hardware, "threads": self.threads}

    def filters(self, workload: str) -> dict[str, Any]:
        """The filters with which a record store gives the records of a workload."""
        return {"workload": workload, **self.fields}


@dataclass(frozen=True, slots=True)
class SavedSession:
    """One tuning session. `arguments` and `state` are JSON texts, opaque to the store.

    id         unique; saving a session replaces the one of the same id
    name       for people; not unique                model    name of the model
    arguments  how it was started                    state    its progress, for resuming
    started    UTC, as `now_utc` writes it           updated  UTC, in the same form

    Raises:  RecordError for an empty id or a text that is not JSON.
    """

    id: str
    name: str
    model: str
    arguments: str = "{}"
    state: str = "{}"
    started: str = ""
    updated: str = ""

    def __post_init__(self) -> None:
        moment = now_utc()
        for field in ("started", "updated"):
            if not getattr(self, field):
                object.__setattr__(self, field, moment)
        fault = _session_fault(self)
        if fault:
            raise record_error(f"session {self.id!r}", fault, "correct this field")


def session_id(arguments: str) -> str:
    """The id of the session that was started with some arguments."""
    return hashlib.sha256(arguments.encode()).hexdigest()[:16]


def _session_fault(session: SavedSession) -> str:
    for field, text in asdict(session).items():
        if not isinstance(text, str) or not is_encodable(text):
            return f"{field} must be text, not {text!r}"
    for field in ("arguments", "state"):
        try:
            json.loads(getattr(session, field))
        except ValueError as error:
            return f"{field} is not JSON: {error}"
    return "" if session.id else "id is empty"


def session_from_fields(fields: dict[str, object], where: str) -> SavedSession:
    """Read a decoded line back.

    Raises:  RecordError whose `where` is the one given.
    """
    texts = {name: text for name, text in fields.items() if name not in ("kind", "schema")}
    if set(texts) != set(SavedSession.__slots__):
        reason = "a session has the fields " + ", ".join(SavedSession.__slots__)
        raise record_error(where, reason)
    try:
        return SavedSession(**{name: str(text) for name, text in texts.items()})
    except RecordError as error:
        raise record_error(where, error.reason) from None
