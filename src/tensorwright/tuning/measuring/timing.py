"""Run kernels, check their answers and time them: the part that a child process does.

Only here machine code of candidates runs and may damage the process. A kernel gets buffers
with guard zones around its outputs; first it runs once and its answer is compared, then it is
timed in native loops, so that Python's time between calls does not count.  Finally it runs on other
inputs, and that answer is compared, too. A kernel has no times if it keeps state between calls, is
right by chance, or becomes wrong while it is timed.

In a network a kernel's constants are not in the caches: between two of its runs all other weights
are read.  To time that, each call reads its constants at another address of one large arena of
random numbers; the answer was checked before, with the true ones.

Whether an answer is right: its allowed error, and memory that a kernel may not write.

Constants at another address in each call, as if other constants were read between two calls.
"""

from __future__ import annotations

import math
import resource
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tensorwright.artifacts import Kernel, load_kernel
from tensorwright.base import LINE_BYTES, DType, InternalError, physical_memory_bytes
from tensorwright.expr import Array
from tensorwright.loop import Parameter, Role, pack
from tensorwright.records import Status
from tensorwright.runtime import HOST, Device, Memory, empty
from tensorwright.tuning.measuring.expected_results import ExpectedResults, make_inputs

_TOLERANCE = {DType.F64: 1e-10, DType.F32: 1e-4, DType.F16: 1e-2, DType.BF16: 4e-2}
_OF_ROUNDED = 2.0**-7
_GUARD_BYTES = 4096
_UNWRITTEN = 0xFF  # NaN for floats


