"""A record as a row of the table `record`. Lists are JSON texts; no column is opaque bytes."""

from __future__ import annotations

import json
import math
from typing import Any

from tensorwright.base import RecordError
from tensorwright.records.record import Record, build_record, to_fields, to_json

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
