"""Measure what this machine can do: arithmetic per second, and bytes per second.

Kernels are compared with these ceilings, so the measured code is made and called like kernels: LLVM
IR, compiled for the target. A processor whose units are half as wide as its vectors takes two
cycles for a vector; the measured peak shows it.

The rates of this machine: those of a core, measured once, and its ceilings.

A measured rate matters if it is far from the assumed rate of all processors: some processors do one
multiply-add of long vectors a cycle, not two.  So a measured rate is rounded to the assumed rate
times a power of two.  A busy machine then makes the same choices as an idle one.  The same holds of
instructions that multiply short numbers: many cores of Intel take four times as long for vdpbf16ps
as for a multiply-add of f32.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from tensorwright import base, machine_code
from tensorwright.machine import (
    MEMORY,
    Ceilings,
    Level,
    Machine,
    Rates,
    Steps,
    assumed_ceilings,
    keep_product_steps,
    keep_steps,
    kept_product_steps,
    kept_steps,
    machine_of,
    nominal_rates,
    product_steps_from,
    steps_from,
)
from tensorwright.runtime.buffers import empty
from tensorwright.runtime.device import device_of
from tensorwright.runtime.native.jit import object_code_of
from tensorwright.runtime.native.pool import usable_threads

_BUDGET_S = 0.1
_SHORT_BUDGET_S = 0.005
_LEAST_REPEATS = 5
_PAUSE_S = 0.001
_LEAST_BYTES = 1 << 24  # read in one run, which takes long compared with a fork-join
_READ_VECTORS = 8  # that are read and added at a time
_RESULT_BYTES = 64
_PRODUCT_ROUNDS = 20_000  # of each chain
_ONES = 0x3F803F80  # as two bf16; as integers nothing special
_FLOPS_PER_RUN = 30_000_000  # of each thread: much longer than a fork-join, shorter than a slice


def measure_peak(
    target: base.CpuTarget, threads: int = 1, dtype: base.DType = base.DType.F32
) -> float:
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


def measure_speed(target: base.CpuTarget, product: base.ShortProduct) -> float:
    """The products of an instruction of x86 in the time of one of f32, in vectors of equal length.

    Some milliseconds, on one core.
    Raises:  as `measure_peak`.
    """
    chains = 12 if target.vector_registers < 32 else 24
    loops = _fma_loop(product.columns, chains, base.DType.F32), _product_loop(product, chains)
    numbers = (1, _PRODUCT_ROUNDS)
    wide_s, short_s = (
        _best_time(target, 1, each, numbers, budget_s=_SHORT_BUDGET_S) for each in loops
    )
    return product.terms * wide_s / short_s


def measure_bandwidth(target: base.CpuTarget, threads: int = 1, size_bytes: int = 1 << 26) -> float:
    """Bytes per second that `threads` threads read together from a buffer of `size_bytes`.

    A buffer smaller than the last cache measures that cache; it is read several times, so that
    starting the threads does not count. Memory needs a buffer several times as large as the last
    cache.
    Raises:  as `measure_peak`.
    """
    lanes = target.lanes(base.DType.F32)
    step = lanes * _READ_VECTORS
    per_thread = max(step, size_bytes // (4 * threads) // step * step)
    passes = max(1, _LEAST_BYTES // (4 * per_thread * threads))
    data = empty((per_thread * threads,), base.DType.F32)
    data[...] = 1.0
    numbers = (threads, per_thread * passes, per_thread)
    best_s = _best_time(target, threads, _read_loop(lanes), numbers, data)
    return 4.0 * per_thread * passes * threads / best_s


def _best_time(
    target: base.CpuTarget,
    threads: int,
    measure: machine_code.NativeFunction,
    numbers: tuple[int, ...],
    *arrays: base.Array,
    budget_s: float = _BUDGET_S,
) -> float:
    """Seconds of the shortest of many calls of `measure({numbers, results, *arrays})`.

    A first call warms up.  Each thread writes its result into its own 64 bytes of the results.
    """
    base.check_runs_here(target, "runtime", remedy="measure the target 'native'")
    device = device_of(target)
    code = device.load(object_code_of(measure.module.text(), target), (measure.symbol,))
    functions = tuple((code.address(measure.symbol), launch) for launch in base.ON_THREADS)
    results = device.allocate(usable_threads(threads) * _RESULT_BYTES)
    first, *rest = (device.memory_of(array) for array in (np.array(numbers, np.int64), *arrays))
    table = np.array([[memory.address for memory in (first, results, *rest)]], np.uint64)
    device.time_calls(functions, table, results, threads)
    best_s = float("inf")
    repeats = 0
    end = time.perf_counter() + budget_s
    while repeats < _LEAST_REPEATS or time.perf_counter() < end:
        best_s = min(best_s, device.time_calls(functions, table, results, threads))
        repeats += 1
        time.sleep(_PAUSE_S)  # threads that share a core may wake up on different cores
    return best_s


def _fma_loop(lanes: int, chains: int, dtype: base.DType) -> machine_code.NativeFunction:
    """`measure({{shares, rounds}, results})`: x = x * a + b in `chains` independent vectors."""
    body = _thread_body()
    shares, rounds = (_arguments(body)[0].array(machine_code.Kind.I64)[n] for n in (0, 1))
    kind = machine_code.vector_type(
        machine_code.Kind.F32 if dtype is base.DType.F32 else machine_code.Kind.F64, lanes
    )
    vectors = [body.variable(kind, chain + 1.0) for chain in range(chains)]
    with _own_shares(body, shares), body.loop(rounds):
        for vector in vectors:
            vector.set(vector.now.intrinsic("fmuladd", 0.5, 1.0))
    return _measured(body, vectors)


def _product_loop(product: base.ShortProduct, chains: int) -> machine_code.NativeFunction:
    """As `_fma_loop`: sums of products of an instruction."""
    body = _thread_body()
    shares, rounds = (_arguments(body)[0].array(machine_code.Kind.I64)[n] for n in (0, 1))
    is_float, columns = product.sums.is_float, product.columns
    element = machine_code.Kind.F32 if is_float else machine_code.Kind.I32
    kind = machine_code.vector_type(element, columns)
    words = machine_code.vector_type(machine_code.Kind.I32, columns)
    ones = f"{words} {machine_code.splat_literal('i32', str(_ONES), columns)}"
    vectors = [body.variable(kind, 0.0 if is_float else 0) for _ in range(chains)]
    with _own_shares(body, shares), body.loop(rounds):
        for vector in vectors:
            call = f"call {kind} {product.assembly}({ones}, {ones}, {vector.now})"
            vector.set(vector.now.result(kind, call))
    return _measured(body, vectors)


def _read_loop(lanes: int) -> machine_code.NativeFunction:
    """`measure({{shares, elements, part}, results, data})`: each share adds up its own part.

    It reads the given number of elements, and starts again at the end of its part.
    """
    body = _thread_body()
    arguments = _arguments(body)
    shares, elements, part = (arguments[0].array(machine_code.Kind.I64)[n] for n in (0, 1, 2))
    offset = body.variable(machine_code.Kind.I64, 0)
    sums = [
        body.variable(machine_code.vector_type(machine_code.Kind.F32, lanes), 0.0)
        for _ in range(_READ_VECTORS)
    ]
    step = _READ_VECTORS * lanes
    with _own_shares(body, shares) as share, body.loop(elements, step=step):
        block = arguments[2].array(machine_code.Kind.F32).part(share * part + offset.now)
        for number, total in enumerate(sums):
            total.set(total.now + block.vector(number * lanes, lanes))
        following = offset.now + step
        offset.set(following.differs(part).choose(following, 0))
    return _measured(body, sums)


def _thread_body() -> machine_code.NativeFunction:
    """A function to which the code of each thread is then added."""
    return machine_code.NativeFunction(
        machine_code.Module(), "body", (machine_code.Kind.POINTER,), is_internal=True
    )


def _thread(body: machine_code.NativeFunction) -> machine_code.Number:
    """The number of the thread that runs a body."""
    return body.call(machine_code.Kind.I32, "omp_get_thread_num").cast(
        "sext", machine_code.Kind.I64
    )


@contextmanager
def _own_shares(
    body: machine_code.NativeFunction, shares: machine_code.Number
) -> Iterator[machine_code.Number]:
    """The loop over the shares of one piece; any number of pieces does all shares."""
    pieces = body.call(machine_code.Kind.I32, "omp_get_num_threads").cast(
        "sext", machine_code.Kind.I64
    )
    share = body.variable(machine_code.Kind.I64, _thread(body))
    with body.repeat(lambda: share.now < shares):
        yield share.now
        share.set(share.now + pieces)


def _arguments(body: machine_code.NativeFunction) -> machine_code.NativeArray:
    """The addresses of the arguments."""
    return body.parameters[0].array(machine_code.Kind.POINTER)


def _measured(
    body: machine_code.NativeFunction, vectors: Sequence[machine_code.Variable]
) -> machine_code.NativeFunction:
    """A kernel that runs the body on threads.

    Each thread stores a lane of the sum of all vectors in its part of the results.
    """
    total = vectors[0].now
    for vector in vectors[1:]:
        total = total + vector.now
    lane = total.lane(0)
    row = _arguments(body)[1].array(machine_code.Kind.I8).address(_thread(body) * _RESULT_BYTES)
    row.array(lane.kind)[0] = lane
    body.finish()
    function = machine_code.NativeFunction(
        body.module,
        "measure",
        (machine_code.Kind.POINTER, machine_code.Kind.POINTER, machine_code.Kind.I32),
    )
    arguments, _, threads = function.parameters
    flags = function.number(0, machine_code.Kind.I32)
    function.do("GOMP_parallel", function.address_of(body), arguments, threads, flags)
    function.finish()
    return function


_PEAK_TRIES = 3
_LEAST_MEMORY_BYTES = 1 << 26
_MOST_BYTES = 1 << 28


def this_machine(target: base.CpuTarget, threads: int, *, is_cold: bool = False) -> Machine:
    """The machine that runs programs for a target: this one, if it can.

    The rates of a core are read from the folder of the knob `home`.  If they are not there, they
    are measured and kept there, which takes a third of a second.  If this machine cannot run code
    for the target, or cannot be measured, the rates are the nominal ones.  Those of a machine that
    is assumed (knob `assume`) are data.  Its target says how fast instructions multiply short
    numbers: measured for "native" only, because a named target stands for other machines, too.
    """
    settings = base.knobs.HOME.get(), base.knobs.ASSUME.get()
    measured = replace(target, speeds=_speeds_of(target, settings))
    return machine_of(measured, threads, _rates_of(target, settings), is_cold=is_cold)


@lru_cache(maxsize=64)
def _speeds_of(target: base.CpuTarget, settings: tuple[Path, str]) -> base.Speeds:
    """The speeds of instructions that are not those of their records, kept like rates."""
    _, assumed = settings
    had = set(target.instructions)
    usable = [p for p in base.SHORT_PRODUCTS if p.x86 and set(p.features) <= had]
    taken = {(p.data, p.weights): p for p in reversed(usable)}  # the first of equal operands
    named = {p.intrinsic: p for p in taken.values()}
    if assumed or not named or target.name != "native" or base.missing_here(target):
        return target.speeds
    steps = kept_product_steps(target)
    if steps is None or not named.keys() <= steps.keys():
        speeds = {name: measure_speed(target, each) for name, each in named.items()}
        steps = {n: product_steps_from(each.speed, speeds[n]) for n, each in named.items()}
        keep_product_steps(target, steps)
    return tuple((n, each.speed * 2.0 ** steps[n]) for n, each in named.items() if steps[n])


@lru_cache(maxsize=64)
def _rates_of(target: base.CpuTarget, settings: tuple[Path, str]) -> Rates:
    nominal, (_, assumed) = nominal_rates(target), settings
    if base.missing_here(target) and not assumed:
        return nominal
    steps = kept_steps(target)
    if steps is None:
        steps = measure_steps(target)
        keep_steps(target, steps)
    return nominal.stepped(*steps)


def measure_steps(target: base.CpuTarget) -> Steps:
    """The number of powers of two by which the rates of a core differ from the nominal ones."""
    return steps_from(target, measure_peak(target), measure_bandwidth(target))


def measure_ceilings(target: base.CpuTarget, threads: int) -> Ceilings:
    """Measure the ceilings of this machine for the code of a target, about half a second; or those
    of the assumed one.

    Raises:  MachineError if the machine cannot run it.
    """
    assumed = base.knobs.assumed_machine()
    if assumed is not None:
        return assumed_ceilings(assumed, target, threads)
    machine = base.detect_target()
    caches = (
        ("L2", machine.l2_bytes * min(threads, machine.cores)),
        ("L3", machine.l3_bytes),
    )
    far_bytes = min(_MOST_BYTES, max(_LEAST_MEMORY_BYTES, 4 * machine.l3_bytes))
    peak = measure_peak_alone(target, threads)
    rate = measure_bandwidth(target, threads, far_bytes)
    levels = [Level(MEMORY, float("inf"), rate)]
    for name, size_bytes in reversed(caches):
        if 0 < size_bytes < levels[0].size_bytes:
            rate = max(rate, measure_bandwidth(target, threads, size_bytes // 2))
            levels.insert(0, Level(name, float(size_bytes), rate))
    return replace(peak, levels=tuple(levels))


def measure_peak_alone(target: base.CpuTarget, threads: int) -> Ceilings:
    """As `measure_ceilings`, without levels: a few tenths of a second."""
    assumed = base.knobs.assumed_machine()
    if assumed is not None:
        return replace(assumed_ceilings(assumed, target, threads), levels=())
    peak = max(measure_peak(target, threads) for _ in range(_PEAK_TRIES))
    return Ceilings(threads, peak, (), base.now_utc())
