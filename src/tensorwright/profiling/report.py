"""Where the time of a network goes, as data: a row for each step, and sums.

A profile as plain values, for JSON: numbers with their units in the names.

A profile in Chrome's trace format, for chrome://tracing and ui.perfetto.dev.

The trace shows one run with median times: the network on the first track, its steps one after
another on the second, and the rate of arithmetic as a counter.  The format has microseconds.

Source:   Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from tensorwright.artifacts import View
from tensorwright.machine import Ceilings, MachineState
from tensorwright.profiling.roofline import Bottleneck, Bounds
from tensorwright.runtime.measuring import CallCosts

_NOISE_SHARE = 0.05  # of a run, by which medians of steps may differ from the median of the run
FEWER = "takes fewer operations than the counted ones of the plain sum"
_TOO_LOW = "the machine's rates were measured too low, or its operands lay in a nearer cache"
_SURELY_ABOVE = 1.15  # times the roofline, because peak and bandwidths have errors, too


class StepKind(Enum):
    """What a step runs."""

    KERNEL = "kernel"
    HOST = "host"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class StepProfile:
    """A step in the running network, or all steps of one workload.

    number       its position in the plan; for several steps, that of the first
    label        the operators        outputs   the tensors that it writes, if their names are kept
    workload     the key; "" if there is none
    time_s       seconds in one run, without the reading of the clock
    share        of the time of the whole network
    flops, bytes_moved   the least work
    bounds       the least time on this machine
    is_tuned     whether its schedule was measured; None if that is unknown, or there is no kernel
    count        how many steps this row contains
    saves_by     why it needs fewer operations than flops, which counts those of the plain sum:
                 "Winograd's algorithm", "skipping zeros", or "" if it needs all of them
    """

    number: int
    label: str
    kind: StepKind
    outputs: tuple[str, ...]
    workload: str
    time_s: float
    share: float
    flops: int
    bytes_moved: int
    bounds: Bounds
    bottleneck: Bottleneck
    is_tuned: bool | None = None
    count: int = 1
    saves_by: str = ""

    @property
    def is_above_roofline(self) -> bool:
        """Whether it is faster than the machine seems to allow, and `saves_by` does not explain it.

        Then peak or bandwidths were measured too low, or operands lay in a nearer cache.
        """
        is_counted = self.kind is not StepKind.HOST and not self.saves_by
        return is_counted and self.estimate_share > _SURELY_ABOVE

    @property
    def flops_per_s(self) -> float:
        """Operations per second."""
        return self.flops / self.time_s if self.time_s > 0 else 0.0

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second, of the bytes that must be moved."""
        return self.bytes_moved / self.time_s if self.time_s > 0 else 0.0

    @property
    def estimate_share(self) -> float:
        """The estimate of its least time over its time; above 1 the estimate is too large."""
        return self.bounds.roofline_s / self.time_s if self.time_s > 0 else 0.0

    @property
    def least_s(self) -> float:
        """The least time by the roofline: the estimate, or its own time if that is less."""
        return min(self.bounds.roofline_s, self.time_s)

    @property
    def roofline_share(self) -> float:
        """The least time by the roofline over the time; 1 is as fast as the machine can."""
        return min(1.0, self.estimate_share)

    @property
    def why_above(self) -> str:
        """Why it is faster than the estimate of its least time; "" if it is not."""
        if self.kind is StepKind.HOST or self.estimate_share <= 1:
            return ""
        return f"{self.saves_by} {FEWER}" if self.saves_by else _TOO_LOW


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of a network goes.

    runs         the number of runs that were timed as a whole; as many were timed step by step
    network_s    median seconds of a whole run, in which no clock is read
    fluctuation_s   the median time of all steps together minus the sum of the steps' medians; in
                 every run some steps are slower than their median
    steps        in the order in which they run
    views        tensors that need no work
    ceilings     of this machine: for each, the higher of the kept and the present value
    costs        of a clock, a call, and threads
    at           the sizes for which an open network ran: (name, number)
    state        of the machine meanwhile; None if nothing was measured
    """

    name: str
    target: str
    threads: int
    runs: int
    network_s: float
    fluctuation_s: float
    steps: tuple[StepProfile, ...]
    views: tuple[View, ...]
    ceilings: Ceilings
    costs: CallCosts
    at: tuple[tuple[str, int], ...] = ()
    state: MachineState | None = None

    @property
    def above_roofline(self) -> tuple[StepProfile, ...]:
        """The steps that are faster than the machine seems to allow."""
        return tuple(step for step in self.steps if step.is_above_roofline)

    @property
    def steps_s(self) -> float:
        """Seconds of all steps."""
        return sum(step.time_s for step in self.steps)

    @property
    def outside_s(self) -> float:
        """The time of the whole network minus the medians of its steps; it may be below 0."""
        return self.network_s - self.steps_s

    @property
    def entering_s(self) -> float:
        """The time in which Python enters native code, once for each group of compiled steps."""
        kinds = [step.kind for step in self.steps]
        begun = [
            kind
            for before, kind in zip([StepKind.HOST, *kinds], kinds, strict=False)
            if kind is not StepKind.HOST and before is StepKind.HOST
        ]
        return len(begun) * self.costs.enter_s

    @property
    def unexplained_s(self) -> float:
        """The rest of `outside_s`: Python around host steps, and the effect of timing the steps."""
        return self.outside_s - self.entering_s - self.fluctuation_s

    @property
    def adds_up(self) -> bool:
        """Whether the parts explain the time of a run, up to noise.

        On an unsteady machine steps may take longer than the whole runs in turn with them.
        """
        noise_s = _NOISE_SHARE * self.network_s + self.costs.clock_s * len(self.steps)
        rests = (self.outside_s, self.fluctuation_s, self.unexplained_s)
        return min(rests) >= -noise_s

    @property
    def roofline_share(self) -> float:
        """The least times of all steps by the roofline over the time of the network."""
        least_s = sum(step.least_s for step in self.steps)
        return min(1.0, least_s / self.network_s) if self.network_s > 0 else 0.0

    def share_by_bottleneck(self) -> tuple[tuple[Bottleneck, float], ...]:
        """The share of the network's time of the steps under each bottleneck, the largest first."""
        shares: dict[Bottleneck, float] = {}
        for step in self.steps:
            shares[step.bottleneck] = shares.get(step.bottleneck, 0.0) + step.share
        return tuple(sorted(shares.items(), key=lambda pair: -pair[1]))

    def by_time(self) -> tuple[StepProfile, ...]:
        """The steps, the slowest first."""
        return tuple(sorted(self.steps, key=lambda step: -step.time_s))

    def by_workload(self) -> tuple[StepProfile, ...]:
        """One row for each workload, or operator on the host; the slowest first."""
        groups: dict[tuple[StepKind, str], list[StepProfile]] = {}
        for step in self.steps:
            groups.setdefault((step.kind, step.workload or step.label), []).append(step)
        sums = [_together(group) for group in groups.values()]
        return tuple(sorted(sums, key=lambda step: -step.time_s))


