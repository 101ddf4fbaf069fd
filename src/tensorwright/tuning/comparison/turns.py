"""Measure kernels of a workload against each other: in a race, and a few in turns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorwright.base import Target
from tensorwright.build import Kernel, build_request
from tensorwright.processes import hold_turn, never
from tensorwright.records import Status
from tensorwright.schedule import Workload
from tensorwright.tuning.measuring import Builder, BuildFailed, BuildStopped, Measurement
from tensorwright.tuning.measuring.runner import Runner


@dataclass(frozen=True, slots=True)
class Bench:
    """Who builds and who measures, for which target, on how many threads."""

    builder: Builder
    runner: Runner
    target: Target
    threads: int


def build_all(
    workload: Workload, traces: Sequence[str], bench: Bench
) -> dict[str, Kernel | BuildFailed]:
    """The kernel of each trace, or why there is none; while this runs, nothing is measured."""
    different = tuple(dict.fromkeys(traces))
    requests = [build_request(workload, trace, bench.target) for trace in different]
    built = zip(different, bench.builder.build(requests), strict=True)
    return {trace: result for trace, result in built if not isinstance(result, BuildStopped)}


def race(
    workload: Workload,
    built: Mapping[str, Kernel | BuildFailed],
    bench: Bench,
    best_s: float = math.inf,
) -> dict[str, Measurement]:
    """Measure one after the other, in order; each is dropped where clearly slower than the best of
    those before, and than `best_s`.
    """
    found: dict[str, Measurement] = {}
    with hold_turn(never):
        for trace, result in built.items():
            if isinstance(result, BuildFailed):
                found[trace] = Measurement(result.status, error=result.error)
                continue
            measured = bench.runner.measure(workload, [result], bench.threads, best_s)
            assert measured is not None, "nobody stops it"
            (found[trace],) = measured
            if found[trace].status is Status.OK:
                best_s = min(best_s, *found[trace].times_s)
    return found


def measure_in_turns(
    workload: Workload,
    kernels: Mapping[str, Kernel],
    bench: Bench,
    enough: float = math.inf,
    most_times: int = 1,
) -> dict[str, float]:
    """Seconds of each of a few kernels, the fastest of its samples: a slow moment of the machine
    hits all alike.  Those that failed have none.

    enough, most_times   where the first takes more than `enough` times as long as the fastest, all
                         are measured again, so many times at most: noise shall not decide
    """
    times_s: dict[str, float] = {}
    for _ in range(most_times):
        with hold_turn(never):
            measured = bench.runner.measure(workload, [*kernels.values()], bench.threads, math.inf)
        for trace, one in zip(kernels, measured or (), strict=False):
            if one.status is Status.OK:
                times_s[trace] = min(times_s.get(trace, math.inf), *one.times_s)
        first_s = times_s.get(next(iter(kernels)), 0.0)
        if not times_s or first_s <= enough * min(times_s.values()):
            break
    return times_s
