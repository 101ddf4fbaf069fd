"""Is this checkout as fast as another one? Both run the same untuned networks, in turns.

Each checkout runs in a process of its own, with its own sources and a home of its own; outside of
its turn it is stopped, so that no thread of it spins. Every round gives each one turn, the order is
reversed from round to round. Ratios are of medians; the spread is of the ratios of single rounds,
from the 25th to the 75th percentile. Both compile first, and the inputs are the same.

Run: python benchmarks/two_checkouts.py OTHER MODEL... [--python FILE] [--rounds N] [--target T]

OTHER is the folder of the other checkout; `--python` its interpreter, this one where not given.
MODEL is `light:NAME`, `zoo:NAME`, `wild:NAME` or an ONNX file.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[1]
WARM_UP_S = 0.05
TURN_S = 0.3

CHILD = """
import sys, time
import numpy as np
import onnx
import tensorwright
path, target = sys.argv[1:]
executable = tensorwright.compile(onnx.load(path), target=target, threads=2)
source = np.random.default_rng(0)
inputs = {
    each.name: source.standard_normal(each.shape).astype(each.dtype.numpy)
    if each.dtype.is_float
    else np.zeros(each.shape, each.dtype.numpy)
    for each in executable.inputs
}
bound = executable.bind(inputs)
print("ready", flush=True)
for line in sys.stdin:
    warm_s, turn_s = map(float, line.split())
    end = time.perf_counter() + warm_s
    while time.perf_counter() < end:
        bound.run()
    samples = []
    end = time.perf_counter() + turn_s
    while time.perf_counter() < end or len(samples) < 3:
        start = time.perf_counter()
        bound.run()
        samples.append(time.perf_counter() - start)
    print(sorted(samples)[len(samples) // 2], flush=True)
"""

SAVE = """
import sys
import onnx
from tensorwright.cli.arguments.models import read_proto
onnx.save(read_proto(sys.argv[1]), sys.argv[2])
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with sources of this package, and the interpreter that has what they need."""

    folder: Path
    python: str

    def start(self, code: str, home: Path, *arguments: str) -> subprocess.Popen[str]:
        """Run Python text with this checkout's sources."""
        environment = os.environ | {
            "PYTHONPATH": os.fspath(self.folder / "src"),
            "TENSORWRIGHT_HOME": os.fspath(home),
        }
        return subprocess.Popen(
            [self.python, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )


def ask(child: subprocess.Popen[str], line: str = "") -> str:
    """The next line that a child says, after it was told one."""
    if child.stdin is None or child.stdout is None:
        raise ValueError("a child without pipes")
    if line:
        child.stdin.write(line + "\n")
        child.stdin.flush()
    answer = child.stdout.readline()
    if not answer:
        raise SystemExit(f"a child ended with status {child.wait()}")
    return answer


def seconds(child: subprocess.Popen[str]) -> float:
    """Seconds per call in one turn of a child, which is stopped before and after."""
    os.kill(child.pid, signal.SIGCONT)
    try:
        return float(ask(child, f"{WARM_UP_S} {TURN_S}"))
    finally:
        os.kill(child.pid, signal.SIGSTOP)


def compare(
    checkouts: Sequence[Checkout], path: Path, target: str, rounds: int, homes: Sequence[Path]
) -> list[list[float]]:
    """Seconds per call of each checkout in each round."""
    times: list[list[float]] = [[] for _ in checkouts]
    children: list[subprocess.Popen[str]] = []
    try:
        for checkout, home in zip(checkouts, homes, strict=True):
            child = checkout.start(CHILD, home, os.fspath(path), target)
            children.append(child)
            ask(child)
            os.kill(child.pid, signal.SIGSTOP)
        for number in range(rounds):
            order = range(len(children)) if number % 2 == 0 else reversed(range(len(children)))
            for position in order:
                times[position].append(seconds(children[position]))
    finally:
        for child in children:
            child.kill()
            child.wait()
    return times


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, metavar="OTHER")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--target", default="native")
    options = parser.parse_args()
    checkouts = (Checkout(HERE, sys.executable), Checkout(options.other, options.python))
    print(f"{'model':24} {'this / other':>12} {'spread':>16}   load")
    with tempfile.TemporaryDirectory() as folder:
        homes = tuple(Path(folder) / name for name in ("this", "other"))
        for model in options.models:
            path = Path(folder) / "model.onnx"
            saving = checkouts[0].start(SAVE, homes[0], model, os.fspath(path))
            if saving.wait():
                raise SystemExit(f"{model}: it could not be written")
            mine, theirs = compare(checkouts, path, options.target, options.rounds, homes)
            speed = statistics.median(theirs) / statistics.median(mine)
            ratios = statistics.quantiles(
                [b / a for a, b in zip(mine, theirs, strict=True)], n=4, method="inclusive"
            )
            spread = f"{ratios[0]:.3f} to {ratios[2]:.3f}"
            print(f"{model:24} {speed:12.3f} {spread:>16}   {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
