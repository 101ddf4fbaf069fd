"""What calls of unseen sizes cost: in memory, in compilations, and in time.

    python benchmarks/instances.py [--calls 10000] [--lengths 24] [--threads 8] [--json FILE]

Two networks: one whose program takes all sizes (convolutions of a signal), and one of which each
length is an instance (its spectrum).  Each has a home folder of its own.

calls     at random sizes in one process: the memory that all of them add, and what instances keep
threads   that ask for the same unseen sizes at once: compilations for each combination of sizes
first     a call of unseen sizes, over compiling the network for such sizes alone and calling it
second    a call of the executable for these sizes alone, over a second call of the open one

Times are medians over lengths; competitors take turns.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tensorwright
from tensorwright import instances
from tensorwright.base import override

_TURNS = 200


def program() -> onnx.ModelProto:
    """Convolutions of a signal of any length."""
    random = np.random.default_rng(0)
    shapes = {"a": (32, 1, 9), "b": (32, 32, 3), "c": (8, 32, 3)}
    nodes, last = [], "x"
    for name in shapes:
        nodes.append(helper.make_node("Conv", [last, name], [f"{name}_sums"], strides=[2]))
        nodes.append(helper.make_node("Relu", [f"{name}_sums"], [last := f"{name}_values"]))
    constants = {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    return _model(nodes, last, ("batch", 1, "length"), constants)


def by_instance() -> onnx.ModelProto:
    """The magnitudes of a spectrum, whose matrix has the length of the signal."""
    nodes = [
        helper.make_node("DFT", ["x"], ["spectrum"], axis=1),
        helper.make_node("Abs", ["spectrum"], ["y"]),
    ]
    return _model(nodes, "y", ("batch", "length", 1), {})


def _model(
    nodes: list[onnx.NodeProto], last: str, shape: tuple[Any, ...], constants: dict[str, Any]
) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def _shape(name: str, length: int, batch: int = 1) -> tuple[int, ...]:
    return (batch, 1, length) if name == "program" else (batch, length, 1)


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def calls_at_random_sizes(name: str, model: onnx.ModelProto, calls: int, lengths: int) -> Any:
    """The memory that calls add after the first tenth, and what instances keep at the end."""
    executable = tensorwright.compile(model)
    random = np.random.default_rng(1)
    most_bytes = begin = 0
    for number in range(calls):
        length = 64 + int(random.integers(lengths))
        executable(np.ones(_shape(name, length, int(random.integers(1, 4))), np.float32))
        if number == calls // 10:
            begin = _resident_bytes()
        if begin and number % 100 == 0:
            most_bytes = max(most_bytes, _resident_bytes() - begin)
    kept = executable.instances  # type: ignore[attr-defined]
    return {
        "calls": calls,
        "added_mb": round(most_bytes / 1e6, 1),
        "instances": len(kept),
        "instances_mb": round(kept.size_bytes / 1e6, 1),
        "bound_mb": round(instances.MOST_BYTES / 1e6),
    }


def threads_at_once(name: str, model: onnx.ModelProto, threads: int) -> Any:
    """Compilations of each combination of sizes for which threads ask at once."""
    executable = tensorwright.compile(model)
    kept = executable.instances  # type: ignore[attr-defined]
    counted: list[object] = []
    build = kept._build

    def watched(shapes: Any) -> Any:
        counted.append(tuple(shapes.items()))
        return build(shapes)

    kept._build = watched
    lengths = (301, 302, 303, 304)
    with ThreadPoolExecutor(threads) as pool:
        asked = [np.ones(_shape(name, each, 0), np.float32) for each in lengths * threads]
        list(pool.map(executable, asked))
    return {"threads": threads, "sizes": len(lengths), "compiled": len(counted)}


def first_and_second(name: str, model: onnx.ModelProto) -> Any:
    """Times of a first call over those of compiling, and of the fixed executable over a second."""
    executable = tensorwright.compile(model)
    firsts, seconds = [], []
    for length in (401, 523, 647):
        x = np.ones(_shape(name, length), np.float32)
        alike = np.ones(_shape(name, length + 1), np.float32)  # nothing of this size is kept
        first_s = _time_s(executable, x)
        compile_s = _time_s(_compiled_for, model, alike)
        firsts.append(first_s / compile_s)
        fixed = _compiled_for(model, x)
        turns = [(_time_s(fixed, x), _time_s(executable, x)) for _ in range(_TURNS)]
        of_fixed, of_any = map(median, zip(*turns, strict=True))
        seconds.append(of_fixed / of_any)
    return {"first": round(median(firsts), 2), "second": round(median(seconds), 3)}


def _compiled_for(model: onnx.ModelProto, x: Any) -> tensorwright.Executable:
    """The network compiled for these sizes alone, and called once."""
    executable = tensorwright.compile(model, input_shapes={"x": x.shape})
    executable(x)
    return executable


def _time_s(work: Callable[..., object], *arguments: Any) -> float:
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--lengths", type=int, default=24, help="different lengths")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--json", type=Path, help="a file for the results")
    given = parser.parse_args()
    logging.getLogger("tensorwright").setLevel(logging.ERROR)
    results: dict[str, Any] = {}
    for name, make in (("program", program), ("by instance", by_instance)):
        with tempfile.TemporaryDirectory() as home, override(home=Path(home)):
            model = make()
            results[name] = {
                **first_and_second(name, model),
                **threads_at_once(name, model, given.threads),
                **calls_at_random_sizes(name, model, given.calls, given.lengths),
            }
        print(name, *(f"{key}={value}" for key, value in results[name].items()), flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
