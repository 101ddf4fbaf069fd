"""Run a table of steps in native code, with no Python between kernels.

The driver is a small LLVM module, compiled once per process. It reads a frame (the clock is POSIX's
clock_gettime, whose seconds and nanoseconds are 64 bits each):

    runs        [first step, step after the last, has team] ...   in order
    steps       [kernel, first argument, most threads, parts] ... the calls
    arguments   address ...                                       of all steps' arguments
    moving      [argument, base, offset] ...                      arguments that differ by call:
    bases       address ...                                       bases[base] + offset
    workspace   scratch memory, which the kernels use in turn
    arenas, arena_count                           if given, the frame has no arena of its own:
    in_arena, arena                               [argument, offset] ... of arguments in an arena,
                                                  and the arena for which they are set
    threads, begin, end, moving_count                             it does the runs begin..end
    stop        a word; while it is not 0, steps that have not begun are skipped
    clock, ticks                                                  if given, ticks[0] is the last
                                                  reading, ticks[1 + i] the time of step i so far
    floats      bits of the float state (`pool/serving.py`) that are set while the steps run

The call passes the gate of the pool, and then takes an arena: the first row of the frame's `arenas`
(`../arenas.py`) that no other call has taken. A run with a team leases its threads once
(`pool/team.py`); in other runs each kernel leases its threads.
Base 0 is address 0, so that an offset from it is a plain number.

A branch or a loop is a step whose kernel is a small number; the steps of its blocks follow it:

    LOOP        arguments: count, condition, iteration, most, end     (the last two are numbers)
    BRANCH      arguments: condition, first step of the other block, end

A step of a loop with many bytes of weights has `parts`: each thread does its piece in so many
parts, and in every other iteration the last one first.  Then the weights that it read last, which
are still in its caches, are the first that it reads again.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tensorwright import machine_code
from tensorwright.base import (
    ON_THREADS,
    Amount,
    Array,
    Formula,
    InternalError,
    detect_target,
)
from tensorwright.runtime.native import pool
from tensorwright.runtime.native.jit import LoadedCode, load_ir
from tensorwright.runtime.native.segments import Segment, cut_into_segments
from tensorwright.runtime.plan.plan import (
    ArenaRef,
    BranchStep,
    BufferRef,
    CollectStep,
    ConstantRef,
    CopyStep,
    HostStep,
    InputRef,
    KernelStep,
    LoopStep,
    OutputRef,
    Plan,
    Step,
    TypedRef,
    blocks_of,
    bytes_of_type,
    host_ref,
)

_SLOTS = (
    "runs steps arguments moving bases workspace threads begin end moving_count clock ticks "
    "stop arenas arena_count in_arena in_arena_count arena floats".split()
)
_COLUMNS = 3  # of runs and of moving
_STEP_COLUMNS = 4
_ARENA_COLUMNS = 2  # of in_arena
TAKEN, ARENA, SCRATCH = range(3)
ROW_WORDS = 16
"""The words of a row of `arenas`; a row has two cache lines of 64 bytes for itself."""
_RUN, _COPY, _COLLECT = "tensorwright_run", "tensorwright_copy", "tensorwright_collect"
_LOOP, _BRANCH = 1, 2
_CLOCK_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)
_NO_LIMIT = (1 << 31) - 1
_PARTS = 8
_MANY_BYTES = 1 << 20  # of weights in a loop: maybe more than a second cache keeps
_MOST_ITERATIONS = (1 << 63) - 1


class _Frame:
    """The slots of a frame; each is read when it is used."""

    def __init__(self, pointer: machine_code.Number) -> None:
        self._pointer = pointer

    def number(self, name: str) -> machine_code.Number:
        """A slot that is a number."""
        return self._pointer.array(machine_code.Kind.I64)[_SLOTS.index(name)]

    def pointer(self, name: str) -> machine_code.Number:
        """A slot that is an address."""
        return self._pointer.array(machine_code.Kind.POINTER)[_SLOTS.index(name)]

    def table(self, name: str) -> machine_code.NativeArray:
        """The numbers at the address in a slot."""
        return self.pointer(name).array(machine_code.Kind.I64)


def driver_module(arch: str) -> machine_code.Module:
    """`tensorwright_run`, which does the runs of a frame, and the kernels that copy."""
    module = machine_code.Module()
    runs = _write_runs(module, arch)
    function = machine_code.NativeFunction(module, _RUN, (machine_code.Kind.POINTER,))
    function.do(pool.ADMIT_SYMBOL, function.address_of(runs), *function.parameters)
    function.finish()
    _write_copy(module)
    _write_collect(module)
    return module


def _write_runs(module: machine_code.Module, arch: str) -> machine_code.NativeFunction:
    """A function that does the runs of a frame that has passed the gate. The thread has its float
    state again at the end, as the caller expects.
    """
    whole_run, take_arena = _write_whole_run(module), _write_take_arena(module)
    function = machine_code.NativeFunction(
        module, "do_runs", (machine_code.Kind.POINTER,), is_internal=True
    )
    (address,) = function.parameters
    frame = _Frame(address)
    _write_moving(function, frame)
    threads = frame.number("threads").cast("trunc", machine_code.Kind.I32)
    context = function.array(machine_code.Kind.POINTER, 2)
    context[0] = address
    runs = frame.table("runs")
    row = function.variable(
        machine_code.Kind.POINTER, function.number(0, machine_code.Kind.POINTER)
    )
    with function.when(frame.number("arenas").differs(0)):
        row.set(function.call(machine_code.Kind.POINTER, take_arena, address))
    floats = pool.float_state(function, arch)
    pool.set_float_state(function, arch, floats | frame.number("floats"))
    with function.loop(frame.number("end"), frame.number("begin")) as number:
        run = runs.part(number * _COLUMNS)
        context[1] = run.pointer
        with function.when(run[2].differs(0)) as alone:
            main = function.address_of(whole_run)
            function.do(pool.TEAM_SYMBOL, main, context.pointer, threads)
        with alone():
            function.do(whole_run, context.pointer)
    pool.set_float_state(function, arch, floats)
    with function.when(row.now.differs(0)):
        row.now.array(machine_code.Kind.I64).release(TAKEN, function.number(0))
    function.finish()
    return function


def _write_moving(function: machine_code.NativeFunction, frame: _Frame) -> None:
    """Write code that sets the arguments that differ by call."""
    arguments = frame.table("arguments")
    bases, moving = frame.table("bases"), frame.table("moving")
    with function.loop(frame.number("moving_count")) as number:
        row = moving.part(number * _COLUMNS)
        arguments[row[0]] = bases[row[1]] + row[2]


def _write_take_arena(module: machine_code.Module) -> machine_code.NativeFunction:
    """A function that takes the first free arena and sets the frame's arguments in it; its row.

    There is a free one, because at most as many calls have passed the gate as there are arenas.
    """
    function = machine_code.NativeFunction(
        module,
        "take_arena",
        (machine_code.Kind.POINTER,),
        machine_code.Kind.POINTER,
        is_internal=True,
    )
    (address,) = function.parameters
    frame = _Frame(address)
    rows, count = frame.table("arenas"), frame.number("arena_count")
    number, is_taken = (
        function.variable(machine_code.Kind.I64, -1),
        function.variable(machine_code.Kind.TRUTH, 0),
    )
    with function.repeat(lambda: is_taken.now.equals(0)):
        following = number.now + 1
        number.set((following < count).choose(following, 0))
        row = rows.part(number.now * ROW_WORDS)
        with function.when(row.acquire(TAKEN).equals(0)):
            is_taken.set(row.exchange(TAKEN, 0, 1))
    row = rows.part(number.now * ROW_WORDS)
    arena = row[ARENA]
    with function.when(arena.differs(frame.number("arena"))):
        arguments, in_arena = frame.table("arguments"), frame.table("in_arena")
        with function.loop(frame.number("in_arena_count")) as position:
            argument = in_arena.part(position * _ARENA_COLUMNS)
            arguments[argument[0]] = arena + argument[1]
        slots = address.array(machine_code.Kind.I64)
        slots[_SLOTS.index("arena")] = arena
        slots[_SLOTS.index("workspace")] = row[SCRATCH]
    function.finish(row.pointer)
    return function


def _write_whole_run(module: machine_code.Module) -> machine_code.NativeFunction:
    """A function that does the steps of one run."""
    steps = _write_steps(module)
    function = machine_code.NativeFunction(
        module, "whole_run", (machine_code.Kind.POINTER,), is_internal=True
    )
    context = function.parameters[0].array(machine_code.Kind.POINTER)
    run = context[1].array(machine_code.Kind.I64)
    function.do(steps, context[0], run[0], run[1], function.number(0))
    function.finish()
    return function


def _write_steps(module: machine_code.Module) -> machine_code.NativeFunction:
    """A function that does some steps, which calls itself for the blocks of branches and loops.

    If there is a clock, each step is timed: from the end of the step before it to its own end.
    The last parameter is the iteration of the loop around.
    """
    kinds = (
        machine_code.Kind.POINTER,
        machine_code.Kind.I64,
        machine_code.Kind.I64,
        machine_code.Kind.I64,
    )
    function = machine_code.NativeFunction(module, "run_steps", kinds, is_internal=True)
    address, first, stop, iteration = function.parameters
    frame = _Frame(address)
    steps, stop_word = frame.table("steps"), frame.table("stop")
    workspace, threads = frame.pointer("workspace"), frame.number("threads")
    clock, ticks = frame.pointer("clock"), frame.table("ticks")
    time_s_ns = function.array(machine_code.Kind.I64, 2)

    def tick(step: machine_code.Number | None = None) -> None:
        """Read the clock, and add the time since the last reading to a step."""
        with function.when(clock.differs(0)):
            kind = function.number(_CLOCK_MONOTONIC, machine_code.Kind.I32)
            function.call(machine_code.Kind.I32, clock, kind, time_s_ns.pointer)
            now = time_s_ns[0] * 1_000_000_000 + time_s_ns[1]
            if step is not None:
                ticks[step + 1] = ticks[step + 1] + now - ticks[0]
            ticks[0] = now

    tick()
    following = function.variable(machine_code.Kind.I64, first)
    with function.repeat(lambda: (following.now < stop) & stop_word.acquire().equals(0)):
        number = following.now
        step = steps.part(number * _STEP_COLUMNS)
        arguments = frame.table("arguments").part(step[1])
        with function.when(step[0] > _BRANCH) as control:
            most = step[2].smaller(threads).cast("trunc", machine_code.Kind.I32)
            kernel, parts = step.pointer.array(machine_code.Kind.POINTER)[0], step[3]
            with function.when(parts.differs(0)):
                function.do(pool.ORDER_SYMBOL, (parts << 1) | (iteration & 1))
            function.do(kernel, arguments.pointer, workspace, most)
            with function.when(parts.differs(0)):
                function.do(pool.ORDER_SYMBOL, function.number(0))
            following.set(number + 1)
        with control():
            with function.when(step[0].equals(_LOOP)) as branch:
                _write_loop(function, arguments, (address, number + 1), stop_word)
                following.set(arguments[4])
            with branch():
                holds, middle = _truth(arguments, 0), arguments[1]
                begin, end = holds.choose(number + 1, middle), holds.choose(middle, arguments[2])
                function.do(function, address, begin, end, iteration)
                following.set(arguments[2])
        tick(number)
    function.finish()
    return function


def _write_loop(
    steps: machine_code.NativeFunction,
    arguments: machine_code.NativeArray,
    body: tuple[machine_code.Number, machine_code.Number],
    stop: machine_code.NativeArray,
) -> None:
    """Write the iterations of a loop, whose body are the frame's steps from a number on."""
    words = arguments.pointer.array(machine_code.Kind.POINTER)
    count = words[0].array(machine_code.Kind.I64)[0].smaller(arguments[3])
    iteration = steps.variable(machine_code.Kind.I64, 0)

    def goes_on() -> machine_code.Number:
        return (iteration.now < count) & _truth(arguments, 1) & stop.acquire().equals(0)

    with steps.repeat(goes_on):
        words[2].array(machine_code.Kind.I64)[0] = iteration.now
        steps.do(steps, *body, arguments[4], iteration.now)
        iteration.set(iteration.now + 1)


