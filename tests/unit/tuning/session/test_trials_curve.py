"""One search is stopped at marks, each of which gives an executable; no times are judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import trials_curve
from benchmarks.trials_curve import Plan, Point, make_executables, marks_of, rises, rows_of, to_data
from tests.targets import native_target
from tests.unit.tuning.session.test_in_network import network

from tensorwright.drivers.tune import setting_of
from tensorwright.records import Record, RecordStore, Setting, Status, load_choice
from tensorwright.runtime import load

TARGET = native_target()


def test_marks_double_up_to_the_last() -> None:
    assert marks_of(1024) == (0, 16, 32, 64, 128, 256, 512, 1024)
    assert marks_of(100) == (0, 16, 32, 64, 100)
    assert marks_of(16) == (0, 16)
    assert marks_of(8) == (0, 8)


def points(*times_ms: float) -> tuple[Point, ...]:
    return tuple(Point(n, time_ms, 0.01, 0.0) for n, time_ms in enumerate(times_ms))


def test_a_mark_that_is_slower_than_an_earlier_one_is_told() -> None:
    assert rises(points(4.0, 4.05, 3.0, 3.2, 3.04, 2.0)) == (3,)
    assert rises(points(4.0, 4.2, 4.1), noise=0.01) == (1, 2)
    assert rises(points(4.0)) == ()
    assert rises(()) == ()


def test_rows_compare_with_untuned_and_with_the_mark_before() -> None:
    rows = rows_of(points(4.0, 2.0, 1.0))
    assert [row[2] for row in rows] == ["1.000", "2.000", "4.000"]
    assert [row[3] for row in rows] == ["1.000", "2.000", "2.000"]


def programs(path: Path) -> list[Record]:
    """The records, one of each program: rankings measure some again."""
    with RecordStore(path) as store:
        found = {(record.workload, record.trace): record for record in store.query()}
    return list(found.values())


def test_a_search_goes_on_from_mark_to_mark_and_every_mark_ends_as_a_search_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = network()
    plan = Plan("small", TARGET, 1, 0, tmp_path / "out")
    assert make_executables(plan, parts, (0, 2, 5)) == (0, 2, 5)
    first, last = (len(programs(plan.records(mark))) for mark in (2, 5))
    assert first == max(2, len(parts.workloads))  # all defaults are one round
    assert last == 5
    assert len(programs(plan.folder / "records.sqlite")) == 5
    with RecordStore(plan.records(5)) as store:
        chosen = load_choice(store, parts, Setting(TARGET, 1, setting_of(TARGET, 1).hardware))
    timed = [each for each in programs(plan.records(5)) if each.status is Status.OK]
    has_others = len(timed) > len(parts.workloads)  # than the defaults: two trials may be dropped
    assert len(chosen) == (len(parts.workloads) if has_others else 0)
    assert all(load(plan.executable(mark)).host_operators == () for mark in (0, 2, 5))
    monkeypatch.setattr(trials_curve, "go_on", None)  # what is there is not searched for again
    assert make_executables(plan, parts, (0, 2, 5)) == (0, 2, 5)
    data = to_data(replace(plan, model="light:squeezenet"), points(2.0, 1.0))
    assert data["rises"] == ()
    assert [point["time_ms"] for point in data["points"]] == [2.0, 1.0]


def test_marks_end_where_nothing_is_left_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan("small", TARGET, 1, 0, tmp_path / "out")
    monkeypatch.setattr(trials_curve, "go_on", lambda *_: False)
    assert make_executables(plan, network(), (0, 16, 32)) == (0,)
