"""A record as a row of the table `record`. Lists are JSON texts; no column is opaque bytes."""

from __future__ import annotations

import json
import math

from tensorwright.base import RecordError
from tensorwright.records.record import Record, Status, to_json

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
    return (
        record.digest,
        record.schema,
        record.tool_version,
        record.workload,
        record.target,
        record.hardware,
        record.threads,
        record.trace,
        to_json(dict(record.decisions)),
        to_json(record.times_s),
        median_s if math.isfinite(median_s) else None,
        record.status.value,
        record.error,
        record.seed,
        record.round,
        record.when,
    )


def from_row(row: tuple[object, ...], path: str) -> Record:
    """Build the record of a row.

    Raises:  RecordError if somebody else has changed the row into something that is no record.
    """
    value = dict(zip(COLUMNS, row, strict=True))
    try:
        return Record(
            workload=str(value["workload"]),
            target=str(value["target"]),
            hardware=str(value["hardware"]),
            threads=int(str(value["threads"])),
            trace=str(value["trace"]),
            times_s=tuple(json.loads(str(value["times_s"]))),
            status=Status(str(value["status"])),
            error=str(value["error"]),
            decisions=tuple(sorted(json.loads(str(value["decisions"])).items())),
            seed=int(str(value["seed"])),
            round=int(str(value["round"])),
            when=str(value["moment"]),
            tool_version=str(value["tool"]),
            schema=int(str(value["schema"])),
        )
    except (ValueError, TypeError, AttributeError, RecordError) as error:
        raise RecordError(
            stage="records",
            where=f"file {path}, record {value['digest']}",
            reason=f"the row holds no record: {error}",
            remedy="delete that row, or move the file away and start a new one",
        ) from error