def _truth(arguments: machine_code.NativeArray, number: int) -> machine_code.Number:
    """The boolean to which an argument points."""
    return (
        arguments.pointer.array(machine_code.Kind.POINTER)[number]
        .array(machine_code.Kind.I8)[0]
        .differs(0)
    )


def _write_copy(module: machine_code.Module) -> None:
    """The kernel of a step that copies: destination, source, size."""
    function = machine_code.NativeFunction(
        module, _COPY, (machine_code.Kind.POINTER, machine_code.Kind.POINTER, machine_code.Kind.I32)
    )
    arguments = function.parameters[0]
    destination, source = (arguments.array(machine_code.Kind.POINTER)[n] for n in (0, 1))
    size, is_volatile = (
        arguments.array(machine_code.Kind.I64)[2],
        function.number(0, machine_code.Kind.TRUTH),
    )
    function.do("llvm.memcpy.p0.p0.i64", destination, source, size, is_volatile)
    function.finish()


def _write_collect(module: machine_code.Module) -> None:
    """The kernel of a step that collects: destination, source, row number, size of a row."""
    function = machine_code.NativeFunction(
        module,
        _COLLECT,
        (machine_code.Kind.POINTER, machine_code.Kind.POINTER, machine_code.Kind.I32),
    )
    arguments = function.parameters[0]
    first, source, row = (arguments.array(machine_code.Kind.POINTER)[n] for n in (0, 1, 2))
    size, is_volatile = (
        arguments.array(machine_code.Kind.I64)[3],
        function.number(0, machine_code.Kind.TRUTH),
    )
    destination = first.array(machine_code.Kind.I8).address(
        row.array(machine_code.Kind.I64)[0] * size
    )
    function.do("llvm.memcpy.p0.p0.i64", destination, source, size, is_volatile)
    function.finish()


