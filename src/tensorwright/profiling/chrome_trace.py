"""A profile in Chrome's trace format, for chrome://tracing and ui.perfetto.dev.

The trace shows one run with median times: the network on the first track, its steps one after
another on the second, and the rate of arithmetic as a counter.  The format has microseconds.

Source:   Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from typing import Any

from tensorwright.profiling.report import Profile, StepProfile
from tensorwright.profiling.values import step_values, summary_values

_PROCESS = 1
_NETWORK, _STEPS = 1, 2
_COUNTER = "GFLOP/s"


def chrome_trace(profile: Profile) -> dict[str, Any]:
    """The trace in the form that `json.dumps` takes."""
    whole_s = max(profile.network_s, profile.steps_s)
    events = [
        _name("process_name", 0, f"{profile.name}, {profile.target}, {profile.threads} threads"),
        _name("thread_name", _NETWORK, "network"),
        _name("thread_name", _STEPS, "steps"),
        _span(profile.name, "network", _NETWORK, 0.0, whole_s, summary_values(profile)),
    ]
    start_s = 0.0
    for step in profile.steps:
        events += _events(step, start_s)
        start_s += step.time_s
    events.append(_counter(start_s, 0.0))
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": summary_values(profile),
    }


def _events(step: StepProfile, start_s: float) -> list[dict[str, Any]]:
    span = _span(step.label, step.bottleneck.value, _STEPS, start_s, step.time_s, step_values(step))
    return [span, _counter(start_s, step.flops_per_s / 1e9)]


def _span(
    name: str, category: str, track: int, start_s: float, time_s: float, values: dict[str, Any]
) -> dict[str, Any]:
    """An event with a beginning and a duration."""
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "pid": _PROCESS,
        "tid": track,
        "ts": start_s * 1e6,
        "dur": time_s * 1e6,
        "args": values,
    }


def _counter(start_s: float, value: float) -> dict[str, Any]:
    return {
        "name": _COUNTER,
        "ph": "C",
        "pid": _PROCESS,
        "ts": start_s * 1e6,
        "args": {_COUNTER: value},
    }


def _name(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": track, "args": {"name": name}}
