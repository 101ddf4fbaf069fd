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
from tensorwright.machine_code import Kind, Module, NativeFunction, Number, Variable, vector_type
from tensorwright.runtime.native.jit import load_function
from tensorwright.runtime.native.openmp import usable_threads

_BUDGET_S = 0.1
_LEAST_REPEATS = 5
_PAUSE_S = 0.001
_LEAST_BYTES = 1 << 24  # read in one run: long against a fork-join
_READ_VECTORS = 8  # that are read and added up at a time
_RESULT_BYTES = 64
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
    step = lanes * _READ_VECTORS
    per_thread = max(step, size_bytes // (4 * threads) // step * step)
    passes = max(1, _LEAST_BYTES // (4 * per_thread * threads))
    data = np.ones(per_thread * threads, np.float32)
    numbers = (per_thread * passes, data.ctypes.data, per_thread)
    best_s = _best_time(target, threads, _read_loop(lanes), *numbers)
    return 4.0 * per_thread * passes * threads / best_s


def _best_time(target: CpuTarget, threads: int, measure: NativeFunction, *numbers: int) -> float:
    """Seconds of the shortest of many runs of `measure({*numbers, results})`, after one to warm up.

    Each thread writes its result into 64 bytes of the results.
    """
    check_runs_here(target, "runtime", remedy="measure the target 'native'")
    function = load_function(measure, target)
    results = np.zeros((usable_threads(threads), _RESULT_BYTES), np.uint8)
    arguments = (ctypes.c_int64 * (len(numbers) + 1))(*numbers, results.ctypes.data)
    function.run(ctypes.addressof(arguments), threads)
    best_s = float("inf")
    repeats = 0
    end = time.perf_counter() + _BUDGET_S
    while repeats < _LEAST_REPEATS or time.perf_counter() < end:
        start = time.perf_counter()
        function.run(ctypes.addressof(arguments), threads)
        best_s = min(best_s, time.perf_counter() - start)
        repeats += 1
        time.sleep(_PAUSE_S)  # threads that share a core may get other cores when they wake
    return best_s


def _fma_loop(lanes: int, chains: int, dtype: DType) -> NativeFunction:
    """`measure({rounds, results})`: x = x * a + b in so many independent vectors."""
    body = _thread_body()
    rounds = body.parameters[0].array(Kind.I64)[0]
    kind = vector_type(Kind.F32 if dtype is DType.F32 else Kind.F64, lanes)
    vectors = [body.variable(kind, chain + 1.0) for chain in range(chains)]
    with body.loop(rounds):
        for vector in vectors:
            vector.set(vector.now.intrinsic("fmuladd", 0.5, 1.0))
    return _measured(body, vectors, 1)


def _read_loop(lanes: int) -> NativeFunction:
    """`measure({elements, data, part, results})`: each thread adds up its own part.

    It reads the given number of elements, and starts again at the end of its part.
    """
    body = _thread_body()
    arguments = body.parameters[0]
    elements, part = (arguments.array(Kind.I64)[n] for n in (0, 2))
    start = arguments.array(Kind.POINTER)[1].array(Kind.F32).part(_thread(body) * part)
    offset = body.variable(Kind.I64, 0)
    sums = [body.variable(vector_type(Kind.F32, lanes), 0.0) for _ in range(_READ_VECTORS)]
    step = _READ_VECTORS * lanes
    with body.loop(elements, step=step):
        block = start.part(offset.now)
        for number, total in enumerate(sums):
            total.set(total.now + block.vector(number * lanes, lanes))
        following = offset.now + step
        offset.set(following.differs(part).choose(following, 0))
    return _measured(body, sums, 3)


def _thread_body() -> NativeFunction:
    """What each thread runs, while it is written."""
    return NativeFunction(Module(), "body", (Kind.POINTER,), is_internal=True)


def _thread(body: NativeFunction) -> Number:
    """The number of the thread that runs a body."""
    return body.call(Kind.I32, "omp_get_thread_num").cast("sext", Kind.I64)


def _measured(body: NativeFunction, vectors: Sequence[Variable], position: int) -> NativeFunction:
    """What runs the body on threads, which store a lane of the sum of all vectors in their part of
    the results; these are an argument of that position.
    """
    total = vectors[0].now
    for vector in vectors[1:]:
        total = total + vector.now
    lane = total.lane(0)
    results = body.parameters[0].array(Kind.POINTER)[position]
    row = results.array(Kind.I8).address(_thread(body) * _RESULT_BYTES)
    row.array(lane.kind)[0] = lane
    body.finish()
    function = NativeFunction(body.module, "measure", (Kind.POINTER, Kind.I32))
    arguments, threads = function.parameters
    flags = function.number(0, Kind.I32)
    function.do("GOMP_parallel", function.address_of(body), arguments, threads, flags)
    function.finish()
    return function
