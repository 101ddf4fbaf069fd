"""Run a table of steps in native code, with no Python between kernels.

The driver is a small LLVM module, compiled once per process. It reads a frame:

    runs        [first step, step after the last, has team] ...   what to do, in order
    steps       [kernel, first argument, most threads] ...        what to call
    arguments   address ...                                       of all steps' arguments
    moving      [argument, base, offset] ...                      arguments that differ by call:
    bases       address ...                                       bases[base] + offset
    workspace   scratch memory of the kernels; they take turns
    threads, begin, end, moving_count                             the runs begin..end are done
    clock, ticks                                                  if given, ticks[i]: step i began

A run with a team forks its threads once (`team.py`); in other runs each kernel forks its threads.
Base 0 is address 0, so that an offset from it is a plain number.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tensorwright.base import ON_THREADS, Array, InternalError
from tensorwright.runtime.native.jit import load_ir
from tensorwright.runtime.native.loaded_code import LoadedCode
from tensorwright.runtime.plan.plan import (
    ArenaRef,
    BufferRef,
    ConstantRef,
    CopyStep,
    HostStep,
    InputRef,
    KernelStep,
    OutputRef,
    Plan,
    Step,
    TypedRef,
    host_ref,
)

_SLOTS = (
    "runs steps arguments moving bases workspace threads begin end moving_count clock ticks".split()
)
_NUMBERS = ("threads", "begin", "end", "moving_count")
_CLOCK_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)
_NO_LIMIT = (1 << 31) - 1


def _loads(*names: str) -> str:
    """IR that reads slots of %frame, each into a value of its name."""
    return "".join(
        f"  %{name}.at = getelementptr i64, ptr %frame, i64 {_SLOTS.index(name)}\n"
        f"  %{name} = load {'i64' if name in _NUMBERS else 'ptr'}, ptr %{name}.at\n"
        for name in names
    )


DRIVER_IR = f"""
define void @tensorwright_run(ptr %frame) nounwind {{
entry:
  %context = alloca [2 x ptr], align 16
{_loads("runs", "arguments", "moving", "bases", "threads", "begin", "end", "moving_count")}
  %threads32 = trunc i64 %threads to i32
  store ptr %frame, ptr %context
  %run.at = getelementptr ptr, ptr %context, i64 1
  br label %move
move:
  %m = phi i64 [0, %entry], [%m.next, %moved]
  %is_moving = icmp slt i64 %m, %moving_count
  br i1 %is_moving, label %moved, label %next
moved:
  %row = getelementptr [3 x i64], ptr %moving, i64 %m
  %number = load i64, ptr %row
  %base.number.at = getelementptr i64, ptr %row, i64 1
  %base.number = load i64, ptr %base.number.at
  %offset.at = getelementptr i64, ptr %row, i64 2
  %offset = load i64, ptr %offset.at
  %base.at = getelementptr i64, ptr %bases, i64 %base.number
  %base = load i64, ptr %base.at
  %address = add i64 %base, %offset
  %argument.at = getelementptr i64, ptr %arguments, i64 %number
  store i64 %address, ptr %argument.at
  %m.next = add i64 %m, 1
  br label %move
next:
  %r = phi i64 [%begin, %move], [%r.next, %after]
  %is_more = icmp slt i64 %r, %end
  br i1 %is_more, label %start, label %done
start:
  %run = getelementptr [3 x i64], ptr %runs, i64 %r
  store ptr %run, ptr %run.at
  %team.at = getelementptr i64, ptr %run, i64 2
  %team = load i64, ptr %team.at
  %has_team = icmp ne i64 %team, 0
  br i1 %has_team, label %together, label %alone
together:
  call void @tensorwright_team(ptr @run_steps, ptr %context, i32 %threads32)
  br label %after
alone:
  call void @run_steps(ptr %context)
  br label %after
after:
  %r.next = add i64 %r, 1
  br label %next
done:
  ret void
}}

