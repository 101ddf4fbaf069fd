"""What users wait for: importing the package, compiling ResNet-50, compiling it again, and what
choosing the schedule of a workload takes on average.

Each figure is measured in fresh processes with a home folder of their own, so that the first
compilation finds an empty kernel cache and the second one finds all kernels in it. The model (the
onnx package's light ResNet-50 with seeded weights) is made before the clock starts; importing,
simplifying, layouts, partition, schedules, code, packing of weights are all inside.  Schedules are
chosen for the workloads of random networks, in seconds of the processor.

Run: python benchmarks/compile_time.py [--json FILE] [--repeats N]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import tensorwright

IMPORT = """
import time
start = time.perf_counter()
import tensorwright
tensorwright.compile
print(time.perf_counter() - start)
"""

COMPILE = """
import sys, time
import tensorwright
from tensorwright_lab.zoo.light import load_light
tensorwright.compile
model = load_light("resnet50")
start = time.perf_counter()
tensorwright.compile(model)
print(time.perf_counter() - start)
"""

CHOOSE = """
import time
from statistics import mean
from tensorwright.base import detect_target
from tensorwright.graph import choose_layouts, partition, simplify
from tensorwright.tuning.selection import open_predictor
from tensorwright_lab.zoo.plausible import draw_network
target = detect_target()
networks = (draw_network(seed) for seed in range(9_000_000, 9_000_040))
parts = [partition(choose_layouts(simplify(each), target)) for each in networks]
workloads = {each.key: each for part in parts for each in part.workloads}
first, *others = workloads.values()
predictor = open_predictor(target, 2, is_cold=True)
predictor.best(first)
times_s = []
for workload in others:
    start = time.process_time()
    predictor.best(workload)
    times_s.append(time.process_time() - start)
print(mean(times_s))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds, and how many they may be."""

    name: str
    time_s: float
    limit_s: float

    @property
    def is_met(self) -> bool:
        return self.time_s < self.limit_s


def seconds_of(source: str, home: Path) -> float:
    """What a fresh process prints last, run with that home folder."""
    paths = str(Path(tensorwright.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": paths, "TENSORWRIGHT_HOME": str(home)}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def in_fresh_homes(source: str, repeats: int) -> float:
    times: list[float] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            times.append(seconds_of(source, Path(folder)))
    return median(times)


def import_s(repeats: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        seconds_of(IMPORT, Path(folder))  # what is only done once: compiling Python's own files
    return in_fresh_homes(IMPORT, 3 * repeats)


def first_s(repeats: int) -> float:
    return in_fresh_homes(COMPILE, repeats)


def cached_s(repeats: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        seconds_of(COMPILE, Path(folder))
        return median(seconds_of(COMPILE, Path(folder)) for _ in range(repeats))


def choosing_s(repeats: int) -> float:
    return in_fresh_homes(CHOOSE, repeats)


MEASUREMENTS: tuple[tuple[str, Callable[[int], float], float], ...] = (
    ("import of the package", import_s, 0.5),
    ("ResNet-50, untuned, the first time", first_s, 20.0),
    ("ResNet-50, untuned, from the kernel cache", cached_s, 2.0),
    ("choosing the schedule of a workload", choosing_s, 0.03),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time importing and compiling.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'':44}{'time':>9}{'limit':>9}")
    rows = []
    for name, measure, limit_s in MEASUREMENTS:
        row = Row(name, measure(arguments.repeats), limit_s)
        rows.append(row)
        mark = "" if row.is_met else "   MISSED"
        print(f"{row.name:44}{row.time_s:>7.3f} s{row.limit_s:>7.2f} s{mark}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
