"""Measure kernels of a workload against each other: in a race, and a few in turns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tensorwright.artifacts import Kernel, build_request
from tensorwright.base import CpuTarget
from tensorwright.records import Status
from tensorwright.schedule import Workload
from tensorwright.tuning.measuring import Builder, BuildFailed, BuildStopped, Measurement
from tensorwright.tuning.measuring.runner import Runner


@dataclass(frozen=True, slots=True)
class Bench:
    """Who builds and who measures, for which target, on how many threads."""

    builder: Builder
    runner: Runner
    target: CpuTarget
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
    measurements: dict[str, Measurement] = {}
    with bench.runner.turn():
        for trace, result in built.items():
            if isinstance(result, BuildFailed):
                measurements[trace] = Measurement(result.status, error=result.error)
                continue
            measured = bench.runner.measure(workload, [result], bench.threads, best_s)
            assert measured is not None, "nobody stops it"
            (measurements[trace],) = measured
            if measurements[trace].status is Status.OK:
                best_s = min(best_s, *measurements[trace].times_s)
    return measurements


def measure_in_turns(
    workload: Workload, kernels: Mapping[str, Kernel], bench: Bench, rounds: int = 1
) -> dict[str, Measurement]:
    """Measure a few kernels in turns, several times: a slow moment of the machine hits all alike.

    All have as many samples, so none is favoured. One that fails in a round has that failure.
    """
    measurements: dict[str, Measurement] = {}
    for _ in range(rounds):
        with bench.runner.turn():
            measured = bench.runner.measure(workload, [*kernels.values()], bench.threads, math.inf)
        assert measured is not None, "nobody stops it"
        for trace, one in zip(kernels, measured, strict=True):
            before = measurements.get(trace)
            if before is None or not one.times_s:
                measurements[trace] = one
            elif before.times_s:
                measurements[trace] = replace(one, times_s=(*before.times_s, *one.times_s))
    return measurements


def fastest_s(measured: Mapping[str, Measurement]) -> dict[str, float]:
    """Seconds of each that ran, the fastest of its samples."""
    return {trace: min(one.times_s) for trace, one in measured.items() if one.times_s}