class NativeFrame(ctypes.Structure):
    """The frame as the driver reads it."""

    _fields_ = tuple((name, ctypes.c_int64) for name in _SLOTS)


@dataclass(frozen=True, slots=True)
class Driver:
    """The compiled driver; `run(address of a NativeFrame)` releases the interpreter's lock."""

    code: LoadedCode
    run: Callable[[int], None]
    copy_address: int
    collect_address: int
    clock_address: int


def driver() -> Driver:
    """The process's driver, compiled on its first use."""
    with _LOCK:  # of two drivers made at once, one would be unloaded while it is used
        return _driver()


_LOCK = threading.Lock()


@lru_cache(maxsize=1)
def _driver() -> Driver:
    code = load_ir(driver_module(detect_target().arch).text(), (_RUN, _COPY, _COLLECT))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address(_RUN))
    clock = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0
    return Driver(code, run, code.address(_COPY), code.address(_COLLECT), clock)


@dataclass(frozen=True, slots=True)
class Program:
    """A plan with its code loaded; read-only, shared by all calls.

    amounts are the formulas of named sizes and of the sizes of copies; each has a base.

    runs (k, 3), steps (n, 4), moving (l, 3) and in_arena (k, 2) are the driver's tables. A step in
    Python has an empty row, so that positions are those of the plan. refs (m, 2) has base and
    offset of each argument. `code` keeps the addresses in `steps` valid.
    """

    plan: Plan
    code: tuple[LoadedCode, ...]
    runs: Array
    steps: Array
    refs: Array
    moving: Array
    in_arena: Array
    segments: tuple[Segment, ...]
    amounts: tuple[Formula, ...] = ()


