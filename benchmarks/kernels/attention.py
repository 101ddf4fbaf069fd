"""Attention as one kernel: what share of the machine's bound it reaches, and against others.

The networks are a product, a scale, a softmax and a product; keys lie across the queries, as the
layer before stores them.  The bound is the time of both products at the measured peak plus that of
the exponentials at the rate of the vector mathematics on data that lies in registers, on all
threads.  Our network, the same as two kernels, and other runtimes take turns, each in a process of
its own; answers are checked.  A ratio above 1 says that we are faster.

Run: python benchmarks/kernels/attention.py [--heads 6 8 12] [--positions 128 512 1500 4096]
         [--widths 32 64 128] [--threads N] [--rounds N] [--peers onnxruntime openvino pytorch]
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from tensorwright import compile as compile_program
from tensorwright.base import CpuTarget, detect_target
from tensorwright.cli.printing import print_table
from tensorwright.expr import Fn, apply, compute, placeholder, reduce_axis, sum_over
from tensorwright.graph import Graph, GraphBuilder, partition, random_inputs, simplify
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.pipeline import finish
from tensorwright.records import MemoryStore
from tensorwright.runtime.measuring import measure_peak
from tensorwright_lab.comparison import compare_model

PEERS = ("onnxruntime", "openvino", "pytorch")
COLUMNS = ("heads", "positions", "width", "of bound", "of peak", "two kernels")
_ROUNDS_OF_RATES = 9
_POWERS, _TERMS = 256, 20_000


@dataclass(frozen=True, slots=True)
class Rates:
    """Operations and exponentials per second, of all threads."""

    flops: float
    exponentials: float

    def bound_s(self, flops: float, exponentials: float) -> float:
        """The least time for so many of each."""
        return flops / self.flops + exponentials / self.exponentials


def attention(heads: int, positions: int, width: int) -> Graph:
    """softmax(q k / sqrt(width)) v for one sequence."""
    b = GraphBuilder("attention")
    q, v = (b.input(name, (1, heads, positions, width)) for name in "qv")
    k = b.input("k", (1, heads, width, positions))
    scale = b.constant(np.full((1,), 1 / math.sqrt(width), np.float32))
    weights = b.add("softmax", b.add("mul", b.add("matmul", q, k), scale))
    mixed = b.add("matmul", weights, v)
    return b.finish([b.add("transpose", mixed, perm=(0, 2, 1, 3))])


def measure_rates(target: CpuTarget, threads: int) -> Rates:
    """The peak of the machine, and how fast it computes exponentials of what is in registers."""
    x, each = placeholder("x", (_POWERS,)), placeholder("each", (_TERMS,))
    r = reduce_axis("r", _TERMS)
    powers = compute("y", (_POWERS,), lambda i: sum_over(apply(Fn.EXP, x[i] * each[r]), r))
    run = compile_program(powers, target=target, threads=1)
    source = np.random.default_rng(0)
    inputs = {
        name: source.uniform(-1, 0, size).astype(np.float32)
        for name, size in (("x", _POWERS), ("each", _TERMS))
    }
    seconds = min(_seconds(lambda: run.run(inputs)) for _ in range(_ROUNDS_OF_RATES))
    peak = max(measure_peak(target) for _ in range(_ROUNDS_OF_RATES))
    return Rates(threads * peak, threads * _POWERS * _TERMS / seconds)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def row_of(
    heads: int,
    positions: int,
    width: int,
    rates: Rates,
    options: argparse.Namespace,
) -> tuple[str, ...]:
    """The shares and ratios of one case."""
    target = detect_target()
    graph = attention(heads, positions, width)
    threads = options.threads
    with tempfile.TemporaryDirectory() as folder:
        one, two, theirs = (Path(folder) / name for name in ("one", "two", "model.onnx"))
        save_onnx(graph, theirs)
        compile_program(graph, target=target, threads=threads).save(one)
        finish(partition(simplify(graph)), target, threads, MemoryStore()).save(two)
        row = compare_model(
            "attention",
            one,
            theirs,
            random_inputs(graph, 0),
            threads,
            options.peers,
            untuned=two,
            rounds=options.rounds,
        )
    if row.failure or row.ours_ms is None or row.untuned_ms is None:
        return (*map(str, (heads, positions, width)), row.failure)
    ours_s = row.ours_ms / 1e3
    scores = heads * positions * positions
    flops = 4.0 * scores * width
    shares = (rates.bound_s(flops, scores) / ours_s, flops / rates.flops / ours_s)
    times = (row.untuned_ms, *(peer.time_ms for peer in row.peers))
    return (
        *map(str, (heads, positions, width)),
        *(f"{100 * share:.0f}%" for share in shares),
        *("-" if each is None else f"{each / row.ours_ms:.2f}" for each in times),
    )


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", type=int, nargs="+", default=[6, 8, 12])
    parser.add_argument("--positions", type=int, nargs="+", default=[128, 512, 1500, 4096])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--peers", nargs="*", default=PEERS)
    options = parser.parse_args()
    rates = measure_rates(detect_target(), options.threads)
    print(f"{rates.flops / 1e9:.0f} GFLOP/s, {rates.exponentials / 1e9:.2f} G exponentials/s")
    cases = product(options.heads, options.positions, options.widths)
    rows = [row_of(*case, rates, options) for case in cases]
    print_table((*COLUMNS, *options.peers), rows)


if __name__ == "__main__":
    main()
