"""The search of each workload, from the records: the trials, their moments and their times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tensorwright.records import Record, RecordStore, Status
from tensorwright.report.numbers import Values, comparison_values, micro, short
from tensorwright.schedule import Workload
from tensorwright.tuning.learning import load_predictions, trace_digest
from tensorwright.tuning.session import Comparison, SessionSetting

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
    searched: Sequence[SearchedWorkload], setting: SessionSetting, store: RecordStore
) -> list[Values]:
    """The searches, the most expensive workload first."""
    values = [_search(each, setting, store) for each in searched]
    return sorted(values, key=lambda each: -(each["weight"] * (each["best_us"] or 0.0)))


def _search(searched: SearchedWorkload, setting: SessionSetting, store: RecordStore) -> Values:
    filters = setting.filters(searched.key)
    records = sorted(store.query(**filters), key=lambda record: record.when)
    expected = {each.trace: each for each in load_predictions(store, **filters)}
    best = store.best(**filters)
    own = [record for record in records if record.trace == searched.default]
    default = next((each for each in reversed(own) if each.status is Status.OK), None)
    values: Values = {
        "key": searched.key,
        "name": searched.name,
        "weight": short(searched.weight),
        "best_us": micro(best.median_s) if best is not None else None,
        "default_us": micro(default.median_s) if default is not None else None,
        "best_schedule": best.trace if best is not None else "",
        "default_schedule": searched.default,
        "failed": sum(not record.status.is_timed for record in records),
        "is_searched": any(record.trace != searched.default for record in records),
        "trials": [],
    }
    if searched.workload is not None:
        values["shape"] = " x ".join(map(str, searched.workload.outputs[0].shape))
    if searched.compared is not None:
        values["compared"] = comparison_values(searched.compared)
        values["default_us"] = micro(searched.compared.untuned_s)  # of one set of turns
        values["best_us"] = micro(searched.compared.tuned_s)
    every: list[tuple[bool, Values]] = []
    before_s, timed = math.inf, set[str]()
    for record, passed_s, best_s in zip(
        records, _seconds(records), _best_so_far(records), strict=True
    ):
        prediction = expected.get(trace_digest(record.trace))
        trial: Values = {"at_s": round(passed_s, 1), "status": record.status.value}
        if math.isfinite(best_s):
            trial["best_us"] = micro(best_s)
        if record.times_s:
            trial["time_us"] = micro(record.median_s)
        if prediction is not None:
            trial["predicted_us"] = micro(prediction.seconds)
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


def _some(trials: Sequence[tuple[bool, Values]]) -> list[Values]:
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
