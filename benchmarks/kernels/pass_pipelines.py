"""Compare LLVM pass pipelines on the inner loops of two direct convolutions.

Prints, for each pipeline, the time to object code and the speed of the code: the evidence for the
choice in machine_code/compilation.py. Run alone on the machine:

    python benchmarks/kernels/pass_pipelines.py
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

from tensorwright.base import CpuTarget, cpu_target
from tensorwright.machine_code.compilation import create_machine
from tensorwright.runtime import LoadedObject, load_object

BUILDS = 5
RUNS = 25


@dataclass(frozen=True, slots=True)
class Convolution:
    """An NCHWc convolution, stride 1, on a register tile of `tile` x `vectors` vectors."""

    channels: int
    filters: int
    size: int
    kernel: int
    tile: int
    vectors: int
    unroll: int
    lanes: int

    @property
    def padded(self) -> int:
        """Rows and columns of the input."""
        return self.size + self.kernel - 1

    @property
    def rows(self) -> int:
        """Iterations of the outermost loop: blocks of filters times rows of the output."""
        return self.filters // self.lanes // self.vectors * self.size

    @property
    def flops(self) -> int:
        """Operations of the whole."""
        return 2 * self.channels * self.filters * self.size**2 * self.kernel**2


class Writer:
    """Lines of IR with fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def put(self, line: str) -> None:
        self.lines.append(line)

    def let(self, operation: str) -> str:
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {operation}")
        return name

    def row_major(self, pairs: list[tuple[str, int]]) -> str:
        """((i0 * n1 + i1) * n2 + i2) ... of (index, extent) pairs."""
        value = pairs[0][0]
        for index, extent in pairs[1:]:
            value = self.let(f"add i64 {self.let(f'mul i64 {value}, {extent}')}, {index}")
        return value


