"""The document of a report: one object of JSON, which the page shows and other programs read.

    format      "tensorwright report 1"       name, command, written (UTC)
    answer      the network's time, other runtimes, untuned, the roofline and the distance to it
    profile     as `profile --json`           parts, graphs, rivals, whole   as they were measured;
                                              rivals holds the untuned program, too
    workloads   the search of each            missing   the parts that are missing, and why

Times are in microseconds (`_us`), ratios plain numbers; a value without a measurement is absent or
null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tensorwright import base
from tensorwright.records import Record, RecordStore, SavedSession, Setting, Status, WorkloadText
from tensorwright.report import numbers
from tensorwright.schedule import Workload, format_trace, state_of
from tensorwright.tuning.learning import load_predictions, trace_digest
from tensorwright.tuning.selection import open_predictor
from tensorwright.tuning.session import Comparison, TuneResult
from tensorwright.tuning.space import default_trace

_PAUSE_S = 60.0  # between two records: the session had stopped meanwhile
_MOST_TRIALS = 1000  # of a workload; of more, the best ones and an even choice of the others


@dataclass(frozen=True, slots=True)
class SearchedWorkload:
    """A workload of a session.

    weight     how often a run calls it; of a network with open sizes, times the weight of its point
    workload   None if only its key is known
    default    the text of its schedule without a search; "" if that is unknown
    compared   the default and the best schedule in turns
    """

    key: str
    name: str
    weight: float
    workload: Workload | None = None
    default: str = ""
    compared: Comparison | None = None


def search_values(
    searched: Sequence[SearchedWorkload], setting: Setting, store: RecordStore
) -> list[numbers.Values]:
    """The searches, the most expensive workload first."""
    values = [_search(each, setting, store) for each in searched]
    return sorted(values, key=lambda each: -(each["weight"] * (each["best_us"] or 0.0)))


def _search(searched: SearchedWorkload, setting: Setting, store: RecordStore) -> numbers.Values:
    filters = setting.filters(searched.key)
    records = sorted(store.query(**filters), key=lambda record: record.when)
    expected = {each.trace: each for each in load_predictions(store, searched.key, setting)}
    best = store.best(**filters)
    own = [record for record in records if record.trace == searched.default]
    default = next((each for each in reversed(own) if each.status is Status.OK), None)
    values: numbers.Values = {
        "key": searched.key,
        "name": searched.name,
        "weight": numbers.short(searched.weight),
        "best_us": numbers.micro(best.median_s) if best is not None else None,
        "default_us": numbers.micro(default.median_s) if default is not None else None,
        "best_schedule": best.trace if best is not None else "",
        "default_schedule": searched.default,
        "failed": sum(not record.status.is_timed for record in records),
        "is_searched": any(record.trace != searched.default for record in records),
        "trials": [],
    }
    if searched.workload is not None:
        values["shape"] = " x ".join(map(str, searched.workload.outputs[0].shape))
    if searched.compared is not None:
        values["compared"] = numbers.comparison_values(searched.compared)
        values["default_us"] = numbers.micro(searched.compared.untuned_s)  # of one set of turns
        values["best_us"] = numbers.micro(searched.compared.tuned_s)
    every: list[tuple[bool, numbers.Values]] = []
    before_s, timed = math.inf, set[str]()
    for record, passed_s, best_s in zip(
        records, _seconds(records), _best_so_far(records), strict=True
    ):
        prediction = expected.get(trace_digest(record.trace))
        trial: numbers.Values = {"at_s": round(passed_s, 1), "status": record.status.value}
        if math.isfinite(best_s):
            trial["best_us"] = numbers.micro(best_s)
        if record.times_s:
            trial["time_us"] = numbers.micro(record.median_s)
        if prediction is not None:
            trial["predicted_us"] = numbers.micro(prediction.seconds)
            trial["round"] = prediction.round
        if record.trace == searched.default:
            trial["is_default"] = True
        if record.trace in timed:
            trial["is_again"] = True
        if record.status is Status.OK:
            timed.add(record.trace)
        every.append((best_s != before_s, trial))
        before_s = best_s
    values["trials"] = _some(every)
    values["trial_count"] = len(every)
    return values


def _best_so_far(records: Sequence[Record]) -> list[float]:
    """The least time until each record, of the first measurement of each schedule.

    It never rises.  At the end the fastest schedules are measured again, and `best_us` of the
    workload is the least of the last measurements: it may be above this curve.
    """
    best: list[float] = []
    now_s, timed = math.inf, set[str]()
    for record in records:
        if record.status is Status.OK and record.trace not in timed:
            timed.add(record.trace)
            now_s = min(now_s, record.median_s)
        best.append(now_s)
    return best


def _some(trials: Sequence[tuple[bool, numbers.Values]]) -> list[numbers.Values]:
    """All trials; of many, those that change the best one and every n-th. Each has its number."""
    stride = math.ceil(len(trials) / _MOST_TRIALS)
    return [
        {"number": number, **trial}
        for number, (changes_best, trial) in enumerate(trials, 1)
        if changes_best or number % stride == 0
    ]


def _seconds(records: Sequence[Record]) -> list[float]:
    """The moment of each record, in seconds of searching: pauses do not count."""
    moments = [datetime.fromisoformat(record.when).timestamp() for record in records]
    seconds, passed_s = [], 0.0
    for before, now in zip(moments[:1] + moments, moments, strict=False):
        step_s = max(0.0, now - before)
        passed_s += step_s if step_s < _PAUSE_S else 0.0
        seconds.append(passed_s)
    return seconds


def searched_of(
    result: TuneResult, setting: Setting, *, is_cold: bool
) -> tuple[SearchedWorkload, ...]:
    """The workloads of a session that has just ended.

    is_cold   whether their constants come from memory, as in a network
    """
    return tuple(
        SearchedWorkload(
            each.task.workload.key,
            each.task.workload.name,
            each.task.weight,
            each.task.workload,
            _default(each.task.workload, setting, is_cold=is_cold),
            each.compared,
        )
        for each in result.tasks
    )


def searched_of_workloads(
    workloads: Iterable[tuple[Workload, float]], setting: Setting, *, is_cold: bool
) -> tuple[SearchedWorkload, ...]:
    """The searched workloads, each with its weight."""
    return tuple(
        SearchedWorkload(
            each.key, each.name, weight, each, _default(each, setting, is_cold=is_cold)
        )
        for each, weight in workloads
    )


def searched_of_session(
    session: SavedSession, store: RecordStore, target: base.Target
) -> tuple[Setting, tuple[SearchedWorkload, ...]] | None:
    """The setting and the workloads of a stored session; None if it did not tune for the target."""
    arguments = json.loads(session.arguments)
    if not isinstance(arguments, dict) or not {"workloads", "seed"} <= arguments.keys():
        return None
    if arguments["target"] != target.key:
        return None
    setting = Setting(target, int(arguments["threads"]), str(arguments["hardware"]))
    texts = {each.workload: each for each in store.workload_texts()}
    searched = []
    for key, weight in arguments["workloads"].items():
        text = texts.get(key, WorkloadText(key, ""))
        workload = _read(text)
        name = workload.name if workload is not None else _name(text.text, key)
        default = "" if workload is None else _default(workload, setting, is_cold=True)
        searched.append(SearchedWorkload(key, name, float(weight), workload, default))
    return setting, tuple(searched)


def _name(text: str, key: str) -> str:
    """The name of a workload whose text cannot be read, from its first line."""
    words = text.split()
    return words[1] if words[:1] == ["workload"] and len(words) > 1 else key


def _read(text: WorkloadText) -> Workload | None:
    try:
        return text.program()
    except base.TensorwrightError:
        return None


def _default(workload: Workload, setting: Setting, *, is_cold: bool) -> str:
    """The schedule of the workload without tuning; "" if there is none."""
    target = setting.target
    try:
        predictor = open_predictor(target, setting.threads, is_cold=is_cold)
        if predictor is None:
            return format_trace(default_trace(state_of(workload), target))
        return format_trace(predictor.best(workload).trace)
    except base.TensorwrightError:
        return ""


FORMAT = "tensorwright report 1"
_NOT_SEARCHED = "no schedule but the untuned ones was measured: tensorwright optimize --minutes 10"
_MOST_NESTS = 16
_OF_MEASURED = (
    *("name", "command", "machine", "noise", "profile", "whole"),
    *("rivals", "alone", "parts", "graphs", "missing"),
)


def report_values(
    setting: Setting,
    store: RecordStore,
    searched: Sequence[SearchedWorkload],
    measured: Mapping[str, Any],
) -> numbers.Values:
    """The document, from records and from the measurements of `measure`.

    measured   the result of `measure`; at least a name and a command
    """
    values: numbers.Values = {"format": FORMAT, "written": base.now_utc()}
    values |= {name: measured[name] for name in _OF_MEASURED if name in measured}
    values.setdefault("machine", numbers.machine_values(setting))
    values.setdefault("missing", {})
    values["workloads"] = search_values(searched, setting, store)
    _add_rooflines(values["workloads"], values.get("profile"))
    alone = values.get("alone") or {"name": "", "times_us": {}}
    for each in values["workloads"]:
        if each["key"] in alone["times_us"]:
            each |= {"rival_us": alone["times_us"][each["key"]], "rival_name": alone["name"]}
    _add_nests(values["workloads"], searched, setting)
    values["answer"] = answer_values(values)
    return values


def profile_document(profile: Mapping[str, Any]) -> numbers.Values:
    """The document of a profile alone, the output of `profile --json`."""
    values: numbers.Values = {
        "format": FORMAT,
        "written": base.now_utc(),
        "name": profile["network"],
        "command": "",
        "profile": dict(profile),
        "workloads": [],
        "missing": {"workloads": "a profile has no records"},
    }
    values["answer"] = answer_values(values)
    return values


def answer_values(values: Mapping[str, Any]) -> numbers.Values:
    """The figures that a reader sees first.

    All times come from one set of measurements: the turns of this program, the untuned one and
    other runtimes; without these, the turns of a search; without these, the runs of the profile.
    """
    answer: numbers.Values = {}
    profile, turns = values.get("profile"), values.get("rivals") or {}
    untuned = turns.get("untuned") if "ours" in turns else values.get("whole")
    if profile:
        time_us = profile["network_us"]
        least_us = profile["roofline_share"] * time_us
        if "ours" in turns:
            time_us = turns["ours"]["time_us"]
        elif untuned:
            time_us = untuned["tuned_us"]
        else:
            answer["runs"] = profile.get("runs", 0)
        answer |= {"time_us": numbers.short(time_us), "roofline_us": numbers.short(least_us)}
        if least_us <= time_us:  # if not, the peak of the machine was measured too low
            answer["left_us"] = numbers.short(time_us - least_us)
        capped = sum(bool(step.get("above_roofline")) for step in profile.get("steps", ()))
        if capped:
            answer["capped"] = capped
        if profile.get("at"):
            answer["at"] = base.sizes_text(profile["at"])
    timed = [each for each in turns.get("rivals", ()) if each.get("ratio")]
    if timed:
        answer["rival"] = min(timed, key=lambda each: float(each["ratio"]))
    is_searched = any(each.get("is_searched", True) for each in values.get("workloads", ()))
    if untuned and (is_searched or not untuned["is_same"]):
        answer["untuned"] = untuned
    elif untuned:
        answer["unsearched"] = _NOT_SEARCHED
    return answer


def _add_rooflines(workloads: Sequence[numbers.Values], profile: Mapping[str, Any] | None) -> None:
    """Give each workload that has steps in the profile the least time of a call.

    A measured time is never below it: then the estimate was too large.
    """
    steps: dict[str, list[float]] = {}
    for step in profile["steps"] if profile else ():
        steps.setdefault(step["workload"], []).append(
            min(1.0, step["roofline_share"]) * step["time_us"]
        )
    for each in workloads:
        own = steps.get(each["key"])
        if own:
            estimate_us = sum(own) / len(own)
            each["roofline_us"] = numbers.short(min(estimate_us, each["best_us"] or estimate_us))


def _add_nests(
    workloads: Sequence[numbers.Values],
    searched: Sequence[SearchedWorkload],
    setting: Setting,
) -> None:
    """Give the most expensive workloads the loop nests of the default and the best schedule."""
    of_key = {each.key: each.workload for each in searched}
    for each in workloads[:_MOST_NESTS]:
        workload = of_key[each["key"]]
        schedules = {
            name: each[f"{name}_schedule"]
            for name in ("default", "best")
            if each[f"{name}_schedule"]
        }
        if workload is not None:
            each["program"] = str(workload)
            each["nests"] = numbers.nest_values(workload, setting.target, schedules)


def check_document(values: object, where: str) -> numbers.Values:
    """A document that was read.  Raises: UsageError if it is none of this version."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise base.UsageError(
            stage="report",
            where=where,
            reason="it is not a report of this version",
            remedy="give a file that `optimize --report`, `report` or `profile --json` has written",
        )
    return values
