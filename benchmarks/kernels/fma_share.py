"""Count the instructions of main loops: how many of them multiply and add.

    python benchmarks/kernels/fma_share.py [--json benchmarks/results/fma-share.json]
    python benchmarks/kernels/fma_share.py --operators aarch64-neon

Nothing runs: the code of a product of matrices, of C12 (the last convolution of ResNet-18), and of
both with bytes is written for processors of both architectures, and its listing is read.  The main
loop is the innermost loop with the most multiply-adds; Winograd's algorithm is left out.  A core
that starts n instructions a cycle, m of them multiply-adds, reaches at most
min(1, share * n / m) of its peak in it.

A product of bytes counts as one multiply-add, whether it adds four products for each of four sums
(sdot, usdot), of sixteen (vpdpbusd), or eight for each of four (smmla, usmmla).

With --operators the single operators of the zoo are counted for one target: whether the main loops
of schedules that the time model chooses multiply as much as those by rule, and reach for the stack.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tensorwright.artifacts import backend_of, emit_source, loop_program
from tensorwright.base import CpuTarget, DType, collect_dumps, cpu_target
from tensorwright.graph import Graph, GraphBuilder, Workload
from tensorwright.pipeline import prepare
from tensorwright.records import Setting
from tensorwright.tuning.selection import Chooser
from tensorwright_lab.zoo import operator_cases, operator_program

TARGETS = (
    *("aarch64-neon", "aarch64-neon+dotprod", "aarch64-neon+dotprod+i8mm"),
    *("x86-64-avx2", "x86-64-avx512", "x86-64-avx512+avx512vnni"),
)
_MULTIPLY_ADD = re.compile(r"fml[as]|fmadd|vfn?m(add|sub)|[us]*dot|[us]*mmla|vpdpbusd")
_LABEL = re.compile(r"(\.\w+):")
_BRANCH = re.compile(r"(?:b\.\w+|cbn?z|tbn?z|b|j\w+)\s.*?(\.\w+)$")


@dataclass(frozen=True, slots=True)
class MainLoop:
    """The instructions of a main loop, and where its schedule comes from."""

    program: str
    target: str
    schedule: str
    multiply_adds: int
    memory_operands: int
    stack_operands: int
    instructions: int

    @property
    def share(self) -> float:
        """The multiply-adds of all instructions."""
        return self.multiply_adds / self.instructions


def matmul() -> Graph:
    """512 x 512 by a constant matrix of 512 x 512."""
    b = GraphBuilder("matmul")
    weights = b.constant(np.ones((512, 512), np.float32))
    return b.finish([b.add("matmul", b.input("x", (512, 512)), weights)])


def c12() -> Graph:
    """512 channels of 7 x 7 pixels, windows of 3 x 3, 512 filters; between small convolutions, so
    that its channels may lie in blocks.
    """
    b = GraphBuilder("C12")
    before, own, after = (
        b.constant(np.ones(shape, np.float32))
        for shape in ((512, 8, 1, 1), (512, 512, 3, 3), (8, 512, 1, 1))
    )
    x = b.add("relu", b.add("conv", b.input("x", (1, 8, 7, 7)), before))
    y = b.add("relu", b.add("conv", x, own, pads=(1, 1, 1, 1)))
    return b.finish([b.add("conv", y, after)])


def bytes_512() -> Graph:
    """512 x 512 codes by a constant matrix of bytes, to f32; signed or not, as a target wants."""
    b = GraphBuilder("bytes")
    weights = b.constant(np.ones((512, 512), np.int8))
    scale, zero = b.constant(np.array(0.05, np.float32)), b.constant(np.array(99, np.uint8))
    codes = b.add("quantize_linear", b.input("x", (512, 512)), scale, zero)
    sums = b.add("matmul_integer", codes, weights, zero)
    return b.finish([b.add("cast", sums, to=DType.F32)])


def bytes_c12() -> Graph:
    """C12 with bytes, whose data are quantised before it."""
    b = GraphBuilder("bytes of C12")
    before, after = (
        b.constant(np.ones(shape, np.float32)) for shape in ((512, 8, 1, 1), (8, 512, 1, 1))
    )
    scale, zero = b.constant(np.array(0.05, np.float32)), b.constant(np.array(99, np.uint8))
    x = b.add("relu", b.add("conv", b.input("x", (1, 8, 7, 7)), before))
    own = b.constant(np.ones((512, 512, 3, 3), np.int8))
    codes = b.add("quantize_linear", x, scale, zero)
    sums = b.add("conv_integer", codes, own, zero, pads=(1, 1, 1, 1))
    y = b.add("relu", b.add("mul", b.add("cast", sums, to=DType.F32), scale))
    return b.finish([b.add("conv", y, after)])


PROGRAMS: dict[str, Callable[[], Graph]] = {
    "matmul": matmul,
    "C12": c12,
    "bytes": bytes_512,
    "bytes C12": bytes_c12,
}


def main() -> None:
    """Print the table, and keep it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--operators", type=cpu_target, metavar="TARGET")
    given = parser.parse_args()
    if given.operators is not None:
        compare_operators(given.operators)
        return
    rows = []
    print(f"{'program':9} {'target':26} {'schedule':9} {'FMAs':>5} {'memory':>6} {'all':>5} share")
    for name, build in PROGRAMS.items():
        graph = build()
        for target in map(cpu_target, TARGETS):
            if target.multiplies_bytes != name.startswith("bytes"):
                continue
            for schedule in ("rule", "model"):
                row = count(name, graph, target, schedule)
                rows.append(row)
                numbers = f"{row.multiply_adds:5} {row.memory_operands:6} {row.instructions:5}"
                print(f"{name:9} {row.target:26} {schedule:9} {numbers} {row.share:5.0%}")
    if given.json is not None:
        table = [{**asdict(row), "share": round(row.share, 3)} for row in rows]
        given.json.write_text(json.dumps(table, indent=1) + "\n")