def load_program(plan: Plan, code: tuple[LoadedCode, ...]) -> Program:
    """Lay out the driver's tables for a plan and the loaded code of each of its kernels.

    Raises:  InternalError if code lacks its symbol, and for a kernel that is launched on a grid.
    """
    for kernel in plan.kernels:
        if kernel.launches != ON_THREADS:
            raise InternalError(
                stage="runtime",
                where=f"kernel {kernel.symbol}",
                reason="it is launched on a grid, but processors launch on threads",
            )
    kernels = [part.address(kernel.symbol) for part, kernel in zip(code, plan.kernels, strict=True)]
    steps: list[tuple[int, int, int, int]] = []
    parts = steps_in_parts(plan)
    refs: list[tuple[int, int]] = []
    amounts: dict[Formula, int] = {}
    for position, step in enumerate(plan.steps):
        most = (
            step.most_threads if isinstance(step, KernelStep) and step.most_threads else _NO_LIMIT
        )
        steps.append((_function(step, kernels), len(refs), most, parts.get(position, 0)))
        refs += _step_refs(plan, position, amounts)
    last_moving = len(plan.inputs) + len(plan.outputs)
    moving = [
        (n, base, offset)
        for n, (base, offset) in enumerate(refs)
        if 1 <= base <= last_moving or base >= amount_base(plan)
    ]
    arena = amount_base(plan) - 1
    in_arena = [(n, offset) for n, (base, offset) in enumerate(refs) if base == arena]
    runs, segments = cut_into_segments(plan)
    return Program(
        plan,
        code,
        np.array(runs, np.int64).reshape(-1, 3),
        np.array(steps, np.int64).reshape(-1, _STEP_COLUMNS),
        np.array(refs, np.int64).reshape(-1, 2),
        np.array(moving, np.int64).reshape(-1, 3),
        np.array(in_arena, np.int64).reshape(-1, _ARENA_COLUMNS),
        segments,
        tuple(amounts),
    )