class Guarded:
    """An output with zones before and after it that a kernel may not write.

    memory   of the output on the device     array   its content at the last `is_intact`
    """

    def __init__(self, shape: tuple[int, ...], dtype: DType, device: Device = HOST) -> None:
        size = math.prod(shape) * dtype.size_bytes
        room = -(-size // 64) * 64 + 2 * _GUARD_BYTES
        self._device = device
        self._copy = empty((room,), DType.U8)
        self._end = _GUARD_BYTES + size
        self.array: Array = np.ndarray(shape, dtype.numpy, self._copy.data, _GUARD_BYTES)
        self._room = device.allocate(room)
        self.memory = Memory(self._room.address + _GUARD_BYTES, size, self._room)
        self.clear()

    def clear(self) -> None:
        """Fill it with the value of unwritten memory."""
        self._copy[...] = _UNWRITTEN
        self._device.copy_in(self._copy, self._room)

    def is_intact(self) -> bool:
        """Whether the zones are unchanged."""
        self._device.copy_out(self._room, self._copy)
        zones = (self._copy[:_GUARD_BYTES], self._copy[self._end :])
        return all(bool((zone == _UNWRITTEN).all()) for zone in zones)


def allowed_error(answer: Array, dtype: DType, has_floats: bool) -> Array:
    """How far each element may be from the answer, by broadcasting; `dtype` is that of the kernel.

    Floats: a share of the element itself, and of the usual element of this answer; more if the
    answers are f32 that were rounded to bf16, because sums beside a half are rounded either way.
    Integers are exact, except 8 bits that were rounded from floats: these may differ by one.
    """
    if not dtype.is_float:
        return np.array(1 if has_floats and dtype.is_int and dtype.size_bytes == 1 else 0)
    wide = answer if answer.dtype.itemsize >= 4 else answer.astype(np.float32)
    size = np.asarray(np.abs(wide))  # NumPy makes the only element of a scalar a number
    finite = size[np.isfinite(size)]
    size = np.nan_to_num(size, copy=False, nan=0.0, posinf=0.0)
    usual = float(np.quantile(finite, 0.9)) if finite.size else 0.0
    usual = usual or (float(finite.max()) if finite.size else 0.0)
    share = _OF_ROUNDED if _is_rounded(answer) else _TOLERANCE[dtype]
    allowed: Array = share * (size + size.dtype.type(usual))
    return allowed


def _is_rounded(answer: Array) -> bool:
    """Whether numbers of f32 are all numbers of bf16, and not all integers."""
    if answer.dtype != np.float32 or (answer.view(np.uint32) & 0xFFFF).any():
        return False
    return bool((answer != np.rint(answer)).any())


def find_difference(result: Array, answer: Array, allowed: Array) -> str:
    """The difference of a result from its answer, for a person; "" if it is allowed."""
    wide = np.float64 if answer.dtype.kind in "iub" else answer.dtype
    if answer.dtype.kind == "b":
        result = result.view(np.uint8)
        answer = answer.view(np.uint8)
    result = result.astype(wide, copy=False)
    answer = answer.astype(wide, copy=False)
    with np.errstate(all="ignore"):
        error = np.abs(result - answer)
        is_right = (error <= allowed) | (result == answer) | (np.isnan(result) & np.isnan(answer))
    if is_right.all():
        return ""
    wrong = np.argwhere(~is_right)
    index = tuple(int(i) for i in wrong[0])
    share = 100 * len(wrong) / max(1, answer.size)
    return (
        f"{len(wrong)} elements ({share:.3g} %) are wrong, first at {list(index)}: "
        f"{result[index]} and not {answer[index]}"
    )


_LEAST_BYTES = 4096  # smaller constants do not move
_MOST_BYTES = 256 << 20
_MOST_ROWS = 4096
_TILE = 1 << 18  # elements that are drawn; the arena repeats them


def cold_table(
    arguments: NDArray[np.uint64],
    constants: Sequence[tuple[int, DType, tuple[int, ...]]],
    cold_bytes: int,
    device: Device = HOST,
) -> NDArray[np.uint64]:
    """The arguments of successive calls, one row each: (rows, arguments).

    arguments   addresses of the operands
    constants   for each constant its position among them, its type and its shape
    cold_bytes  the most memory for all copies; with room for less than two, or without large
                constants, there is one row

    Only floats move, because integers may be indices.
    """
    moving = [
        (position, dtype, _room(dtype, shape))
        for position, dtype, shape in constants
        if dtype.is_float and _room(dtype, shape) >= _LEAST_BYTES
    ]
    stride = sum(room for _, _, room in moving)
    span = min(cold_bytes, _MOST_BYTES)
    count = min(_MOST_ROWS, span // stride) if stride else 0
    if count < 2:
        return arguments[np.newaxis].copy()
    table = np.repeat(arguments[np.newaxis], count, axis=0)
    offset = 0
    steps = np.arange(count, dtype=np.uint64) * np.uint64(stride)
    for position, dtype, room in moving:
        start = _arena(dtype, span, device).address + offset
        table[:, position] = np.uint64(start) + steps
        offset += room
    return table


def _room(dtype: DType, shape: tuple[int, ...]) -> int:
    return -(-math.prod(shape) * dtype.size_bytes // LINE_BYTES) * LINE_BYTES


@lru_cache(maxsize=2)
def _arena(dtype: DType, size_bytes: int, device: Device) -> Memory:
    """Memory full of numbers in -1..1; cached, because filling it takes long."""
    count = size_bytes // dtype.size_bytes
    arena = empty((count,), dtype)
    source = np.random.Generator(np.random.SFC64(0))
    tile = (source.random(min(_TILE, count), np.float32) * 2 - 1).astype(dtype.numpy)
    for start in range(0, count, _TILE):
        arena[start : start + _TILE] = tile[: count - start]
    return device.memory_of(arena)


_PAUSE_S = 0.001  # regions back to back may be stuck on one core under foreign load
_COLD_RATIO = 4.0
_COLD_SLACK_S = 0.05  # a first call may wait for a core
_RACE_SAMPLES = 2
_MOST_ROUNDS = 3
_STEADY_RATIO = 1.1
_PARTS = 8
_LONGEST_SAMPLE_S = 0.05
_LEAST_MEMORY_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How candidates are measured.

    repeats        samples of a candidate that is not dropped; up to three times as many are
                   taken where they differ, and the fastest kept
    min_sample_s   shortest time of a sample; short kernels run often in it
    most_s         after so long, no further sample is begun
    long_s         a program whose first call takes longer is called once more, and that is all
    drop_ratio     dropped if the first samples are this many times slower than the best
    near_ratio     one whose first samples are this many times slower gets no more: it is not the
                   best; with one more sample, none that is slower at all does
    limit_s        longest a candidate may take in all; then its process is killed
    memory_bytes   address space of the child; three quarters of the machine's memory if 0
    flush_bytes    before each call, so much other memory is read; 0 leaves caches warm
    cold_bytes     calls take turns with copies of the constants that fill so much memory, as if
                   other constants were read between them; 0 gives all calls the same ones
    """

    repeats: int = 5
    min_sample_s: float = 0.006
    most_s: float = 0.5
    long_s: float = 0.1
    drop_ratio: float = 1.5
    near_ratio: float = 1.1
    limit_s: float = 10.0
    memory_bytes: int = 0
    flush_bytes: int = 0
    cold_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a candidate: seconds per call, one per sample, or why there are none."""

    status: Status
    times_s: tuple[float, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Turn:
    """Inputs, what is expected of them, and how far an answer may be from that; all by name."""

    inputs: dict[str, Array]
    expected: dict[str, Array]
    allowed: dict[str, Array]

    def find_fault(self, outputs: Sequence[tuple[str, Guarded]]) -> str:
        """What is wrong in the results of a kernel; "" if nothing."""
        for name, output in outputs:
            if not output.is_intact():
                return f"it wrote outside of {name}"
            difference = find_difference(output.array, self.expected[name], self.allowed[name])
            if difference:
                return f"{name}: {difference}"
        return ""


@dataclass(slots=True)
class _Prepared:
    """The workload that this process has inputs and expected results for: two turns of them."""

    key: str = ""
    turns: tuple[_Turn, ...] = ()


_PREPARED = _Prepared()


def limit_process(memory_bytes: int | None) -> None:
    """Bound the address space of this process, if wanted; let it crash without a core file.

    memory_bytes   as in `MeasureOptions`; None for no bound
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes is None:
        return
    if not memory_bytes:
        memory_bytes = max(_LEAST_MEMORY_BYTES, physical_memory_bytes() * 3 // 4)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def prepare(expected: ExpectedResults) -> None:
    """Make the inputs of a workload and read its expected results; forgets the workload before."""
    _PREPARED.key, _PREPARED.turns = "", ()
    inputs = make_inputs(expected.recipe)
    again = make_inputs(expected.recipe_again, inputs)
    _PREPARED.turns = (
        _read_turn(inputs, expected.outputs, expected.has_floats),
        _read_turn(again, expected.again, expected.has_floats),
    )
    _PREPARED.key = expected.key


def _read_turn(
    inputs: dict[str, Array], outputs: Sequence[tuple[str, DType, str]], has_floats: bool
) -> _Turn:
    answers = {name: np.load(path, allow_pickle=False) for name, _, path in outputs}
    allowed = {name: allowed_error(answers[name], dtype, has_floats) for name, dtype, _ in outputs}
    return _Turn(inputs, answers, allowed)


def try_kernels(
    key: str,
    kernels: tuple[Kernel, ...],
    threads: int,
    best_s: float,
    options: MeasureOptions,
) -> tuple[Measurement, ...]:
    """Check kernels of the prepared workload, time those that are right, and check them again.

    A single one races: it is dropped as soon as it is clearly slower than `best_s`. Several take
    turns, sample by sample, so that a slow moment of the machine hits them all alike.
    """
    if key != _PREPARED.key:
        raise InternalError(stage="tune", where="runner", reason=f"{key} was not prepared")
    runs = [_Run(kernel, threads, options) for kernel in kernels]
    errors = [run.check() for run in runs]
    if len(runs) == 1 and not errors[0]:
        return (_checked(runs[0], _race(runs[0], best_s, options)),)
    good = [run for run, error in zip(runs, errors, strict=True) if not error]
    timed = [Measurement(Status.OK, times_s) for times_s in _take_turns(good, options)]
    measured = iter([_checked(run, one) for run, one in zip(good, timed, strict=True)])
    return tuple(
        Measurement(Status.WRONG_ANSWER, error=error) if error else next(measured)
        for error in errors
    )


def _checked(run: _Run, measured: Measurement) -> Measurement:
    """A measurement that stands only if the kernel is still right; dropped ones are not checked."""
    error = run.check_again() if measured.status is Status.OK else ""
    return Measurement(Status.WRONG_ANSWER, error=error) if error else measured


def _race(run: _Run, best_s: float, options: MeasureOptions) -> Measurement:
    """Time one kernel; drop it if two short runs show that it is clearly slower.

    Other load only adds time: if samples differ, more are taken and the fastest kept.
    """
    if run.cold_s > _COLD_RATIO * best_s + _COLD_SLACK_S:
        return Measurement(Status.CENSORED, (run.cold_s,))
    if run.cold_s > options.most_s:
        return Measurement(Status.OK, (run.cold_s,))
    if run.cold_s > options.long_s:
        return _judge((min(run.cold_s, run.sample(1)),), best_s, options)
    count = run.calls_for(options.min_sample_s)
    started = time.perf_counter()
    times: list[float] = []
    for taken in range(1, _MOST_ROUNDS * options.repeats + 1):
        times.append(run.sample(count))
        if taken >= _RACE_SAMPLES:
            needed_s = best_s * (options.near_ratio if taken == _RACE_SAMPLES else 1.0)
            if min(times) > needed_s:
                return _judge(tuple(sorted(times)), best_s, options)
        fastest = sorted(times)[: options.repeats]
        is_steady = statistics.median(fastest) <= _STEADY_RATIO * fastest[0]
        is_late = time.perf_counter() - started > options.most_s
        if is_late or (taken >= options.repeats and is_steady):
            break
        time.sleep(_PAUSE_S)
    return Measurement(Status.OK, tuple(sorted(times)[: options.repeats]))


def _judge(times_s: tuple[float, ...], best_s: float, options: MeasureOptions) -> Measurement:
    """The verdict of few samples: times, or a lower bound for a clearly slower program."""
    is_slow = min(times_s) > options.drop_ratio * best_s
    return Measurement(Status.CENSORED if is_slow else Status.OK, times_s)


def _take_turns(runs: list[_Run], options: MeasureOptions) -> list[tuple[float, ...]]:
    counts = [run.calls_for(options.min_sample_s) for run in runs]
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(2 * options.repeats):
        for run, count, samples in zip(runs, counts, times, strict=True):
            time.sleep(_PAUSE_S)
            samples.append(run.sample(count))
    return [tuple(sorted(samples)[: options.repeats]) for samples in times]


class _Run:
    """A loaded kernel with its buffers."""

    def __init__(self, kernel: Kernel, threads: int, options: MeasureOptions) -> None:
        self._kernel = load_kernel(kernel)
        self._device = self._kernel.device
        self._threads = threads
        self._cold_bytes = options.cold_bytes
        self._flush = empty((options.flush_bytes,), DType.U8) if options.flush_bytes else None
        if self._flush is not None:
            self._flush[...] = 1
        self._workspace = self._device.allocate(kernel.spec.scratch_bytes(threads))
        self._outputs: list[tuple[str, Guarded]] = []
        self._kept: list[Memory] = []
        first, second = _PREPARED.turns
        self._addresses = [self._argument(each, first) for each in kernel.parameters]
        self._addresses_again = [
            self._kept_address(second.inputs[each.name]) if each.role is Role.INPUT else address
            for each, address in zip(kernel.parameters, self._addresses, strict=True)
        ]
        self._constants = [
            (position, parameter.buffer.dtype, parameter.buffer.extents)
            for position, parameter in enumerate(kernel.parameters)
            if parameter.role is Role.CONSTANT
        ]
        self._table = np.array([self._addresses], np.uint64)
        self._row = 0
        self.cold_s = math.inf

    def check(self) -> str:
        """Run once; what is wrong with the answer, "" if nothing."""
        self.cold_s = self.sample(1)
        error = _PREPARED.turns[0].find_fault(self._outputs)
        if not error:
            self._table = cold_table(
                self._table[0], self._constants, self._cold_bytes, self._device
            )
        return error

    def check_again(self) -> str:
        """As `check`, after the timing, on the inputs of the second turn; outputs are cleared."""
        for _, output in self._outputs:
            if not output.is_intact():
                return "it wrote outside of its results while it was timed"
            output.clear()
        self._table, self._row = np.array([self._addresses_again], np.uint64), 0
        self.sample(1)
        error = _PREPARED.turns[1].find_fault(self._outputs)
        return f"after it was timed, on other inputs, {error}" if error else ""

    def calls_for(self, min_sample_s: float) -> int:
        """The number of calls of a sample; one if caches are flushed between calls."""
        if self._flush is not None:
            return 1
        if self.cold_s >= 2 * min_sample_s and self.sample(1) >= min_sample_s:
            return 1  # the first call alone says little: it may have started threads, or waited
        warm_s = min(self.sample(1), self.sample(1))
        if warm_s < min_sample_s / 20:
            warm_s = self.sample(10)
        return max(1, math.ceil(min_sample_s / max(warm_s, 1e-8)))

    def sample(self, count: int) -> float:
        """Seconds per call of `count` calls in a row; of fewer if they last far too long.

        Other load may make a call last a thousand times longer than when `count` was chosen.
        """
        if self._flush is not None:
            self._flush.max()
        functions, table = self._kernel.functions, self._table
        part, done, elapsed_s = max(1, count // _PARTS), 0, 0.0
        while done < count and elapsed_s <= _LONGEST_SAMPLE_S:
            elapsed_s += self._device.time_calls(
                functions, table, self._workspace, self._threads, part, self._row
            )
            self._row = (self._row + part) % len(table)
            done += part
        return elapsed_s / done

    def _argument(self, parameter: Parameter, turn: _Turn) -> int:
        if parameter.role is Role.OUTPUT:
            output = Guarded(parameter.buffer.extents, parameter.buffer.dtype, self._device)
            self._outputs.append((parameter.name, output))
            return output.memory.address
        array = turn.inputs[parameter.name]
        return self._kept_address(
            array if parameter.packing is None else pack(array, parameter.packing)
        )

    def _kept_address(self, array: Array) -> int:
        self._kept.append(self._device.memory_of(array))
        return self._kept[-1].address
