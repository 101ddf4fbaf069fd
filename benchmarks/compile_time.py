"""What users wait for: importing the package, compiling networks, compiling them again, loading.

Each figure is measured in fresh processes with a home folder of their own.  Models are files, which
are made before the clock starts; importing the compiler is inside where compiling needs it.
Python's byte code of all modules is kept, as it is of a package that pip has installed.
Schedules are chosen for the workloads of random networks, in seconds of the processor.
Long graphs of open sizes, `long:KIND`, are compiled with all sizes open and with numbers for them,
in seconds of the processor, helpers included; `--nodes` says how long they are.

Run: python benchmarks/compile_time.py [NETWORK ...] [--json FILE] [--repeats N] [--source SRC]
     python benchmarks/compile_time.py long:all [--nodes N]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import tensorwright
from tensorwright.cli.arguments.models import read_proto
from tensorwright.graph.onnx_export import save_proto
from tensorwright_lab.zoo.foreign.long import LONG

IMPORT = """
import time
start = time.perf_counter()
import tensorwright
tensorwright.compile
print(time.perf_counter() - start)
"""

BYTE_CODE = """
import importlib
for each in ("pipeline", "codegen.llvm.backend", "records", "processes.worker"):
    importlib.import_module("tensorwright." + each)
print(0)
"""

COMPILE = """
import sys, time
import tensorwright
tensorwright.compile
start = time.perf_counter()
executable = tensorwright.compile(sys.argv[1])
time_s = time.perf_counter() - start
if sys.argv[2:]:
    executable.save(sys.argv[2])
print(time_s)
"""

LONG_GRAPH = """
import json, resource, sys, time
import tensorwright
tensorwright.compile

def spent_s():
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)

sizes = json.loads(open(sys.argv[2]).read()) if sys.argv[2:] else None
start_s = spent_s()
executable = tensorwright.compile(sys.argv[1], sizes=sizes)
print(spent_s() - start_s)
"""

LOAD = """
import sys, time
import tensorwright
tensorwright.load
start = time.perf_counter()
tensorwright.load(sys.argv[1])
print(time.perf_counter() - start)
"""

CHOOSE = """
import time
from statistics import mean
from tensorwright.base import detect_target
from tensorwright.graph import choose_layouts, partition, simplify
from tensorwright.graph.onnx_export import save_proto
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
    """What a user waits for, in seconds; and the megabytes of the model.

    first    compiling with empty caches
    kernels  compiling with all kernels in the cache, and no executable
    again    compiling with the executable in the cache
    load     loading the file of the executable
    """

    network: str
    model_mb: float
    first_s: float
    kernels_s: float
    again_s: float
    load_s: float


@dataclass(frozen=True, slots=True)
class LongRow:
    """Seconds of the processor for a long graph.

    open    compiling with empty caches, all sizes open
    fixed   the same, with numbers for all sizes
    again   compiling the open one in a new process
    """

    kind: str
    nodes: int
    open_s: float
    fixed_s: float
    again_s: float

    def __str__(self) -> str:
        times = f"{self.open_s:8.2f}{self.fixed_s:8.2f}{self.open_s / self.fixed_s:8.2f}"
        return f"{self.kind:24}{self.nodes:10}{times}{self.again_s:8.3f}"