def steps_in_parts(plan: Plan) -> dict[int, int]:
    """The steps that do their pieces in parts, in an order that changes, and how many parts.

    A kernel with memory for each thread is not among them: its threads have numbers.
    """
    parts: dict[int, int] = {}
    for position, loop in enumerate(plan.steps):
        if not isinstance(loop, LoopStep):
            continue
        read: dict[int, int] = {}
        for at, step in enumerate(plan.steps[: position + 1 + loop.body]):
            if at > position and isinstance(step, KernelStep):
                weights = {ref.index for ref in step.arguments if isinstance(ref, ConstantRef)}
                if plan.kernels[step.kernel].local_workspace_bytes == 0:
                    read[at] = sum(plan.constants[index].size_bytes for index in weights)
        if sum(read.values()) >= _MANY_BYTES:
            parts |= {at: _PARTS for at, size in read.items() if _PARTS * size >= _MANY_BYTES}
    return parts


def amount_base(plan: Plan) -> int:
    """The number of the base of the first amount; the bases of addresses come before it."""
    return 2 + len(plan.inputs) + len(plan.outputs) + len(plan.constants)


def base_index(plan: Plan, ref: BufferRef) -> int:
    """The number of the base address of a reference."""
    match host_ref(ref):
        case InputRef(index):
            return 1 + index
        case OutputRef(index):
            return 1 + len(plan.inputs) + index
        case ConstantRef(index):
            return 1 + len(plan.inputs) + len(plan.outputs) + index
        case ArenaRef():
            return amount_base(plan) - 1


def _step_refs(plan: Plan, position: int, amounts: dict[Formula, int]) -> list[tuple[int, int]]:
    """Base and offset of each argument of a step; base 0 is address 0, so an offset is a number.

    amounts   those of the earlier steps, each with its base; new ones are added
    """

    def amount(size: Amount) -> tuple[int, int]:
        if isinstance(size, int):
            return 0, size
        return amounts.setdefault(size, amount_base(plan) + len(amounts)), 0

    def at(*refs: BufferRef | TypedRef) -> list[tuple[int, int]]:
        hosts = [ref.ref if isinstance(ref, TypedRef) else ref for ref in refs]
        return [(base_index(plan, ref), ref.offset_bytes) for ref in hosts]

    step = plan.steps[position]
    ends = [(0, last) for _, last in next(blocks_of(plan.steps, position))[1]]
    match step:
        case KernelStep(kernel, arguments):
            return [*at(*arguments), *map(amount, plan.kernels[kernel].sizes)]
        case CopyStep(source, destination, size):
            return [*at(destination, source), amount(size)]
        case CollectStep(source, iteration, destination):
            return [*at(destination, source, iteration), amount(bytes_of_type(source.type))]
        case LoopStep(count, condition, iteration, _, _, counted):
            most = counted if isinstance(counted, int) else _MOST_ITERATIONS
            return [*at(count, condition, iteration), (0, most), *ends]
        case BranchStep(condition):
            return [*at(condition), *ends]
        case HostStep():
            return []


def _function(step: Step, kernels: Sequence[int]) -> int:
    match step:
        case KernelStep(kernel):
            return kernels[kernel]
        case CopyStep():
            return driver().copy_address
        case CollectStep():
            return driver().collect_address
        case LoopStep():
            return _LOOP
        case BranchStep():
            return _BRANCH
        case HostStep():
            return 0
