"""The best schedule on record, or a word about why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import doubled

from tensorwright.records import MemoryStore, Record, Setting, Status, best_record
from tensorwright.schedule import format_trace

TARGET = native_target()


def store_of(*times: tuple[str, float]) -> MemoryStore:
    store = MemoryStore()
    store.append(
        Record("doubled", TARGET.key, "here", 2, trace, (time_s,), Status.OK)
        for trace, time_s in times
    )
    return store


def test_the_fastest() -> None:
    store = store_of(("split(y, i, [8])", 0.002), ("split(y, i, [4])", 0.001))
    best = best_record(store, doubled(), Setting(TARGET, 2, "here"))
    trace = None if best is None else best[1]
    assert trace is not None
    assert format_trace(trace) == "split(y, i, [4])"


def test_nothing_for_another_machine_or_another_number_of_threads() -> None:
    store = store_of(("split(y, i, [8])", 0.002))
    assert best_record(store, doubled(), Setting(TARGET, 2, "there")) is None
    assert best_record(store, doubled(), Setting(TARGET, 1, "here")) is None
    assert best_record(store, doubled("other"), Setting(TARGET, 2, "here")) is None


@pytest.mark.parametrize("trace", ["conjure(y)", "split(y, nowhere, [2])"])
def test_a_record_that_is_of_no_use_is_passed_over_and_told(trace: str) -> None:
    store = store_of((trace, 0.001), ("split(y, i, [8])", 0.002))
    with pytest.warns(RuntimeWarning) as told:
        found = best_record(store, doubled(), Setting(TARGET, 2, "here"))
    assert found is not None
    assert found[0].trace == "split(y, i, [8])"
    (text,) = (str(each.message) for each in told)
    assert text.startswith("workload doubled (doubled): the record of ")
    assert "is skipped" in text
    assert trace in text


def test_this_version_is_believed_before_an_older_one() -> None:
    store = store_of(("split(y, i, [8])", 0.002))
    (own,) = store.query()
    old = replace(own, trace="split(y, i, [4])", times_s=(0.001,), tool_version="0.0.1")
    store.append([old])
    found = best_record(store, doubled(), Setting(TARGET, 2, "here"))
    assert found is not None
    assert found[0] == own
    only_old = MemoryStore()
    only_old.append([old])
    found = best_record(only_old, doubled(), Setting(TARGET, 2, "here"))
    assert found is not None
    assert found[0] == old
