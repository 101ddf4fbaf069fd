"""How fast recurrent layers are: LSTM and GRU against ONNX Runtime on the same threads.

    python benchmarks/recurrent.py [CASE ...] [--target T] [--threads N] [--quick] [--rounds N]
                                   [--json FILE]

A case is KIND-HIDDEN-BATCH-STEPS-DIRECTIONS, such as LSTM-256-1-20-2; inputs are as wide as the
state.  Without cases, all of LSTM and GRU, hidden 64, 256 and 512, batch 1 and 8, 1, 20 and 200
steps, one and two directions; --quick takes every seventh.  Each network is compiled without
records in a fresh process, on a machine whose rates have been measured.  The competitors are
processes of their own, which take turns.  Prints a row for each case, with the steps of an
iteration in the plan, and the geometric mean and the least of the ratios, above 1 where ours is
faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tensorwright import load
from tensorwright.base import available_cores, cpu_target, detect_target, parse_target
from tensorwright.runtime import LoopStep
from tensorwright_lab.comparison.networks import compare_model

GATES = {"LSTM": 4, "GRU": 3}
CASES = tuple(
    "-".join(map(str, case))
    for case in product(GATES, (64, 256, 512), (1, 8), (1, 20, 200), (1, 2))
)
_EACH = 7  # of the cases, with --quick

COMPILE = """
import sys, time
import tensorwright
from tensorwright.base import detect_target, parse_target
from tensorwright.runtime.measuring import this_machine
path, out, target, threads = sys.argv[1:]
this_machine(detect_target() if target == "native" else parse_target(target), int(threads))
tensorwright.compile
start = time.perf_counter()
executable = tensorwright.compile(path, target=target, threads=int(threads))
print(time.perf_counter() - start)
executable.save(out)
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--target", default="native")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cases = given.cases or CASES[:: _EACH if given.quick else 1]
    print(f"{'case':18} {'ours us':>9} {'peer us':>9} {'ratio':>6} {'steps':>5} {'compile s':>9}")
    rows = []
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="tensorwright-recurrent-") as folder:
            row = _measure(case, Path(folder), given)
        rows.append(row)
        print(
            f"{case:18} {row['ours_us']:9.1f} {row['peer_us']:9.1f} {row['ratio']:6.2f} "
            f"{row['steps']:5} {row['compile_s']:9.2f}",
            flush=True,
        )
    ratios = [row["ratio"] for row in rows]
    print(f"geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


def _measure(case: str, folder: Path, given: argparse.Namespace) -> dict[str, float]:
    kind, hidden, batch, steps, directions = case.split("-")
    path, ours = folder / "model.onnx", folder / "ours.tw"
    onnx.save(make_layer(kind, int(hidden), int(batch), int(steps), int(directions)), path)
    command = (sys.executable, "-c", COMPILE, path, ours, given.target, str(given.threads))
    home = {**os.environ, "TENSORWRIGHT_HOME": str(folder / "home")}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=home)
    x = np.random.default_rng(1).standard_normal((int(steps), int(batch), int(hidden)))
    target = detect_target() if given.target == "native" else parse_target(given.target)
    row = compare_model(
        case,
        ours,
        path,
        {"x": x.astype(np.float32)},
        given.threads,
        target=None if given.target == "native" else cpu_target(target),
        rounds=given.rounds,
    )
    peer = row.peers[0]
    if row.failure or row.ours_ms is None or peer.time_ms is None:
        raise SystemExit(f"{case}: {row.failure or peer.failure}")
    bodies = [step.body for step in load(ours).plan.steps if isinstance(step, LoopStep)]
    return {
        "case": case,
        "ours_us": row.ours_ms * 1e3,
        "peer_us": peer.time_ms * 1e3,
        "ratio": peer.time_ms / row.ours_ms,
        "steps": sum(bodies),
        "compile_s": float(done.stdout),
    }


def make_layer(kind: str, hidden: int, batch: int, steps: int, directions: int) -> onnx.ModelProto:
    """A model of one layer with random weights."""
    generator = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        bound = hidden**-0.5
        drawn = generator.uniform(-bound, bound, (directions, *shape))
        return numpy_helper.from_array(drawn.astype(np.float32), name)

    width = GATES[kind] * hidden
    constants = [
        weights("w", width, hidden),
        weights("r", width, hidden),
        weights("b", 2 * width),
    ]
    last = ["h", "c"] if kind == "LSTM" else ["h"]
    attributes = {"linear_before_reset": 1} if kind == "GRU" else {}  # as PyTorch has it
    node = helper.make_node(
        kind,
        ["x", "w", "r", "b"],
        ["y", *last],
        hidden_size=hidden,
        direction="bidirectional" if directions == 2 else "forward",
        **attributes,
    )
    shapes = {
        "x": [steps, batch, hidden],
        "y": [steps, directions, batch, hidden],
        **{each: [directions, batch, hidden] for each in last},
    }
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    }
    graph = helper.make_graph(
        [node], "layer", [values["x"]], [values["y"], *(values[each] for each in last)], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


if __name__ == "__main__":
    main()
