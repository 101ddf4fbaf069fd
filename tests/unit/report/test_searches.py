"""The search of a workload, from its records and from what was expected of them."""

from __future__ import annotations

from typing import Any

from tensorwright.base import CpuTarget
from tensorwright.compile_options import CompileOptions
from tensorwright.records import MemoryStore, Record, Setting, Status
from tensorwright.report import SearchedWorkload, report_values
from tensorwright.report.document import search_values
from tensorwright.tuning.learning import (
    Prediction,
    load_predictions,
    save_predictions,
    trace_digest,
)

KEY = "0123456789abcdef"


def setting() -> Setting:
    target = CompileOptions(target="x86-64-avx2").machine
    assert isinstance(target, CpuTarget)
    return Setting(target, 2, "here")


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
    assert [each["best_us"] for each in trials] == [90, 10, 10, 10]
    assert [each.get("is_again", False) for each in trials] == [False, False, False, True]
    assert [each["at_s"] for each in trials] == [0, 1, 3, 4]
    assert (values["best_us"], values["default_us"]) == (60, 90)


def test_the_curve_of_the_best_never_rises() -> None:
    store = MemoryStore()
    times = (90, 40, 70, 40, 95, 60, 41, 52)
    store.append(record("abac"[n % 4] + "d" * (n // 4), times[n], n) for n in range(8))
    trials = searched(store)["trials"]
    assert isinstance(trials, list)
    curve = [each["best_us"] for each in trials]
    assert curve == sorted(curve, reverse=True)
    firsts = [each["time_us"] for each in trials if not each.get("is_again")]
    assert curve[-1] == min(firsts)


def test_untuned_schedules_alone_are_no_search() -> None:
    store = MemoryStore()
    store.append([record("a", 90, 0), record("a", 80, 1)])
    assert searched(store)["is_searched"] is False
    store.append([record("b", 95, 2)])
    assert searched(store)["is_searched"] is True


def measured(**more: Any) -> dict[str, Any]:
    """Measurements of three moments, which disagree."""
    step = {"workload": KEY, "time_us": 100.0, "roofline_share": 1.7}
    profile = {"network_us": 400.0, "roofline_share": 0.25, "runs": 9, "steps": [step]}
    untuned = {"untuned_us": 1300.0, "tuned_us": 500.0, "speed_up": 2.6, "is_same": False}
    rival = {"name": "ONNX Runtime", "time_us": 750.0, "ratio": 1.5}
    ours = {"time_us": 500.0, "least_us": 490.0, "most_us": 510.0}
    return {
        "name": "net",
        "command": "",
        "profile": profile,
        "whole": {"untuned_us": 5860.0, "tuned_us": 1129.0, "speed_up": 5.19, "is_same": False},
        "rivals": {"ours": ours, "untuned": untuned, "rivals": [rival]},
        **more,
    }


def report(**more: Any) -> dict[str, Any]:
    store = MemoryStore()
    store.append([record("a", 90, 0), record("b", 80, 1)])
    return report_values(setting(), store, [SearchedWorkload(KEY, "c", 1.0)], measured(**more))


def test_the_first_figures_come_from_one_set_of_turns() -> None:
    answer = report()["answer"]
    assert answer["time_us"] == 500.0
    assert answer["time_us"] * answer["rival"]["ratio"] == answer["rival"]["time_us"]
    assert answer["time_us"] * answer["untuned"]["speed_up"] == answer["untuned"]["untuned_us"]
    assert answer["time_us"] == answer["roofline_us"] + answer["left_us"]
    assert "runs" not in answer


def test_without_these_turns_the_figures_are_those_of_the_search_or_of_the_profile() -> None:
    of_search = report(rivals={})["answer"]
    assert (of_search["time_us"], of_search["untuned"]["tuned_us"]) == (1129.0, 1129.0)
    values = measured(rivals={})
    del values["whole"]
    alone = report_values(setting(), MemoryStore(), [], values)["answer"]
    assert (alone["time_us"], alone["runs"]) == (400.0, 9)


def test_steps_whose_own_time_counts_as_the_least_are_said() -> None:
    assert "capped" not in report()["answer"]
    profile = measured()["profile"]
    profile["steps"][0]["above_roofline"] = "it computes less"
    assert report(profile=profile)["answer"]["capped"] == 1


def test_no_least_time_is_above_a_measured_one() -> None:
    (workload,) = report()["workloads"]
    assert workload["roofline_us"] == workload["best_us"] == 80.0


def test_the_same_program_is_said_to_be_unsearched_where_nothing_was_tried() -> None:
    turns = measured()["rivals"]
    turns["untuned"] |= {"is_same": True, "speed_up": 1.0, "untuned_us": 500.0}
    assert report(rivals=turns)["answer"]["untuned"]["is_same"]
    store = MemoryStore()
    store.append([record("a", 90, 0)])
    only_default = [SearchedWorkload(KEY, "c", 1.0, default="a")]
    answer = report_values(setting(), store, only_default, measured(rivals=turns))["answer"]
    assert "untuned" not in answer
    assert "optimize --minutes" in answer["unsearched"]


def test_the_sizes_of_an_open_network_are_said() -> None:
    profile = measured()["profile"] | {"at": {"batch": 1, "sequence": 128}}
    assert report(profile=profile)["answer"]["at"] == "batch=1,sequence=128"


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
    store, where = MemoryStore(), (KEY, setting())
    store.append([record("a", 90, 0), record("b", 80, 1)])
    first = Prediction(trace_digest("b"), 3, 7e-5)
    save_predictions(store, *where, [first])
    later = Prediction(trace_digest("b"), 9, 1e-3), Prediction(trace_digest("a"), 9, 2e-3)
    save_predictions(store, *where, later)
    assert set(load_predictions(store, *where)) == {first, later[1]}
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
