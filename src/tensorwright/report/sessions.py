"""The searched workloads of a report, from the result of a session or from a stored session."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tensorwright.base import Target, TensorwrightError
from tensorwright.records import RecordStore, SavedSession
from tensorwright.report.searches import SearchedWorkload
from tensorwright.schedule import Workload, format_trace, state_of
from tensorwright.tuning.datasets import parse_workload
from tensorwright.tuning.selection import open_predictor
from tensorwright.tuning.session import SessionSetting, TuneResult
from tensorwright.tuning.space import default_trace


def searched_of(
    result: TuneResult, setting: SessionSetting, *, is_cold: bool
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
    workloads: Iterable[tuple[Workload, float]], setting: SessionSetting, *, is_cold: bool
) -> tuple[SearchedWorkload, ...]:
    """The searched workloads, each with its weight."""
    return tuple(
        SearchedWorkload(
            each.key, each.name, weight, each, _default(each, setting, is_cold=is_cold)
        )
        for each, weight in workloads
    )


def searched_of_session(
    session: SavedSession, store: RecordStore, target: Target
) -> tuple[SessionSetting, tuple[SearchedWorkload, ...]] | None:
    """The setting and the workloads of a stored session; None if it did not tune for the target."""
    arguments = json.loads(session.arguments)
    if not isinstance(arguments, dict) or not {"workloads", "seed"} <= arguments.keys():
        return None
    if arguments["target"] != target.key:
        return None
    setting = SessionSetting(target, int(arguments["threads"]), str(arguments["hardware"]))
    texts = {each.workload: each.text for each in store.workload_texts()}
    searched = []
    for key, weight in arguments["workloads"].items():
        workload = _read(texts.get(key, ""))
        name = workload.name if workload is not None else _name(texts.get(key, ""), key)
        default = "" if workload is None else _default(workload, setting, is_cold=True)
        searched.append(SearchedWorkload(key, name, float(weight), workload, default))
    return setting, tuple(searched)


def _name(text: str, key: str) -> str:
    """The name of a workload whose text cannot be read, from its first line."""
    words = text.split()
    return words[1] if words[:1] == ["workload"] and len(words) > 1 else key


def _read(text: str) -> Workload | None:
    try:
        return parse_workload(text) if text else None
    except TensorwrightError:
        return None


def _default(workload: Workload, setting: SessionSetting, *, is_cold: bool) -> str:
    """The schedule of the workload without tuning; "" if there is none."""
    target = setting.target
    try:
        predictor = open_predictor(target, setting.threads, is_cold=is_cold)
        if predictor is None:
            return format_trace(default_trace(state_of(workload), target))
        return format_trace(predictor.best(workload).trace)
    except TensorwrightError:
        return ""
