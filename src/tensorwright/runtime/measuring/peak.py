"""Measure what this machine can do: arithmetic per second, and bytes per second.

Kernels are compared with these ceilings, so the measurement uses the same means as kernels: LLVM
IR, compiled for the target, called through libgomp.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence

import numpy as np

from tensorwright.base import CpuTarget, DType, check_runs_here
from tensorwright.runtime.native.jit import load_ir
from tensorwright.runtime.native.openmp import usable_threads

_BUDGET_S = 0.1
_LEAST_REPEATS = 5
_PAUSE_S = 0.001
_LEAST_BYTES = 1 << 24  # read in one run: long against a fork-join
_FLOPS_PER_RUN = 30_000_000  # of each thread: long against a fork-join, short against a time slice


def measure_peak(target: CpuTarget, threads: int = 1, dtype: DType = DType.F32) -> float:
    """Floating-point operations per second of `threads` threads, an FMA counting as two.

    Every thread runs a loop of independent FMAs on registers; the best of several short runs,
    below 0.2 s in all if the cores are free.
    Raises:  MachineError if the target's instructions are not those of this machine, or if
             several threads are requested and there is no libgomp.
    """
    chains = 12 if target.vector_registers < 32 else 24
    lanes = target.lanes(dtype)
    rounds = max(1, _FLOPS_PER_RUN // (2 * lanes * chains))
    best_s = _best_time(target, threads, _fma_loop(lanes, chains, dtype), rounds)
    return 2.0 * lanes * chains * rounds * threads / best_s


def measure_bandwidth(target: CpuTarget, threads: int = 1, size_bytes: int = 1 << 26) -> float:
    """Bytes per second that `threads` threads read together from a buffer of a size.

    A buffer smaller than the last cache measures that cache, in several passes, so that starting
    the threads does not count; memory needs several times the size of the last cache.
    Raises:  as `measure_peak`.
    """
    lanes = target.lanes(DType.F32)
    step = lanes * 8
    per_thread = max(step, size_bytes // (4 * threads) // step * step)
    passes = max(1, _LEAST_BYTES // (4 * per_thread * threads))
    data = np.ones(per_thread * threads, np.float32)
    numbers = (per_thread * passes, data.ctypes.data, per_thread)
    best_s = _best_time(target, threads, _read_loop(lanes), *numbers)
    return 4.0 * per_thread * passes * threads / best_s


def _best_time(target: CpuTarget, threads: int, ir_text: str, *numbers: int) -> float:
    """Seconds of the shortest of many runs of `measure({*numbers, results})`, after one to warm up.

    Each thread writes its result into 64 bytes of the results.
    """
    check_runs_here(target, "runtime", remedy="measure the target 'native'")
    code = load_ir(ir_text, ("measure",), target)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(code.address("measure"))
    results = np.zeros((usable_threads(threads), 64), np.uint8)
    arguments = (ctypes.c_int64 * (len(numbers) + 1))(*numbers, results.ctypes.data)
    call(ctypes.addressof(arguments), threads)
    best_s = float("inf")
    repeats = 0
    end = time.perf_counter() + _BUDGET_S
    while repeats < _LEAST_REPEATS or time.perf_counter() < end:
        start = time.perf_counter()
        call(ctypes.addressof(arguments), threads)
        best_s = min(best_s, time.perf_counter() - start)
        repeats += 1
        time.sleep(_PAUSE_S)  # threads that share a core may get other cores when they wake
    return best_s


_LOOP = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
define void @measure(ptr %arguments, i32 %threads) {{
  call void @GOMP_parallel(ptr @body, ptr %arguments, i32 %threads, i32 0)
  ret void
}}
define internal void @body(ptr %arguments) nounwind {{
entry:
  %limit = load i64, ptr %arguments
  %thread = call i32 @omp_get_thread_num()
  %index = sext i32 %thread to i64
{start}
  %slot = getelementptr i64, ptr %arguments, i64 {last_argument}
  %results = load ptr, ptr %slot
  %result = getelementptr [64 x i8], ptr %results, i64 %index
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
{steps}
  %next = add i64 %i, {stride}
  %more = icmp slt i64 %next, %limit
  br i1 %more, label %loop, label %done
done:
{sums}
  %first = extractelement {vector} %s{last}, i32 0
  store {element} %first, ptr %result
  ret void
}}
"""


def _fma_loop(lanes: int, chains: int, dtype: DType) -> str:
    """IR of `measure({rounds, results})`: x = x * a + b in `chains` independent vectors."""
    element, bits = ("float", 32) if dtype is DType.F32 else ("double", 64)
    vector = f"<{lanes} x {element}>"
    fma = f"@llvm.fmuladd.v{lanes}f{bits}"
    steps = [
        f"  %y{c} = call {vector} {fma}({vector} %x{c}, {vector} splat ({element} 0.5), "
        f"{vector} splat ({element} 1.0))"
        for c in range(chains)
    ]
    starts = [f"splat ({element} {c + 1}.0)" for c in range(chains)]
    loop = _loop(vector, element, starts, steps, start="", stride=1, last_argument=1)
    return f"{loop}declare {vector} {fma}({vector}, {vector}, {vector})\n"


def _read_loop(lanes: int) -> str:
    """IR of `measure({elements, data, part, results})`: each thread adds up its part.

    It reads the given number of elements, and starts again at the end of its part.
    """
    vector = f"<{lanes} x float>"
    steps = [
        f"  %p{c} = getelementptr float, ptr %at, i64 {c * lanes}\n"
        f"  %v{c} = load {vector}, ptr %p{c}, align 4\n"
        f"  %y{c} = fadd {vector} %x{c}, %v{c}"
        for c in range(8)
    ]
    steps[0] = f"  %at = getelementptr float, ptr %start, i64 %offset\n{steps[0]}"
    steps.append(
        f"  %up = add i64 %offset, {8 * lanes}\n"
        "  %wraps = icmp eq i64 %up, %part\n"
        "  %after = select i1 %wraps, i64 0, i64 %up"
    )
    start = """\
  %slot1 = getelementptr i64, ptr %arguments, i64 1
  %data = load ptr, ptr %slot1
  %slot2 = getelementptr i64, ptr %arguments, i64 2
  %part = load i64, ptr %slot2
  %begin = mul i64 %index, %part
  %start = getelementptr float, ptr %data, i64 %begin"""
    starts = ["zeroinitializer"] * 8
    text = _loop(vector, "float", starts, steps, start, stride=8 * lanes, last_argument=3)
    first = "%i = phi i64 [0, %entry], [%next, %loop]"
    return text.replace(first, f"{first}\n  %offset = phi i64 [0, %entry], [%after, %loop]")


def _loop(
    vector: str,
    element: str,
    starts: Sequence[str],
    steps: Sequence[str],
    start: str,
    stride: int,
    last_argument: int,
) -> str:
    """IR of a loop over 0..limit that turns vectors %x0, ... into %y0, ..., which are added up."""
    phis = [f"  %x{c} = phi {vector} [{x}, %entry], [%y{c}, %loop]" for c, x in enumerate(starts)]
    sums = [
        f"  %s{c} = fadd {vector} %{f's{c - 1}' if c else 'y0'}, %y{c}" for c in range(len(starts))
    ]
    return _LOOP.format(
        start=start,
        last_argument=last_argument,
        phis="\n".join(phis),
        steps="\n".join(steps),
        stride=stride,
        sums="\n".join(sums),
        vector=vector,
        element=element,
        last=len(starts) - 1,
    )
