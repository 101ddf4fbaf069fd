"""A record: its checks, its line, its name."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.base import RecordError, now_utc
from tensorwright.records import (
    Record,
    Status,
    is_current,
    record_tool,
    to_line,
    with_times,
)
from tensorwright.records.record import from_fields, parse_object

GOOD = Record("w", "cpu", "box", 2, "split(i, 4)", (0.5, 0.25, 1.0), Status.OK)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text("abcXYZ09_é\n", min_size=1, max_size=8)
times = st.floats(min_value=1e-12, max_value=1e6)
records = st.builds(
    Record,
    workload=names,
    target=names,
    hardware=names,
    threads=st.integers(1, 512),
    trace=texts,
    times_s=st.lists(times, min_size=1, max_size=5).map(tuple),
    status=st.sampled_from(Status),
    error=texts,
    decisions=st.dictionaries(names, st.integers(-(10**20), 10**20), max_size=3).map(
        lambda values: tuple(sorted(values.items()))
    ),
    seed=st.integers(0, 2**63 - 1),
    round=st.integers(0, 10**6),
)


@given(records)
@settings(max_examples=50)
def test_a_line_reads_back_as_the_same_record(record: Record) -> None:
    line = to_line(record)
    assert "\n" not in line
    read = from_fields(parse_object(line, "here"), "here")
    assert read == record
    assert read.digest == record.digest


def test_the_median_and_the_moment() -> None:
    assert GOOD.median_s == 0.5
    assert replace(GOOD, times_s=(), status=Status.CRASHED).median_s == math.inf
    assert GOOD.when <= now_utc()
    assert replace(GOOD, seed=1).digest != GOOD.digest


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"workload": ""}, "workload is empty"),
        ({"target": 3}, "target must be text"),
        ({"error": "\ud800"}, "error must be text"),
        ({"threads": 0}, "threads must be a whole number, at least 1, not 0"),
        ({"threads": True}, "threads must be a whole number"),
        ({"seed": -1}, "seed must be a whole number, at least 0"),
        ({"seed": 2**63}, "seed must be a whole number"),
        ({"times_s": ()}, "status ok needs times_s"),
        ({"times_s": (), "status": Status.CENSORED}, "status censored needs times_s"),
        ({"times_s": (math.nan,)}, "times_s must hold finite seconds above 0, not nan"),
        ({"times_s": (math.inf,)}, "times_s must hold finite seconds"),
        ({"times_s": (0.0,)}, "times_s must hold finite seconds"),
        ({"times_s": ("1",)}, "times_s must hold finite seconds"),
        ({"decisions": (("b", 1), ("a", 1))}, "decisions must be sorted pairs"),
        ({"decisions": (("a", 1.5),)}, "decisions must be sorted pairs"),
        ({"when": "2026-01-31"}, "when must look like"),
        ({"when": "2026-13-31T12:00:00.000000Z"}, "when must look like"),
    ],
)
def test_a_bad_field_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        replace(GOOD, **changes)  # type: ignore[arg-type]
    assert caught.value.reason.startswith(reason)
    assert caught.value.where.startswith("record of ")


def change_line(**changes: object) -> str:
    return json.dumps(json.loads(to_line(GOOD)) | changes)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "not a record: lacks 'decisions', lacks 'error'"),
        (change_line(colour="red"), "not a record: unknown 'colour'"),
        (change_line(schema=2), "schema 2, written by a newer tensorwright"),
        (change_line(schema="1"), "schema must be a whole number"),
        (change_line(status="fine"), "unknown status 'fine'"),
        (change_line(status=[]), "unknown status []"),
        (change_line(times_s=0.5), "times_s must be a list"),
        (change_line(times_s=[None]), "times_s must hold finite seconds"),
        (change_line(decisions={"a": "b"}), "decisions must be sorted pairs"),
        (change_line(when=""), "when is empty"),
    ],
)
def test_a_bad_line_is_refused_with_its_place(line: str, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        from_fields(parse_object(line, "file x.jsonl, line 7"), "file x.jsonl, line 7")
    assert caught.value.where == "file x.jsonl, line 7"
    assert caught.value.reason.startswith(reason)
    assert caught.value.remedy


def test_a_record_knows_the_sources_that_made_it() -> None:
    version, _, digest = record_tool().partition("+")
    assert version
    assert re.fullmatch(r"[0-9a-f]{12}", digest)
    assert GOOD.tool_version == record_tool()
    assert is_current(GOOD)
    older = replace(GOOD, tool_version="0.1.0")
    assert from_fields(parse_object(to_line(older), "here"), "here") == older
    assert not is_current(older)
    again = with_times(older, (0.5,))
    assert is_current(again)


def test_a_line_without_a_tool_is_refused() -> None:
    line = to_line(GOOD).replace(record_tool(), "")
    with pytest.raises(RecordError, match="tool is empty"):
        from_fields(parse_object(line, "here"), "here")
