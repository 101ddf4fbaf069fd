"""JSON lines: one fact per line, a record, the text of a workload, or a tuning session.

The text of a workload ends with a line of JSON: its program as data, from which it is read back.
Tensors are written in an order in which each comes after those that it reads, so that reading them
needs no deep stack.

{"kind": "workload", "schema": 1, "workload": KEY, "text": TEXT}
{"kind": "record", "schema": 1, ...}                    see `record.py`
{"kind": "session", "schema": 1, ...}                   see `record.py`
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from tensorwright import expr
from tensorwright.base import TensorwrightError, atomic_writer, from_data, to_data
from tensorwright.graph import Workload, program
from tensorwright.records.record import (
    SCHEMA,
    Record,
    SavedSession,
    from_fields,
    is_encodable,
    lines_of,
    parse_object,
    record_error,
    session_from_fields,
    to_json,
    to_line,
)
from tensorwright.schedule import Workload as AnyWorkload


class WorkloadText(NamedTuple):
    """Key of a workload and its text: lines for people, then its program as data."""

    workload: str
    text: str

    @classmethod
    def of(cls, workload: AnyWorkload) -> Self:
        """The text of a workload."""
        return cls(workload.key, f"{workload}\n{json.dumps(workload_data(workload))}")

    def program(self) -> Workload:
        """The workload.  Raises: RecordError for a text without the program of its key."""
        try:
            workload = read_workload(json.loads(self.text.rpartition("\n")[2]))
            key = program(workload.outputs, constants=workload.constants).key
        except (ValueError, TypeError, KeyError, AttributeError, TensorwrightError) as error:
            reason = f"its text has no program that this version reads: {error}"
        else:
            if key == self.workload:
                return workload
            reason = f"its text has the program of {key}"
        raise record_error(f"workload {self.workload}", reason)


def workload_data(workload: AnyWorkload) -> dict[str, Any]:
    """A workload, as plain data."""
    tensors = expr.topological_order(*workload.outputs)
    return {
        "name": workload.name,
        "key": workload.key,
        "program": to_data((tensors, workload.inputs, workload.outputs)),
        "constants": sorted(workload.constants),
    }


def read_workload(data: dict[str, Any]) -> Workload:
    """The inverse of `workload_data`.  Raises: ValueError for anything else."""
    _, inputs, outputs = from_data(data["program"], expr.EXPRESSION_KINDS)
    return Workload(data["name"], inputs, frozenset(data["constants"]), outputs, data["key"])


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of some lines, in order."""

    records: tuple[Record, ...]
    texts: tuple[WorkloadText, ...]
    sessions: tuple[SavedSession, ...]


def write_lines(
    path: str | os.PathLike[str], records: Iterable[Record], texts: Iterable[WorkloadText]
) -> int:
    """Write texts, then records; return the number of records.

    Raises:  OutputError if the file cannot be written; an old file is then unchanged.
    """
    count = 0
    with atomic_writer(path) as file:
        for text in texts:
            line = to_json({"kind": "workload", "schema": SCHEMA, **text._asdict()})
            file.write(line.encode() + b"\n")
        for record in records:
            file.write(to_line(record).encode() + b"\n")
            count += 1
    return count


def read_lines(path: str | os.PathLike[str]) -> Facts:
    """Read a whole file.

    Raises:  RecordError for a file that cannot be read, and for the first bad line.
    """
    records: list[Record] = []
    texts: list[WorkloadText] = []
    sessions: list[SavedSession] = []
    for _, where, line in lines_of(path):
        match _parse_line(line, where):
            case Record() as record:
                records.append(record)
            case WorkloadText() as text:
                texts.append(text)
            case SavedSession() as session:
                sessions.append(session)
    return Facts(tuple(records), tuple(texts), tuple(sessions))


def _parse_line(line: str, where: str) -> Record | WorkloadText | SavedSession:
    fields = parse_object(line, where)
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