def compare_operators(target: CpuTarget) -> None:
    """Print the main loop of each operator of the zoo by rule and as the time model chooses."""
    better = worse = 0
    print(f"{'operator':10} {'by rule':>13} {'by model':>13}")
    for case in operator_cases(1):
        workload = operator_program(case).workload
        rule, model = (main_loop(case.name, workload, target, s) for s in ("rule", "model"))
        better += model.share > rule.share
        worse += model.share < rule.share
        told = (
            f"{each.multiply_adds:3} of {each.instructions:3}, {each.stack_operands:1}"
            for each in (rule, model)
        )
        print(f"{case.name:10} {' '.join(told)}")
    print(f"on {target} the model's loop multiplies more in {better} operators, less in {worse}")


def count(name: str, graph: Graph, target: CpuTarget, schedule: str) -> MainLoop:
    """The main loop of the workload with the most weights, by the heuristic or the time model."""
    os.environ |= {"TENSORWRIGHT_DEFAULT_SCHEDULE": schedule, "TENSORWRIGHT_WINOGRAD": "0"}
    workload = max(prepare(graph, target).workloads, key=_most_weights)
    return main_loop(name, workload, target, schedule)


def main_loop(name: str, workload: Workload, target: CpuTarget, schedule: str) -> MainLoop:
    """The innermost loop with the most multiply-adds; an empty one where no loop has any."""
    os.environ |= {"TENSORWRIGHT_DEFAULT_SCHEDULE": schedule, "TENSORWRIGHT_WINOGRAD": "0"}
    loops = innermost_loops(listing(workload, target))
    loop = max(loops, key=lambda each: sum(map(_is_multiply_add, each)), default=[""])
    memory = sum("[x" in line or "[sp" in line or "(%" in line for line in loop)
    stack = sum("[sp" in line or "(%rsp" in line for line in loop)
    multiply_adds = sum(map(_is_multiply_add, loop))
    return MainLoop(name, target.name, schedule, multiply_adds, memory, stack, len(loop))


def _most_weights(workload: Workload) -> int:
    weights = (each for each in workload.inputs if each.name in workload.constants)
    return max((math.prod(each.shape) for each in weights), default=0)


def _is_multiply_add(line: str) -> bool:
    return _MULTIPLY_ADD.match(line) is not None


def listing(workload: Workload, target: CpuTarget) -> str:
    """The assembly of a workload on one thread."""
    chosen = Chooser(Setting(target, 1)).unmeasured(workload)
    with collect_dumps(("asm",)) as dumps:
        emit_source(loop_program(workload, chosen.schedule, target), target, backend_of(target))
    return dumps[-1].text


def innermost_loops(text: str) -> list[list[str]]:
    """The instructions between a label and a branch back to it that no other label divides."""
    loops: list[list[str]] = []
    label, since = "", []
    for line in map(str.strip, text.splitlines()):
        named = _LABEL.match(line)
        if named is not None:
            label, since = named[1], []
        elif line and not line.startswith((".", "#", "//")):
            since.append(line)
            branch = _BRANCH.match(line)
            if branch is not None and branch[1] == label:
                loops.append(since)
                label, since = "", []
    return loops


if __name__ == "__main__":
    main()
