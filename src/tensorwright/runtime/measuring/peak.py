"""Measure what this machine can do: arithmetic per second, and bytes per second.

Kernels are compared with these ceilings, so the measured code is made and called like kernels: LLVM
IR, compiled for the target. A processor whose units are half as wide as its vectors takes two
cycles for a vector; the measured peak shows it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from tensorwright.base import ON_THREADS, Array, CpuTarget, DType, check_runs_here
from tensorwright.machine_code import (
    Kind,
    Module,
    NativeArray,
    NativeFunction,
    Number,
    Variable,
    vector_type,
)
from tensorwright.runtime.buffers import empty
from tensorwright.runtime.device import device_of
from tensorwright.runtime.native.own_code import object_code_of
from tensorwright.runtime.native.pool import usable_threads

_BUDGET_S = 0.1
_LEAST_REPEATS = 5
_PAUSE_S = 0.001
_LEAST_BYTES = 1 << 24  # read in one run, which takes long compared with a fork-join
_READ_VECTORS = 8  # that are read and added at a time
_RESULT_BYTES = 64
_FLOPS_PER_RUN = 30_000_000  # of each thread: much longer than a fork-join, shorter than a slice


def measure_peak(target: CpuTarget, threads: int = 1, dtype: DType = DType.F32) -> float:
    """Floating-point operations per second of `threads` threads, an FMA counting as two.

    Every thread runs a loop of independent FMAs on registers. The best of several short runs
    counts; all take less than 0.2 s if the cores are free.
    Raises:  MachineError if the target's instructions are not those of this machine.
    """
    chains = 12 if target.vector_registers < 32 else 24
    lanes = target.lanes(dtype)
    rounds = max(1, _FLOPS_PER_RUN // (2 * lanes * chains))
    best_s = _best_time(target, threads, _fma_loop(lanes, chains, dtype), (threads, rounds))
    return 2.0 * lanes * chains * rounds * threads / best_s


def measure_bandwidth(target: CpuTarget, threads: int = 1, size_bytes: int = 1 << 26) -> float:
    """Bytes per second that `threads` threads read together from a buffer of `size_bytes`.

    A buffer smaller than the last cache measures that cache; it is read several times, so that
    starting the threads does not count. Memory needs a buffer several times as large as the last
    cache.
    Raises:  as `measure_peak`.
    """
    lanes = target.lanes(DType.F32)
    step = lanes * _READ_VECTORS
    per_thread = max(step, size_bytes // (4 * threads) // step * step)
    passes = max(1, _LEAST_BYTES // (4 * per_thread * threads))
    data = empty((per_thread * threads,), DType.F32)
    data[...] = 1.0
    numbers = (threads, per_thread * passes, per_thread)
    best_s = _best_time(target, threads, _read_loop(lanes), numbers, data)
    return 4.0 * per_thread * passes * threads / best_s


def _best_time(
    target: CpuTarget,
    threads: int,
    measure: NativeFunction,
    numbers: tuple[int, ...],
    *arrays: Array,
) -> float:
    """Seconds of the shortest of many calls of `measure({numbers, results, *arrays})`.

    A first call warms up.  Each thread writes its result into its own 64 bytes of the results.
    """
    check_runs_here(target, "runtime", remedy="measure the target 'native'")
    device = device_of(target)
    code = device.load(object_code_of(measure.module.text(), target), (measure.symbol,))
    functions = tuple((code.address(measure.symbol), launch) for launch in ON_THREADS)
    results = device.allocate(usable_threads(threads) * _RESULT_BYTES)
    first, *rest = (device.memory_of(array) for array in (np.array(numbers, np.int64), *arrays))
    table = np.array([[memory.address for memory in (first, results, *rest)]], np.uint64)
    device.time_calls(functions, table, results, threads)
    best_s = float("inf")
    repeats = 0
    end = time.perf_counter() + _BUDGET_S
    while repeats < _LEAST_REPEATS or time.perf_counter() < end:
        best_s = min(best_s, device.time_calls(functions, table, results, threads))
        repeats += 1
        time.sleep(_PAUSE_S)  # threads that share a core may wake up on different cores
    return best_s


def _fma_loop(lanes: int, chains: int, dtype: DType) -> NativeFunction:
    """`measure({{shares, rounds}, results})`: x = x * a + b in `chains` independent vectors."""
    body = _thread_body()
    shares, rounds = (_arguments(body)[0].array(Kind.I64)[n] for n in (0, 1))
    kind = vector_type(Kind.F32 if dtype is DType.F32 else Kind.F64, lanes)
    vectors = [body.variable(kind, chain + 1.0) for chain in range(chains)]
    with _own_shares(body, shares), body.loop(rounds):
        for vector in vectors:
            vector.set(vector.now.intrinsic("fmuladd", 0.5, 1.0))
    return _measured(body, vectors)


def _read_loop(lanes: int) -> NativeFunction:
    """`measure({{shares, elements, part}, results, data})`: each share adds up its own part.

    It reads the given number of elements, and starts again at the end of its part.
    """
    body = _thread_body()
    arguments = _arguments(body)
    shares, elements, part = (arguments[0].array(Kind.I64)[n] for n in (0, 1, 2))
    offset = body.variable(Kind.I64, 0)
    sums = [body.variable(vector_type(Kind.F32, lanes), 0.0) for _ in range(_READ_VECTORS)]
    step = _READ_VECTORS * lanes
    with _own_shares(body, shares) as share, body.loop(elements, step=step):
        block = arguments[2].array(Kind.F32).part(share * part + offset.now)
        for number, total in enumerate(sums):
            total.set(total.now + block.vector(number * lanes, lanes))
        following = offset.now + step
        offset.set(following.differs(part).choose(following, 0))
    return _measured(body, sums)


def _thread_body() -> NativeFunction:
    """A function to which the code of each thread is then added."""
    return NativeFunction(Module(), "body", (Kind.POINTER,), is_internal=True)


def _thread(body: NativeFunction) -> Number:
    """The number of the thread that runs a body."""
    return body.call(Kind.I32, "omp_get_thread_num").cast("sext", Kind.I64)


@contextmanager
def _own_shares(body: NativeFunction, shares: Number) -> Iterator[Number]:
    """The loop over the shares of one piece; any number of pieces does all shares."""
    pieces = body.call(Kind.I32, "omp_get_num_threads").cast("sext", Kind.I64)
    share = body.variable(Kind.I64, _thread(body))
    with body.repeat(lambda: share.now < shares):
        yield share.now
        share.set(share.now + pieces)


def _arguments(body: NativeFunction) -> NativeArray:
    """The addresses of the arguments."""
    return body.parameters[0].array(Kind.POINTER)


def _measured(body: NativeFunction, vectors: Sequence[Variable]) -> NativeFunction:
    """A kernel that runs the body on threads.

    Each thread stores a lane of the sum of all vectors in its part of the results.
    """
    total = vectors[0].now
    for vector in vectors[1:]:
        total = total + vector.now
    lane = total.lane(0)
    row = _arguments(body)[1].array(Kind.I8).address(_thread(body) * _RESULT_BYTES)
    row.array(lane.kind)[0] = lane
    body.finish()
    function = NativeFunction(body.module, "measure", (Kind.POINTER, Kind.POINTER, Kind.I32))
    arguments, _, threads = function.parameters
    flags = function.number(0, Kind.I32)
    function.do("GOMP_parallel", function.address_of(body), arguments, threads, flags)
    function.finish()
    return function
