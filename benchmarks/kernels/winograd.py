"""Winograd's algorithm against direct convolution: the 3x3 convolutions of ResNet-50 and the
3x3x3 ones of a network of 18 layers for video.

For each: the schedule by rule, the best of some random direct ones, and the sketches of the
Winograd rule with their decisions by rule.  Times are the fastest of many samples, all kernels of
a case taking turns in a process of their own; answers are checked.  Warm calls find their weights
where the call before left them; cold ones each read another copy, as if the rest of a network ran
in between.  `share` is the speed that a direct convolution would need for that time, as a share of
the peak (of one thread, times the threads): above 100 % by Winograd alone.

Run: python benchmarks/kernels/winograd.py [--json FILE] [--threads 1 2] [--samples N] [--rounds N]
         [--kinds images volumes]
"""

from __future__ import annotations

import argparse
import json
import math
import random
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tensorwright.artifacts import build, build_request
from tensorwright.base import CpuTarget, detect_target
from tensorwright.graph import GraphBuilder, Workload
from tensorwright.pipeline import prepare
from tensorwright.records import Status
from tensorwright.runtime.measuring import measure_peak
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.measuring import ChildRunner, MeasureOptions
from tensorwright.tuning.space import space_of

IMAGES = ((64, (56, 56)), (128, (28, 28)), (256, (14, 14)), (512, (7, 7)))
VOLUMES = ((64, (16, 56, 56)), (128, (8, 28, 28)), (256, (4, 14, 14)), (512, (2, 7, 7)))
KINDS = {"images": IMAGES, "volumes": VOLUMES}
TAPS = 3
COLD_BYTES = 64 << 20
PEAK_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel: seconds per call with warm and with cold weights."""

    case: str
    threads: int
    schedule: str
    warm_s: float
    cold_s: float
    share_of_peak: float
    speed_up_warm: float
    speed_up_cold: float


def convolution(channels: int, size: tuple[int, ...], target: CpuTarget) -> Workload:
    """The middle one of three convolutions, with its bias and ReLU, as a network has it."""
    source = np.random.default_rng(0)
    builder = GraphBuilder("convolutions")
    value = builder.input("x", (1, channels, *size))
    for kernel in (1, TAPS, 1):
        shape = (channels, channels, *(kernel for _ in size))
        scale = 1.0 / math.sqrt(channels * kernel ** len(size))
        w = builder.constant((source.normal(size=shape) * scale).astype(np.float32))
        bias = builder.constant(source.normal(size=channels).astype(np.float32))
        value = builder.add("conv", value, w, bias, pads=(kernel // 2,) * (2 * len(size)))
        value = builder.add("relu", value)
    return prepare(builder.finish([value]), target).workloads[1]


def schedules(workload: Workload, target: CpuTarget, samples: int) -> dict[str, str]:
    """Names and traces; the first is the schedule by rule."""
    space = space_of(state_of(workload), target)
    found = {"direct": format_trace(space.default_trace)}
    source = random.Random(0)
    direct = [each for each in space.sketches if not each.name.startswith("winograd")]
    for number in range(samples):
        sketch = source.choice(direct)
        found[f"direct {number}"] = format_trace(sketch.bound(sketch.sample(source)))
    for sketch in space.sketches:
        if sketch not in direct:
            found[sketch.name] = format_trace(sketch.bound(sketch.defaults))
    return found


def times_of(
    workload: Workload, traces: dict[str, str], target: CpuTarget, threads: int, rounds: int
) -> dict[str, tuple[float, float]]:
    """Seconds of each schedule, warm and cold; without those that cannot be built or run."""
    names = list(traces)
    kernels = [build(build_request(workload, traces[name], target)) for name in names]
    columns: list[list[float]] = []
    for cold_bytes in (0, COLD_BYTES):
        with ChildRunner(MeasureOptions(repeats=rounds, cold_bytes=cold_bytes)) as runner:
            found = runner.measure(workload, kernels, threads, math.inf) or []
        for name, one in zip(names, found, strict=True):
            if one.status is not Status.OK:
                print(f"{name}: {one.status} {one.error}")
        columns.append([min(one.times_s) if one.status is Status.OK else math.inf for one in found])
    return dict(zip(names, zip(*columns, strict=True), strict=True))


def rows_of(
    channels: int, size: tuple[int, ...], threads: int, samples: int, rounds: int
) -> list[Row]:
    """Measure one convolution."""
    target = detect_target()
    workload = convolution(channels, size, target)
    traces = schedules(workload, target, samples)
    times = times_of(workload, traces, target, threads, rounds)
    random_ones = {name: times.pop(name) for name in list(times) if name.startswith("direct ")}
    if random_ones:
        times["direct, best random"] = min(random_ones.values())
    flops = 2 * TAPS ** len(size) * channels * channels * math.prod(size)
    peak = max(measure_peak(target) for _ in range(PEAK_ROUNDS)) * threads
    warm_s, cold_s = times["direct"]
    case = f"{channels} channels {'x'.join(map(str, size))}"
    return [
        Row(case, threads, name, a, b, flops / a / peak, warm_s / a, cold_s / b)
        for name, (a, b) in times.items()
    ]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samples", type=int, default=0, help="random direct schedules a case")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    rows: list[Row] = []
    head = ("case", "threads", "schedule", "warm us", "cold us", "share", "speed-up", "cold")
    print(("{:>22} {:>7}  {:<22}" + "{:>10}" * 5).format(*head))
    for channels, size in (case for kind in options.kinds for case in KINDS[kind]):
        for threads in options.threads:
            for row in rows_of(channels, size, threads, options.samples, options.rounds):
                rows.append(row)
                print(
                    f"{row.case:>22} {row.threads:>7}  {row.schedule:<22}{row.warm_s * 1e6:>10.0f}"
                    f"{row.cold_s * 1e6:>10.0f}{row.share_of_peak:>10.0%}"
                    f"{row.speed_up_warm:>9.2f}x{row.speed_up_cold:>9.2f}x",
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