class Checkout:
    """Fresh processes that run the package in a folder, each call with a home of its own."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self._byte_code = tempfile.TemporaryDirectory()

    def seconds(self, program: str, home: Path, *arguments: Path, **variables: str) -> float:
        """What a program prints last."""
        environment = os.environ | {"PYTHONPATH": str(self.source), **variables}
        environment["TENSORWRIGHT_HOME"] = str(home)
        environment["PYTHONPYCACHEPREFIX"] = self._byte_code.name
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", program, *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])

    def row(self, network: str, model: Path, repeats: int) -> Row:
        """All times of one network; the first compilation is measured once."""
        with tempfile.TemporaryDirectory() as folder:
            home, saved = Path(folder), Path(folder, "model.tw")
            first_s = self.seconds(COMPILE, home, model, saved)

            def typical(program: str, path: Path, **variables: str) -> float:
                runs = (self.seconds(program, home, path, **variables) for _ in range(repeats))
                return median(runs)

            kernels_s = typical(COMPILE, model, TENSORWRIGHT_EXECUTABLE_CACHE="0")
            again_s, load_s = typical(COMPILE, model), typical(LOAD, saved)
            size_mb = model.stat().st_size / 1e6
            return Row(network, size_mb, first_s, kernels_s, again_s, load_s)

    def long_row(self, kind: str, nodes: int, repeats: int) -> LongRow:
        """All times of one kind of long graph; the first compilations are measured once."""
        with tempfile.TemporaryDirectory() as folder:
            model, sizes = Path(folder, "model.onnx"), Path(folder, "sizes.json")
            proto = LONG[kind].build(nodes)
            save_proto(proto, model)
            sizes.write_text(json.dumps(dict(LONG[kind].sizes)))
            fixed_s = self.seconds(LONG_GRAPH, Path(folder, "fixed"), model, sizes)
            home = Path(folder, "open")
            open_s = self.seconds(LONG_GRAPH, home, model)
            again_s = median(self.seconds(LONG_GRAPH, home, model) for _ in range(repeats))
            return LongRow(kind, len(proto.graph.node), open_s, fixed_s, again_s)

    def in_fresh_homes(self, program: str, repeats: int) -> float:
        """The median time of a program."""
        times_s = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                times_s.append(self.seconds(program, Path(folder)))
        return median(times_s)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time importing, compiling and loading.")
    parser.add_argument("networks", nargs="*", default=["light:squeezenet", "light:resnet50"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=200, help="of long graphs (default 200)")
    parser.add_argument("--choosing", action="store_true", help="time choosing schedules, too")
    own = Path(tensorwright.__file__).parents[1]
    parser.add_argument("--source", type=Path, default=own, help="the folder src of a checkout")
    arguments = parser.parse_args()
    checkout, repeats = Checkout(arguments.source.absolute()), arguments.repeats
    checkout.in_fresh_homes(BYTE_CODE, 1)
    figures: dict[str, object] = {"import_s": checkout.in_fresh_homes(IMPORT, repeats)}
    print(f"import of the package: {figures['import_s']:.3f} s")
    if arguments.choosing:
        figures["choosing_s"] = checkout.in_fresh_homes(CHOOSE, repeats)
        print(f"choosing the schedule of a workload: {figures['choosing_s']:.3f} s")
    asked = [each.removeprefix("long:") for each in arguments.networks if each[:5] == "long:"]
    networks = [each for each in arguments.networks if each[:5] != "long:"]
    if asked:
        print(
            f"{'processor seconds':24}{'nodes':>10}{'open':>8}{'fixed':>8}{'ratio':>8}{'again':>8}"
        )
        long_rows = []
        for kind in LONG if asked == ["all"] else asked:
            long_rows.append(checkout.long_row(kind, arguments.nodes, repeats))
            print(long_rows[-1], flush=True)
        figures["long"] = [asdict(each) for each in long_rows]
    if networks:
        print(f"{'seconds':24}{'model MB':>10}{'first':>8}{'kernels':>9}{'again':>8}{'load':>8}")
    rows = []
    for network in networks:
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "model.onnx")
            save_proto(read_proto(network), model)
            row = checkout.row(network, model, repeats)
        rows.append(row)
        times = f"{row.first_s:8.2f}{row.kernels_s:9.2f}{row.again_s:8.3f}{row.load_s:8.3f}"
        print(f"{network:24}{row.model_mb:10.0f}{times}", flush=True)
    if arguments.json:
        figures["rows"] = [asdict(row) for row in rows]
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
