"""Products with packed weights (MatMulNBits) against ONNX Runtime, for one row and for several.

    python benchmarks/kernels/packed_weights.py [--rows N ...] [--threads N] [--json FILE]

A model is a chain of equal products and those that lead back to its first shape, so that weights
come from beyond the second cache, as in decoding. Level 4 lets both sides round rows: ONNX Runtime
to 8 bits, ours to 16. Both take turns, and the best call of each counts. Errors are against NumPy,
divided by the largest number. GB/s are those of packed weights and scales; of what one can read is
measured before.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tensorwright import Executable
from tensorwright import compile as compile_model
from tensorwright.base import available_cores, cpu_target
from tensorwright.runtime.measuring.peak import measure_bandwidth

SHAPES = ((896, 4864), (576, 1536), (2048, 8192))
ROWS = (1, 2, 4, 5, 8, 64)
BLOCK = 32
_PAIRS = 4  # of products there and back


def model_of(rows: int, inner: int, columns: int, level: int) -> tuple[ModelProto, float]:
    """The chain, and the bytes of its packed weights."""
    source = np.random.default_rng(0)
    nodes, held, name, size = [], [], "x", 0
    for number in range(2 * _PAIRS):
        k, n = (inner, columns) if number % 2 == 0 else (columns, inner)
        shape = (n, k // BLOCK, BLOCK // 2)
        words = source.integers(0, 256, shape, dtype=np.uint8)
        scale = (source.uniform(0.5, 1.0, n * k // BLOCK) / (8 * k**0.5)).astype(np.float32)
        for what, array in (("w", words), ("s", scale)):
            held.append(numpy_helper.from_array(array, f"{what}{number}"))
            size += array.nbytes
        inputs, result = [name, f"w{number}", f"s{number}"], f"y{number}"
        sizes = {"K": k, "N": n, "bits": 4, "block_size": BLOCK, "accuracy_level": level}
        node = helper.make_node("MatMulNBits", inputs, [result], domain="com.microsoft", **sizes)
        nodes.append(node)
        name = result
    value = helper.make_tensor_value_info
    ends = [value(each, TensorProto.FLOAT, (rows, inner)) for each in ("x", name)]
    graph = helper.make_graph(nodes, "packed", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), size


def expected(model: ModelProto, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """What NumPy computes in f64."""
    held = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    y = x.astype(np.float64)
    for _, words, scale in (node.input for node in model.graph.node):
        packed = held[words]
        codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1)
        y = y @ ((codes - 8.0) * np.repeat(held[scale].reshape(packed.shape[:2]), BLOCK, axis=1)).T
    return y


def race(
    ours: Executable, theirs: onnxruntime.InferenceSession, x: NDArray[np.float32], rounds: int
) -> tuple[float, float]:
    """The best seconds of each, in turns."""
    best = [float("inf")] * 2
    calls = (lambda: ours.run({"x": x})), (lambda: theirs.run(None, {"x": x}))
    for _ in range(rounds):
        for side, call in enumerate(calls):
            call()
            for _ in range(5):
                start = time.perf_counter()
                call()
                best[side] = min(best[side], time.perf_counter() - start)
    return best[0], best[1]


def main() -> None:
    """Print a row for each shape, number of rows and level, and keep them if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    bandwidth = measure_bandwidth(cpu_target("native"), given.threads)
    print(f"{given.threads} threads, {bandwidth / 1e9:.1f} GB/s from memory")
    print(f"{'shape':10} {'rows':>4} level {'us':>8} {'theirs':>8} ratio  GB/s {'error':>8} theirs")
    table = []
    for inner, columns in SHAPES:
        for rows in given.rows:
            for level in (0, 4):
                model, size = model_of(rows, inner, columns, level)
                x = np.random.default_rng(1).standard_normal((rows, inner)).astype(np.float32)
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = given.threads
                text, wanted = model.SerializeToString(), expected(model, x)
                theirs = onnxruntime.InferenceSession(text, options)
                ours = compile_model(model, threads=given.threads)
                results = ours.run({"x": x}).popitem()[1], theirs.run(None, {"x": x})[0]
                largest = np.abs(wanted).max()
                errors = [float(np.abs(y - wanted).max() / largest) for y in results]
                seconds = race(ours, theirs, x, given.rounds)
                row = {
                    "shape": f"{inner}x{columns}",
                    "rows": rows,
                    "level": level,
                    "threads": given.threads,
                    "us": [round(each * 1e6, 1) for each in seconds],
                    "ratio": round(seconds[1] / seconds[0], 2),
                    "gb_per_s": round(size / seconds[0] / 1e9, 1),
                    "errors": [float(f"{each:.1e}") for each in errors],
                }
                table.append(row)
                times = " ".join(f"{each * 1e6:8.0f}" for each in seconds)
                found = " ".join(f"{each:8.0e}" for each in errors)
                size_s = f"{row['gb_per_s']:5} {found}"
                print(f"{row['shape']:10} {rows:4} {level:5} {times} {row['ratio']:5} {size_s}")
    if given.json is not None:
        whole = {"memory_gb_per_s": round(bandwidth / 1e9, 1), "rows": table}
        given.json.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