def convolution_ir(c: Convolution) -> str:
    """The kernel `conv(x, w, y, first_row, last_row)`, accumulators in memory for SROA to find."""
    vector, block = f"<{c.lanes} x float>", c.channels // c.lanes
    w = Writer()
    w.put(f"declare {vector} @llvm.fma.v{c.lanes}f32({vector}, {vector}, {vector})")
    w.put("define void @conv(ptr noalias %x, ptr noalias %w, ptr noalias %y, i64 %lo, i64 %hi) {")
    w.put("entry:")
    cells = [(a, o) for a in range(c.tile) for o in range(c.vectors)]
    for a, o in cells:
        w.put(f"  %acc{a}_{o} = alloca {vector}")
    w.put("  br label %row\nrow:\n  %r = phi i64 [%lo, %entry], [%r.n, %tile.end]")
    w.put(f"  %f = sdiv i64 %r, {c.size}\n  %oh = srem i64 %r, {c.size}\n  br label %tile")
    w.put("tile:\n  %tile.i = phi i64 [0, %row], [%tile.n, %ic.end]")
    for a, o in cells:
        w.put(f"  store {vector} zeroinitializer, ptr %acc{a}_{o}")
    w.put("  br label %ic\nic:\n  %ic.i = phi i64 [0, %tile], [%ic.n, %kh.end]\n  br label %kh")
    w.put("kh:\n  %kh.i = phi i64 [0, %ic], [%kh.n, %kw.end]\n  br label %kw")
    w.put("kw:\n  %kw.i = phi i64 [0, %kh], [%kw.n, %un.end]\n  br label %un")
    w.put("un:\n  %un.i = phi i64 [0, %kw], [%un.n, %un]")
    _reduction_step(w, c, vector, block)
    steps = c.lanes // c.unroll
    for name, extent in (("un", steps), ("kw", c.kernel), ("kh", c.kernel), ("ic", block)):
        _close(w, name, extent)
    for a, o in cells:
        filters = w.let(f"add i64 {w.let(f'mul i64 %f, {c.vectors}')}, {o}")
        column = w.let(f"add i64 {w.let(f'mul i64 %tile.i, {c.tile}')}, {a}")
        at = w.row_major([(filters, 0), ("%oh", c.size), (column, c.size), ("0", c.lanes)])
        place = w.let(f"getelementptr float, ptr %y, i64 {at}")
        value = w.let(f"load {vector}, ptr %acc{a}_{o}")
        w.put(f"  store {vector} {value}, ptr {place}, align {4 * c.lanes}")
    _close(w, "tile", c.size // c.tile)
    w.put("  %r.n = add i64 %r, 1\n  %r.c = icmp slt i64 %r.n, %hi")
    w.put("  br i1 %r.c, label %row, label %done\ndone:\n  ret void\n}")
    return "\n".join(w.lines)


def _close(w: Writer, name: str, extent: int) -> None:
    w.put(f"  %{name}.n = add i64 %{name}.i, 1")
    w.put(f"  %{name}.c = icmp slt i64 %{name}.n, {extent}")
    w.put(f"  br i1 %{name}.c, label %{name}, label %{name}.end\n{name}.end:")


def _reduction_step(w: Writer, c: Convolution, vector: str, block: int) -> None:
    height = w.let("add i64 %oh, %kh.i")
    width = w.let(f"add i64 {w.let(f'mul i64 %tile.i, {c.tile}')}, %kw.i")
    lane = w.let(f"mul i64 %un.i, {c.unroll}")
    x_at = w.row_major([("%ic.i", 0), (height, c.padded), (width, c.padded), (lane, c.lanes)])
    w_at = w.row_major([("%f", 0), ("%ic.i", block), ("%kh.i", c.kernel), ("%kw.i", c.kernel)])
    w_at = w.row_major([(w_at, 0), (lane, c.lanes), ("0", c.vectors * c.lanes)])
    x_base = w.let(f"getelementptr float, ptr %x, i64 {x_at}")
    w_base = w.let(f"getelementptr float, ptr %w, i64 {w_at}")
    for step in range(c.unroll):
        weights = []
        for o in range(c.vectors):
            offset = (step * c.vectors + o) * c.lanes
            place = w.let(f"getelementptr float, ptr {w_base}, i64 {offset}")
            weights.append(w.let(f"load {vector}, ptr {place}, align {4 * c.lanes}"))
        for a in range(c.tile):
            place = w.let(f"getelementptr float, ptr {x_base}, i64 {a * c.lanes + step}")
            scalar = w.let(f"load float, ptr {place}, align 4")
            first = w.let(f"insertelement {vector} poison, float {scalar}, i64 0")
            order = f"<{c.lanes} x i32> zeroinitializer"
            value = w.let(f"shufflevector {vector} {first}, {vector} poison, {order}")
            for o in range(c.vectors):
                total = w.let(f"load {vector}, ptr %acc{a}_{o}")
                arguments = f"{vector} {value}, {vector} {weights[o]}, {vector} {total}"
                total = w.let(f"call {vector} @llvm.fma.v{c.lanes}f32({arguments})")
                w.put(f"  store {vector} {total}, ptr %acc{a}_{o}")


def standard(level: int, is_everything: bool = False, is_function: bool = False) -> Callable:
    """One of LLVM's own pipelines; `is_everything` with its vectorisers and unroller."""

    def run(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = is_everything
        options.loop_unrolling = options.loop_interleaving = is_everything
        builder = llvm.create_pass_builder(machine, options)
        if not is_function:
            builder.getModulePassManager().run(module, builder)
            return
        passes = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    return run


def chosen(*names: str) -> Callable:
    """A list of passes by name."""

    def run(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        builder = llvm.create_pass_builder(machine, options)
        passes = llvm.create_new_module_pass_manager()
        for name in names:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)

    return run


PIPELINES = {
    "O3 with vectorisers": standard(3, is_everything=True),
    "O3": standard(3),
    "O2": standard(2),
    "O1": standard(1),
    "function simplification O2": standard(2, is_function=True),
    "function simplification O1": standard(1, is_function=True),
    "sroa new_gvn instcombine": chosen("sroa", "new_gvn", "instruction_combine"),
    "sroa instcombine simplifycfg": chosen("sroa", "instruction_combine", "simplify_cfg"),
    "sroa": chosen("sroa"),
    "no pass": chosen(),
}


def aligned(count: int) -> np.ndarray:
    """Random f32 values at a multiple of 64 bytes."""
    data = np.random.default_rng(0).random(count + 16, np.float32)
    offset = -data.ctypes.data % 64 // 4
    return data[offset : offset + count]


def build(text: str, pipeline: Callable, machine: llvm.TargetMachine) -> tuple[float, bytes]:
    """Seconds of the fastest build, and the object code."""
    times = []
    for _ in range(BUILDS):
        start = time.perf_counter()
        module = llvm.parse_assembly(text, context=llvm.create_context())
        pipeline(module, machine)
        code = machine.emit_object(module)
        times.append(time.perf_counter() - start)
    return min(times), code


def measure(c: Convolution, target: CpuTarget) -> None:
    """Print one table."""
    text, machine = convolution_ir(c), create_machine(target)
    built = {name: build(text, pipeline, machine) for name, pipeline in PIPELINES.items()}
    loaded: dict[str, LoadedObject] = {
        name: load_object(code, ("conv",)) for name, (_, code) in built.items()
    }
    x = aligned(c.channels * c.padded**2)
    w = aligned(c.filters * c.channels * c.kernel**2)
    y = aligned(c.filters * c.size**2)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)
    times: dict[str, list[float]] = {name: [] for name in PIPELINES}
    for _ in range(RUNS):  # taking turns, so that a slow moment hits all alike
        for name, code in loaded.items():
            start = time.perf_counter()
            kind(code.address("conv"))(x.ctypes.data, w.ctypes.data, y.ctypes.data, 0, c.rows)
            times[name].append(time.perf_counter() - start)
    reference_s = built["O3 with vectorisers"][0]
    print(f"{c}\n{'pipeline':40s} build ms  relative  GFLOP/s median  best")
    for name, samples in times.items():
        build_s = built[name][0]
        rates = [c.flops / seconds / 1e9 for seconds in (statistics.median(samples), min(samples))]
        ratio = build_s / reference_s
        print(f"{name:40s} {1e3 * build_s:8.1f} {ratio:9.2f} {rates[0]:15.0f} {rates[1]:5.0f}")


def main() -> None:
    target = cpu_target("native")
    lanes = target.vector_bytes // 4
    wide = target.vector_registers >= 32
    tiles = ((14, 2), (7, 4)) if wide else ((7, 1), (4, 2))
    for (filters, kernel), (tile, vectors) in zip(((64, 3), (256, 1)), tiles, strict=True):
        measure(Convolution(64, filters, 56, kernel, tile, vectors, 4, lanes), target)


if __name__ == "__main__":
    main()
