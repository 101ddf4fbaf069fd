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

from collections.abc import Mapping, Sequence
from typing import Any

from tensorwright.base import UsageError, now_utc, sizes_text
from tensorwright.records import RecordStore
from tensorwright.report.conditions import machine_values
from tensorwright.report.nests import nest_values
from tensorwright.report.numbers import Values, short
from tensorwright.report.searches import SearchedWorkload, search_values
from tensorwright.tuning.session import SessionSetting

FORMAT = "tensorwright report 1"
_NOT_SEARCHED = "no schedule but the untuned ones was measured: tensorwright optimize --minutes 10"
_MOST_NESTS = 16
_OF_MEASURED = (
    *("name", "command", "machine", "noise", "profile", "whole"),
    *("rivals", "alone", "parts", "graphs", "missing"),
)


def report_values(
    setting: SessionSetting,
    store: RecordStore,
    searched: Sequence[SearchedWorkload],
    measured: Mapping[str, Any],
) -> Values:
    """The document, from records and from the measurements of `measure`.

    measured   the result of `measure`; at least a name and a command
    """
    values: Values = {"format": FORMAT, "written": now_utc()}
    values |= {name: measured[name] for name in _OF_MEASURED if name in measured}
    values.setdefault("machine", machine_values(setting))
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


def profile_document(profile: Mapping[str, Any]) -> Values:
    """The document of a profile alone, the output of `profile --json`."""
    values: Values = {
        "format": FORMAT,
        "written": now_utc(),
        "name": profile["network"],
        "command": "",
        "profile": dict(profile),
        "workloads": [],
        "missing": {"workloads": "a profile has no records"},
    }
    values["answer"] = answer_values(values)
    return values


def answer_values(values: Mapping[str, Any]) -> Values:
    """The figures that a reader sees first.

    All times come from one set of measurements: the turns of this program, the untuned one and
    other runtimes; without these, the turns of a search; without these, the runs of the profile.
    """
    answer: Values = {}
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
        answer |= {"time_us": short(time_us), "roofline_us": short(least_us)}
        if least_us <= time_us:  # if not, the peak of the machine was measured too low
            answer["left_us"] = short(time_us - least_us)
        capped = sum(bool(step.get("above_roofline")) for step in profile.get("steps", ()))
        if capped:
            answer["capped"] = capped
        if profile.get("at"):
            answer["at"] = sizes_text(profile["at"])
    timed = [each for each in turns.get("rivals", ()) if each.get("ratio")]
    if timed:
        answer["rival"] = min(timed, key=lambda each: float(each["ratio"]))
    is_searched = any(each.get("is_searched", True) for each in values.get("workloads", ()))
    if untuned and (is_searched or not untuned["is_same"]):
        answer["untuned"] = untuned
    elif untuned:
        answer["unsearched"] = _NOT_SEARCHED
    return answer


def _add_rooflines(workloads: Sequence[Values], profile: Mapping[str, Any] | None) -> None:
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
            each["roofline_us"] = short(min(estimate_us, each["best_us"] or estimate_us))


def _add_nests(
    workloads: Sequence[Values],
    searched: Sequence[SearchedWorkload],
    setting: SessionSetting,
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
            each["nests"] = nest_values(workload, setting.target, schedules)


def check_document(values: object, where: str) -> Values:
    """A document that was read.  Raises: UsageError if it is none of this version."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise UsageError(
            stage="report",
            where=where,
            reason="it is not a report of this version",
            remedy="give a file that `optimize --report`, `report` or `profile --json` has written",
        )
    return values
