"""Measure what this machine can do: arithmetic per second, and bytes per second.

The figures are the ceiling that kernels are compared with, so they are measured by the same means
as kernels are made: LLVM IR, compiled for the target, called through libgomp.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np

from tensorwright.base import DType, MachineError, Target, detect_target
from tensorwright.runtime.native.jit import load_ir
from tensorwright.runtime.native.openmp import usable_threads

_BUDGET_S = 0.1
_LEAST_REPEATS = 5
_PAUSE_S = 0.001
_FLOPS_PER_RUN = 30_000_000  # of each thread: long against a fork-join, short against a time slice


def measure_peak(target: Target, threads: int = 1, dtype: DType = DType.F32) -> float:
    """Floating-point operations per second of `threads` threads, an FMA counting as two.

    Every thread runs a loop of independent FMAs on registers; the best of several short runs,
    under 0.2 s in all where the cores are free.
    Raises:  MachineError if the target's instructions are not those of this machine, or if
             several threads are asked for and there is no libgomp.
    """
    _check_runs_here(target)
    threads = usable_threads(threads)
    chains = 12 if target.vector_registers < 32 else 24
    lanes = target.lanes(dtype)
    code = load_ir(_fma_loop(lanes, chains, dtype), ("measure",), target)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(code.address("measure"))
    rounds = max(1, _FLOPS_PER_RUN // (2 * lanes * chains))
    results = np.zeros((threads, 8), np.float64)
    arguments = (ctypes.c_int64 * 2)(rounds, results.ctypes.data)
    best_s = _best_time(lambda: call(ctypes.addressof(arguments), threads))
    return 2.0 * lanes * chains * rounds * threads / best_s


def measure_bandwidth(target: Target, threads: int = 1, size_bytes: int = 1 << 26) -> float:
    """Bytes per second that `threads` threads read together from a buffer of that size.

    A buffer smaller than the last cache measures that cache; memory needs several times its size.
    Raises:  as `measure_peak`.
    """
    _check_runs_here(target)
    threads = usable_threads(threads)
    lanes = target.lanes(DType.F32)
    step = lanes * 8
    per_thread = max(step, size_bytes // (4 * threads) // step * step)
    code = load_ir(_read_loop(lanes), ("measure",), target)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(code.address("measure"))
    data = np.ones(per_thread * threads, np.float32)
    results = np.zeros((threads, 16), np.float32)
    arguments = (ctypes.c_int64 * 3)(per_thread, data.ctypes.data, results.ctypes.data)
    best_s = _best_time(lambda: call(ctypes.addressof(arguments), threads))
    return 4.0 * per_thread * threads / best_s


def _check_runs_here(target: Target) -> None:
    missing = target.missing_on(detect_target())
    if missing:
        raise MachineError(
            stage="runtime",
            where=f"target {target.name}",
            reason=f"this machine cannot run its code: {missing}",
            remedy="measure the target 'native'",
        )


def _best_time(run: Callable[[], object]) -> float:
    """Seconds of the shortest of many runs, after one to warm up."""
    run()
    best_s = float("inf")
    repeats = 0
    end = time.perf_counter() + _BUDGET_S
    while repeats < _LEAST_REPEATS or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best_s = min(best_s, time.perf_counter() - start)
        repeats += 1
        time.sleep(_PAUSE_S)  # threads that share a core are placed anew when they wake
    return best_s


_PARALLEL = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
define void @measure(ptr %arguments, i32 %threads) {
  call void @GOMP_parallel(ptr @body, ptr %arguments, i32 %threads, i32 0)
  ret void
}
"""


def _fma_loop(lanes: int, chains: int, dtype: DType) -> str:
    """IR of `body({rounds, results})`: x = x * a + b in so many independent vectors."""
    element, bits = ("float", 32) if dtype is DType.F32 else ("double", 64)
    vector = f"<{lanes} x {element}>"
    fma = f"@llvm.fmuladd.v{lanes}f{bits}"
    phis = "\n".join(
        f"  %x{c} = phi {vector} [splat ({element} {c + 1}.0), %entry], [%y{c}, %loop]"
        for c in range(chains)
    )
    steps = "\n".join(
        f"  %y{c} = call {vector} {fma}({vector} %x{c}, {vector} splat ({element} 0.5), "
        f"{vector} splat ({element} 1.0))"
        for c in range(chains)
    )
    sums = "\n".join(
        f"  %s{c} = fadd {vector} %{f's{c - 1}' if c else 'y0'}, %y{c}" for c in range(chains)
    )
    return f"""{_PARALLEL}
declare {vector} {fma}({vector}, {vector}, {vector})
define internal void @body(ptr %arguments) nounwind {{
entry:
  %rounds = load i64, ptr %arguments
  %slot = getelementptr i64, ptr %arguments, i64 1
  %results = load ptr, ptr %slot
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %rounds
  br i1 %more, label %loop, label %done
done:
{sums}
  %first = extractelement {vector} %s{chains - 1}, i32 0
  %thread = call i32 @omp_get_thread_num()
  %offset = mul i32 %thread, 64
  %place = getelementptr i8, ptr %results, i32 %offset
  store {element} %first, ptr %place
  ret void
}}
"""


def _read_loop(lanes: int) -> str:
    """IR of `body({elements, data, results})`: each thread adds up its own part of the data."""
    vector = f"<{lanes} x float>"
    phis = "\n".join(
        f"  %x{c} = phi {vector} [zeroinitializer, %entry], [%y{c}, %loop]" for c in range(8)
    )
    steps = "\n".join(
        f"  %p{c} = getelementptr float, ptr %at, i64 {c * lanes}\n"
        f"  %v{c} = load {vector}, ptr %p{c}, align 4\n"
        f"  %y{c} = fadd {vector} %x{c}, %v{c}"
        for c in range(8)
    )
    sums = "\n".join(
        f"  %s{c} = fadd {vector} %{f's{c - 1}' if c else 'y0'}, %y{c}" for c in range(8)
    )
    return f"""{_PARALLEL}
define internal void @body(ptr %arguments) nounwind {{
entry:
  %elements = load i64, ptr %arguments
  %slot1 = getelementptr i64, ptr %arguments, i64 1
  %data = load ptr, ptr %slot1
  %slot2 = getelementptr i64, ptr %arguments, i64 2
  %results = load ptr, ptr %slot2
  %thread = call i32 @omp_get_thread_num()
  %index = sext i32 %thread to i64
  %begin = mul i64 %index, %elements
  %start = getelementptr float, ptr %data, i64 %begin
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
  %at = getelementptr float, ptr %start, i64 %i
{steps}
  %next = add i64 %i, {8 * lanes}
  %more = icmp slt i64 %next, %elements
  br i1 %more, label %loop, label %done
done:
{sums}
  %first = extractelement {vector} %s7, i32 0
  %place = getelementptr [16 x float], ptr %results, i64 %index
  store float %first, ptr %place
  ret void
}}
"""