define internal void @run_steps(ptr %context) nounwind {{
entry:
  %time = alloca [2 x i64], align 16
  %frame = load ptr, ptr %context
  %run.at = getelementptr ptr, ptr %context, i64 1
  %run = load ptr, ptr %run.at
  %first = load i64, ptr %run
  %stop.at = getelementptr i64, ptr %run, i64 1
  %stop = load i64, ptr %stop.at
{_loads("steps", "arguments", "workspace", "threads", "clock", "ticks")}
  %is_timed = icmp ne ptr %clock, null
  br label %next
next:
  %i = phi i64 [%first, %entry], [%i.next, %call]
  br i1 %is_timed, label %tick, label %check
tick:
  call i32 %clock(i32 {_CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %rest
  %tick.at = getelementptr i64, ptr %ticks, i64 %i
  store i64 %now, ptr %tick.at
  br label %check
check:
  %is_more = icmp slt i64 %i, %stop
  br i1 %is_more, label %call, label %done
call:
  %step = getelementptr [3 x i64], ptr %steps, i64 %i
  %kernel = load ptr, ptr %step
  %argument.at = getelementptr i64, ptr %step, i64 1
  %argument = load i64, ptr %argument.at
  %args = getelementptr i64, ptr %arguments, i64 %argument
  %most.at = getelementptr i64, ptr %step, i64 2
  %most = load i64, ptr %most.at
  %is_few = icmp slt i64 %most, %threads
  %count = select i1 %is_few, i64 %most, i64 %threads
  %count32 = trunc i64 %count to i32
  call void %kernel(ptr %args, ptr %workspace, i32 %count32)
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}}

define void @tensorwright_copy(ptr %arguments, ptr %workspace, i32 %threads) {{
  %destination = load ptr, ptr %arguments
  %source.at = getelementptr i64, ptr %arguments, i64 1
  %source = load ptr, ptr %source.at
  %size.at = getelementptr i64, ptr %arguments, i64 2
  %size = load i64, ptr %size.at
  call void @llvm.memcpy.p0.p0.i64(ptr %destination, ptr %source, i64 %size, i1 false)
  ret void
}}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @tensorwright_team(ptr, ptr, i32)
"""
"""The clock is POSIX's clock_gettime, whose seconds and nanoseconds are 64 bits each."""


class NativeFrame(ctypes.Structure):
    """The frame as the driver reads it."""

    _fields_ = tuple((name, ctypes.c_int64) for name in _SLOTS)


@dataclass(frozen=True, slots=True)
class Driver:
    """The compiled driver; `run(address of a NativeFrame)` releases the interpreter's lock."""

    code: LoadedCode
    run: Callable[[int], None]
    copy_address: int
    clock_address: int


def driver() -> Driver:
    """The process's driver, compiled on its first use."""
    with _LOCK:  # if two were made at once, one would be unloaded while it is used
        return _driver()


_LOCK = threading.Lock()


@lru_cache(maxsize=1)
def _driver() -> Driver:
    symbols = ("tensorwright_run", "tensorwright_copy")
    code = load_ir(DRIVER_IR, symbols)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("tensorwright_run"))
    clock = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0
    return Driver(code, run, code.address("tensorwright_copy"), clock)


@dataclass(frozen=True, slots=True)
class NativeSegment:
    """Steps begin..end, which are the runs first_run..last_run, are one foreign call."""

    begin: int
    end: int
    first_run: int
    last_run: int


@dataclass(frozen=True, slots=True)
class HostSegment:
    """Step `index` runs in Python."""

    index: int
    step: HostStep[TypedRef]


Segment = NativeSegment | HostSegment


@dataclass(frozen=True, slots=True)
class Program:
    """A plan with its code loaded; read-only, shared by all calls.

    runs (k, 3) and steps (n, 3) are the driver's tables; a host step has an empty row, so that
    positions are those of the plan. refs (m, 2) has base and offset of each argument, and moving
    (l, 3) is a table of the driver. `code` keeps the addresses in `steps` valid.
    """

    plan: Plan
    code: tuple[LoadedCode, ...]
    runs: Array
    steps: Array
    refs: Array
    moving: Array
    segments: tuple[Segment, ...]


def load_program(plan: Plan, code: tuple[LoadedCode, ...]) -> Program:
    """Lay out the driver's tables for a plan and the loaded code of each of its kernels.

    Raises:  InternalError if code lacks its symbol, and for a kernel that is not called on threads.
    """
    for kernel in plan.kernels:
        if kernel.launches != ON_THREADS:
            raise InternalError(
                stage="runtime",
                where=f"kernel {kernel.symbol}",
                reason="it is launched on a grid, which processors cannot do",
            )
    kernels = [part.address(kernel.symbol) for part, kernel in zip(code, plan.kernels, strict=True)]
    steps: list[tuple[int, int, int]] = []
    refs: list[tuple[int, int]] = []
    for step in plan.steps:
        steps.append((_function(step, kernels), len(refs), _most_threads(step)))
        refs += _step_refs(plan, step)
    last_moving = len(plan.inputs) + len(plan.outputs)
    moving = [
        (n, base, offset) for n, (base, offset) in enumerate(refs) if 1 <= base <= last_moving
    ]
    runs, segments = _runs(plan)
    return Program(
        plan,
        code,
        np.array(runs, np.int64).reshape(-1, 3),
        np.array(steps, np.int64).reshape(-1, 3),
        np.array(refs, np.int64).reshape(-1, 2),
        np.array(moving, np.int64).reshape(-1, 3),
        segments,
    )


def base_count(plan: Plan) -> int:
    """The number of base addresses of a frame."""
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
            return base_count(plan) - 1


def _step_refs(plan: Plan, step: Step) -> list[tuple[int, int]]:
    match step:
        case KernelStep(_, arguments):
            return [(base_index(plan, ref), ref.offset_bytes) for ref in arguments]
        case CopyStep(source, destination, size_bytes):
            refs = [(base_index(plan, ref), ref.offset_bytes) for ref in (destination, source)]
            return [*refs, (0, size_bytes)]
        case HostStep():
            return []


def _function(step: Step, kernels: Sequence[int]) -> int:
    match step:
        case KernelStep(kernel):
            return kernels[kernel]
        case CopyStep():
            return driver().copy_address
        case HostStep():
            return 0


def _most_threads(step: Step) -> int:
    return step.most_threads if isinstance(step, KernelStep) and step.most_threads else _NO_LIMIT


def _runs(plan: Plan) -> tuple[list[tuple[int, int, int]], tuple[Segment, ...]]:
    """The driver's table of runs, and the segments that they make."""
    runs: list[tuple[int, int, int]] = []
    segments: list[Segment] = []
    cuts = {team.begin: team for team in plan.teams}

    def close(begin: int, end: int) -> None:
        """Steps begin..end, between two steps on the host, are one segment."""
        first, position = len(runs), begin
        while position < end:
            team = cuts.get(position)
            stop = team.end if team else min((c for c in cuts if position < c < end), default=end)
            runs.append((position, stop, int(team is not None)))
            position = stop
        if begin < end:
            segments.append(NativeSegment(begin, end, first, len(runs)))

    begin = 0
    for position, step in enumerate(plan.steps):
        if isinstance(step, HostStep):
            close(begin, position)
            segments.append(HostSegment(position, step))
            begin = position + 1
    close(begin, len(plan.steps))
    return runs, tuple(segments)
