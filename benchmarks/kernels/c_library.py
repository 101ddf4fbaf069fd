"""A network as a C library against the LLVM executable of the same schedules, and ONNX Runtime.

    python benchmarks/kernels/c_library.py [MODEL] [--compilers gcc,clang] [--threads N]
         [--rounds N]

Each library is made as `tensorwright compile --emit c` makes it, built by its own Makefile with
warnings as errors, and loaded into a process of its own. All take turns; the answers are compared
with those of the executable first. Where a compiler has no OpenMP, its library runs on one thread
and says so.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tensorwright.artifacts.c_library import prefix_of
from tensorwright.base import available_cores
from tensorwright.cli.arguments.models import read_graph, read_proto, short_name
from tensorwright.cli.printing import print_table
from tensorwright.compile_options import USUAL
from tensorwright.drivers.c_library import export_c
from tensorwright.graph import random_inputs
from tensorwright.peers.process import PeerProcess, Timing, max_rel_error, rotate
from tensorwright.pipeline import finish, prepare
from tensorwright.records import MemoryStore

NAME = prefix_of("network")
_Arrays = Mapping[str, np.ndarray]


def build_library(folder: Path, compiler: str) -> tuple[Path, bool]:
    """The shared library of an exported network, and whether it has threads."""
    command = ["make", "-s", "-B", "-C", str(folder), f"CC={compiler}", "CFLAGS=-O3 -fPIC"]
    subprocess.run([*command, f"lib{NAME}.a"], check=True)
    probe = subprocess.run(
        [compiler, "-fopenmp", "-include", "omp.h", "-x", "c", "-c", os.devnull, "-o", os.devnull],
        capture_output=True,
        check=False,
    )
    openmp = ["-fopenmp"] if probe.returncode == 0 else []
    shared = folder / f"lib{NAME}-{compiler}.so"
    whole = ["-Wl,--whole-archive", str(folder / f"lib{NAME}.a"), "-Wl,--no-whole-archive"]
    subprocess.run([compiler, "-shared", *openmp, *whole, "-lm", "-o", shared], check=True)
    return shared, bool(openmp)


def load_library(
    inputs: _Arrays, threads: int, *, library: str, weights: str, outputs: list[list[Any]]
) -> Callable[[], dict[str, np.ndarray]]:
    """What `FunctionPeer` times: one run of a library; `outputs` are names, types and shapes."""
    code = ctypes.CDLL(library)
    model = ctypes.c_void_p()
    error = getattr(code, f"{NAME}_load")(ctypes.byref(model), os.fsencode(weights))
    if error:
        raise ValueError(f"{library}: error {error}")
    given = [np.ascontiguousarray(array) for array in inputs.values()]
    results = {name: np.zeros(shape, dtype) for name, dtype, shape in outputs}
    sources = (ctypes.c_void_p * len(given))(*(array.ctypes.data for array in given))
    sinks = (ctypes.c_void_p * len(results))(*(array.ctypes.data for array in results.values()))
    run = getattr(code, f"{NAME}_run")

    def call() -> dict[str, np.ndarray]:
        error = run(model, sources, sinks, threads)
        if error:
            raise ValueError(f"{library}: error {error}")
        return results

    call.kept = given  # type: ignore[attr-defined]
    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="light:squeezenet")
    parser.add_argument("--compilers", default="gcc,clang")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    graph = read_graph(asked.model)
    inputs = random_inputs(graph, 0)
    target, store = USUAL.machine, MemoryStore()
    parts = prepare(graph, target)
    print(f"{short_name(asked.model)}, {target}, {asked.threads} threads, load {os.getloadavg()}")
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack:
        folder = Path(text)
        executable = finish(parts, target, asked.threads, store)
        executable.save(folder / "model.tw")
        onnx.save(read_proto(asked.model), folder / "model.onnx")
        export_c(parts, target, asked.threads, store, folder / "c", "network")
        described = [[s.name, s.dtype.numpy.str, list(s.shape)] for s in executable.outputs]
        weights = str(folder / "c" / f"{NAME}.weights")

        racing = [stack.enter_context(PeerProcess("LLVM executable", "ours"))]
        racing[0].load(str(folder / "model.tw"), asked.threads)
        for compiler in asked.compilers.split(","):
            library, has_threads = build_library(folder / "c", compiler)
            note = "" if has_threads else ", no OpenMP"
            peer = stack.enter_context(PeerProcess(f"C library, {compiler}{note}", "function"))
            options = {"library": str(library), "weights": weights, "outputs": described}
            peer.load(f"{Path(__file__).resolve()}:load_library", asked.threads, options)
            racing.append(peer)
        racing.append(stack.enter_context(PeerProcess("ONNX Runtime", "onnxruntime")))
        racing[-1].load(str(folder / "model.onnx"), asked.threads)

        answers = [peer.check(inputs) for peer in racing]
        times = rotate(racing, asked.rounds)
        print_table(
            ("", "speed of the executable = 1", "largest difference / largest value"),
            [
                (
                    peer.name,
                    _speed(time, times[0]),
                    f"{max_rel_error(answer, answers[0]):.1e}",
                )
                for peer, time, answer in zip(racing, times, answers, strict=True)
            ],
        )
    print(f"load {os.getloadavg()}")


def _speed(time: object, base: object) -> str:
    if isinstance(time, Timing) and isinstance(base, Timing):
        return f"{base.median_s / time.median_s:.2f}"
    return str(time)


if __name__ == "__main__":
    main()
