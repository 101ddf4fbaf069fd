"""The search of a workload, from its records and from what was expected of them."""

from __future__ import annotations

from tensorwright.base import CpuTarget
from tensorwright.pipeline import chosen_target
from tensorwright.records import MemoryStore, Record, Status
from tensorwright.report import SearchedWorkload, report_values
from tensorwright.report.searches import search_values
from tensorwright.tuning.learning import (
    Prediction,
    load_predictions,
    save_predictions,
    trace_digest,
)
from tensorwright.tuning.session import SessionSetting

KEY = "0123456789abcdef"


def setting() -> SessionSetting:
    target = chosen_target("x86-64-avx2")
    assert isinstance(target, CpuTarget)
    return SessionSetting(target, 2, "here")


def record(trace: str, time_us: float, second: int, status: Status = Status.OK) -> Record:
    return Record(
        **setting().filters(KEY),
        trace=trace,
        times_s=(time_us * 1e-6,) if status.is_timed else (),
        status=status,
        error="" if status is Status.OK else "why",
        when=f"2026-01-31T12:{second // 60:02d}:{second % 60:02d}.000000Z",
    )


def searched(store: MemoryStore) -> dict[str, object]:
    (values,) = search_values([SearchedWorkload(KEY, "conv", 2.0, default="a")], setting(), store)
    return values


def test_the_best_time_is_that_of_valid_measurements() -> None:
    store = MemoryStore()
    store.append([record("a", 90, 0), record("b", 10, 1), record("c", 60, 3), record("b", 70, 4)])
    values = searched(store)
    trials = values["trials"]
    assert isinstance(trials, list)
    assert [each["best_us"] for each in trials] == [90, 10, 10, 60]
    assert [each["at_s"] for each in trials] == [0, 1, 3, 4]
    assert (values["best_us"], values["default_us"]) == (60, 90)


def test_pauses_are_no_seconds_of_searching() -> None:
    store = MemoryStore()
    store.append([record("a", 90, 0), record("b", 80, 5), record("c", 70, 3000)])
    trials = searched(store)["trials"]
    assert isinstance(trials, list)
    assert [each["at_s"] for each in trials] == [0, 5, 5]


def test_failures_are_counted_and_have_no_time() -> None:
    store = MemoryStore()
    store.append([record("a", 90, 0), record("b", 0, 1, Status.CRASHED)])
    values = searched(store)
    trials = values["trials"]
    assert isinstance(trials, list)
    assert values["failed"] == 1
    assert "time_us" not in trials[1]


def test_predictions_stand_beside_the_measurements() -> None:
    store, where = MemoryStore(), setting().filters(KEY)
    store.append([record("a", 90, 0), record("b", 80, 1)])
    first = Prediction(trace_digest("b"), 3, 7e-5)
    save_predictions(store, **where, predictions=[first])
    later = Prediction(trace_digest("b"), 9, 1e-3), Prediction(trace_digest("a"), 9, 2e-3)
    save_predictions(store, **where, predictions=later)
    assert set(load_predictions(store, **where)) == {first, later[1]}
    trials = searched(store)["trials"]
    assert isinstance(trials, list)
    assert [(each["predicted_us"], each["round"]) for each in trials] == [(2000, 9), (70, 3)]


def test_of_many_trials_those_that_matter_stay() -> None:
    store = MemoryStore()
    store.append(record(str(number), 100 + (number % 7), number) for number in range(3000))
    store.append([record("fast", 5, 3000)])
    trials = searched(store)["trials"]
    assert isinstance(trials, list)
    assert len(trials) < 1100
    assert trials[-1]["best_us"] == 5
    assert [each["number"] for each in trials] == sorted({each["number"] for each in trials})


def test_a_report_of_records_says_what_was_not_measured() -> None:
    store = MemoryStore()
    store.append([record("a", 90, 0)])
    measured = {"name": "net", "command": "", "missing": {"profile": "nobody measured"}}
    values = report_values(setting(), store, [SearchedWorkload(KEY, "conv", 1.0)], measured)
    assert values["missing"] == {"profile": "nobody measured"}
    assert values["answer"] == {}
    assert [each["key"] for each in values["workloads"]] == [KEY]
