"""A profile as plain values, for JSON: numbers with their units in the names."""

from __future__ import annotations

import math
from typing import Any

from tensorwright.profiling.report import Profile, StepProfile


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