def _together(steps: Sequence[StepProfile]) -> StepProfile:
    """Several steps as one row; its bottleneck is that of the slowest step."""
    slowest = max(steps, key=lambda step: step.time_s)
    return replace(
        steps[0],
        outputs=tuple(name for step in steps for name in step.outputs),
        time_s=sum(step.time_s for step in steps),
        share=sum(step.share for step in steps),
        flops=sum(step.flops for step in steps),
        bytes_moved=sum(step.bytes_moved for step in steps),
        bounds=sum((step.bounds for step in steps), Bounds()),
        bottleneck=slowest.bottleneck,
        count=sum(step.count for step in steps),
        saves_by=slowest.saves_by,
    )


def step_values(step: StepProfile) -> dict[str, Any]:
    """One step."""
    return {
        "number": step.number,
        "label": step.label,
        "kind": step.kind.value,
        "outputs": list(step.outputs),
        "workload": step.workload,
        "time_us": step.time_s * 1e6,
        "share": step.share,
        "flops": step.flops,
        "bytes_moved": step.bytes_moved,
        "gflops_per_s": step.flops_per_s / 1e9,
        "gbytes_per_s": step.bytes_per_s / 1e9,
        "roofline_share": step.roofline_share,
        "above_roofline": step.why_above,
        "arithmetic_us": step.bounds.arithmetic_s * 1e6,
        "memory_us": step.bounds.memory_s * 1e6,
        "cache_us": step.bounds.cache_s * 1e6,
        "calls_us": step.bounds.calls_s * 1e6,
        "bottleneck": step.bottleneck.value,
        "tuned": step.is_tuned,
        "saves_by": step.saves_by,
    }


def summary_values(profile: Profile) -> dict[str, Any]:
    """The values of the whole network, and of the machine."""
    return {
        "network": profile.name,
        "at": dict(profile.at),
        "target": profile.target,
        "threads": profile.threads,
        "runs": profile.runs,
        "network_us": profile.network_s * 1e6,
        "steps_us": profile.steps_s * 1e6,
        "outside_us": profile.outside_s * 1e6,
        "fluctuation_us": profile.fluctuation_s * 1e6,
        "entering_us": profile.entering_s * 1e6,
        "unexplained_us": profile.unexplained_s * 1e6,
        "adds_up": profile.adds_up,
        "roofline_share": profile.roofline_share,
        "share_by_bottleneck": {each.value: share for each, share in profile.share_by_bottleneck()},
        "peak_gflops_per_s": profile.ceilings.flops_per_s / 1e9,
        "levels": [
            {
                "name": level.name,
                "size_bytes": int(level.size_bytes) if math.isfinite(level.size_bytes) else None,
                "gbytes_per_s": level.bytes_per_s / 1e9,
            }
            for level in profile.ceilings.levels
        ],
        "clock_ns": profile.costs.clock_s * 1e9,
        "call_ns": profile.costs.step_s * 1e9,
        "enter_ns": profile.costs.enter_s * 1e9,
        "start_threads_ns": profile.costs.threads_s * 1e9,
    }


def profile_values(profile: Profile) -> dict[str, Any]:
    """All values: the summary, the steps, the views."""
    views = [
        {"operator": v.operator, "inputs": list(v.inputs), "output": v.output, "before": v.before}
        for v in profile.views
    ]
    steps = [step_values(step) for step in profile.steps]
    return {**summary_values(profile), "steps": steps, "views": views}


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
