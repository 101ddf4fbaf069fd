"""How close hand-scheduled loop programs come to one core's peak, and what compiling them costs.

    conv    3x3, 56x56, 64 -> 64 channels, in blocks of one vector of channels, packed weights
    matmul  512^3, B packed in panels of two vectors

Peak and kernels are measured in turns, so that what else the machine does lowers both.
Run: python benchmarks/kernels/codegen_kernels.py [target]
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from tensorwright import loop
from tensorwright.base import CpuTarget, DType, cpu_target
from tensorwright.codegen.llvm import emit
from tensorwright.expr import Index, Load, Var, constant
from tensorwright.machine_code.compilation import compile_module
from tensorwright.runtime import kernel_spec
from tensorwright.runtime.buffers import address_of, empty, empty_bytes
from tensorwright.runtime.measuring import measure_peak
from tensorwright.runtime.native.jit import load_object
from tensorwright.schedule import ForKind, Scope

F32 = DType.F32
SERIAL, UNROLLED, VECTOR = ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTOR
ROUNDS, CALLS = 7, 12
CHANNELS, SIZE, KERNEL = 64, 56, 3
DIM = 512


def nest(*heads: tuple[Var, int, ForKind], body: loop.Stmt) -> loop.Stmt:
    for var, extent, kind in reversed(heads):
        body = loop.For(var, extent, kind, body)
    return body


def names(text: str) -> tuple[Var, ...]:
    return tuple(Var(name) for name in text.split())


def tiled(
    acc: loop.Buffer, place: tuple[Index, ...], heads: tuple[tuple[Var, int, ForKind], ...]
) -> Callable[
    [loop.Buffer, tuple[Index, ...], Load, Load, tuple[tuple[Var, int, ForKind], ...]], loop.Stmt
]:
    """A register tile: zero it, add products over the reduction loops, store it."""

    def build(
        out: loop.Buffer,
        to: tuple[Index, ...],
        left: Load,
        right: Load,
        reduction: tuple[tuple[Var, int, ForKind], ...],
    ) -> loop.Stmt:
        here = Load(acc, place)
        update = loop.Store(acc, place, here + left * right)
        return loop.Allocate(
            acc,
            loop.block(
                nest(*heads, body=loop.Store(acc, place, constant(0, F32))),
                nest(*reduction, *heads, body=update),
                nest(*heads, body=loop.Store(out, to, here)),
            ),
        )

    return build


def conv(lanes: int, rows: int, vectors: int, unroll: int = 4) -> loop.LoopProgram:
    blocks, outer = CHANNELS // lanes, CHANNELS // lanes // vectors
    padded = SIZE + KERNEL - 1
    x = loop.Buffer("x", (blocks, padded, padded, lanes), F32)
    w = loop.Buffer("w", (outer, blocks, KERNEL, KERNEL, lanes, vectors * lanes), F32)
    y = loop.Buffer("y", (blocks, SIZE, SIZE, lanes), F32)
    acc = loop.Buffer("acc", (rows, vectors, lanes), F32, Scope.LOCAL)
    oo, oh, ow, ic, kh, kw, io, ii, i, j, v = names("oo oh ow ic kh kw io ii i j v")
    heads = (i, rows, UNROLLED), (j, vectors, UNROLLED), (v, lanes, VECTOR)
    channel = io * unroll + ii
    body = tiled(acc, (i, j, v), heads)(
        y,
        (oo * vectors + j, oh, ow * rows + i, v),
        Load(x, (ic, oh + kh, ow * rows + i + kw, channel)),
        Load(w, (oo, ic, kh, kw, channel, j * lanes + v)),
        (
            *((ic, blocks, SERIAL), (kh, KERNEL, SERIAL), (kw, KERNEL, SERIAL)),
            *((io, lanes // unroll, SERIAL), (ii, unroll, UNROLLED)),
        ),
    )
    outer_loops = (oo, outer, SERIAL), (oh, SIZE, SERIAL), (ow, SIZE // rows, SERIAL)
    return program("conv", nest(*outer_loops, body=body), x, w, y)


def matmul(lanes: int, rows: int, vectors: int, unroll: int = 4) -> loop.LoopProgram:
    width = vectors * lanes
    a, c = loop.Buffer("a", (DIM, DIM), F32), loop.Buffer("c", (DIM, DIM), F32)
    b = loop.Buffer("b", (DIM // width, DIM, width), F32)
    acc = loop.Buffer("acc", (rows, width), F32, Scope.LOCAL)
    no, mo, ko, ki, i, v = names("no mo ko ki i v")
    heads = (i, rows, UNROLLED), (v, width, VECTOR)
    depth = ko * unroll + ki
    body = tiled(acc, (i, v), heads)(
        c,
        (mo * rows + i, no * width + v),
        Load(a, (mo * rows + i, depth)),
        Load(b, (no, depth, v)),
        ((ko, DIM // unroll, SERIAL), (ki, unroll, UNROLLED)),
    )
    outer_loops = (no, DIM // width, SERIAL), (mo, DIM // rows, SERIAL)
    return program("matmul", nest(*outer_loops, body=body), a, b, c)


def program(name: str, body: loop.Stmt, *buffers: loop.Buffer) -> loop.LoopProgram:
    roles = loop.Role.INPUT, loop.Role.CONSTANT, loop.Role.OUTPUT
    pairs = zip(buffers, roles, strict=True)
    return loop.LoopProgram(name, tuple(loop.Parameter(b, role) for b, role in pairs), body)


class Compiled:
    """A program made ready to be called on buffers of its own; compile times in ms."""

    def __init__(self, source: loop.LoopProgram, target: CpuTarget) -> None:
        start = time.perf_counter()
        kernel = emit(source, target)
        emitted = time.perf_counter()
        code = compile_module(kernel.text, target)
        self.emit_ms = 1e3 * (emitted - start)
        self.llvm_ms = 1e3 * (time.perf_counter() - emitted)
        self.loaded = load_object(code, (kernel.signature.symbol,))
        random = np.random.default_rng(0)
        self.arrays = [empty(p.buffer.shape, F32) for p in source.parameters]
        for array in self.arrays:
            array[...] = random.standard_normal(array.shape)
        self.workspace = empty_bytes(max(64, kernel_spec(kernel.signature).scratch_bytes(1)))
        self.pointers = (ctypes.c_void_p * 3)(*(address_of(array) for array in self.arrays))
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
        self.call = signature(self.loaded.address(kernel.signature.symbol))

    def time_s(self) -> float:
        """The median time of some calls."""
        times = []
        for _ in range(CALLS):
            start = time.perf_counter()
            self.call(self.pointers, address_of(self.workspace), 1)
            times.append(time.perf_counter() - start)
        return median(times)


def main() -> None:
    target = cpu_target(sys.argv[1] if len(sys.argv) > 1 else "native")
    lanes = target.lanes(F32)
    wide = target.vector_registers >= 32
    cases = {
        "conv 3x3 56x56 64->64": (
            conv(lanes, *((14, 2) if wide else (4, 2))),
            2.0 * CHANNELS * CHANNELS * SIZE * SIZE * KERNEL * KERNEL,
        ),
        "matmul 512^3": (matmul(lanes, *((8, 2) if wide else (4, 2))), 2.0 * DIM**3),
    }
    for source, _ in cases.values():
        Compiled(source, target)  # what is only done once: imports, LLVM's tables
    for name, (source, flops) in cases.items():
        compiled = [Compiled(source, target) for _ in range(3)]
        shares, rates = [], []
        for _ in range(ROUNDS):
            peak = measure_peak(target)
            rate = flops / compiled[0].time_s()
            rates.append(rate)
            shares.append(rate / peak)
        emit_ms = median(c.emit_ms for c in compiled)
        llvm_ms = median(c.llvm_ms for c in compiled)
        print(
            f"{name:24} {target}: {100 * median(shares):5.1f} % of peak "
            f"({min(shares):.2f}..{max(shares):.2f}), {median(rates) / 1e9:.0f} GFLOP/s, "
            f"emit {emit_ms:.0f} ms + LLVM {llvm_ms:.0f} ms"
        )


if __name__ == "__main__":
    main()
