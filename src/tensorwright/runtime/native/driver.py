"""Run a table of steps in native code, with no Python between kernels.

The driver is a small LLVM module, compiled once per process. It reads a frame:

    steps       [kernel, first ref, number of refs] ...    what to call, in order
    refs        [base, offset] ...                         an argument is bases[base] + offset
    bases       address ...                                0, inputs, outputs, constants, arena
    arguments   room for the arguments of one kernel
    workspace   scratch memory of the kernels; they take turns
    threads, begin, end                                    the steps begin..end are run
    clock, ticks                                           where given, ticks[i]: step i began

Base 0 is address 0, so that a ref to it is a plain number.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tensorwright.ops import Array
from tensorwright.runtime.native.jit import LoadedObject, load_ir, load_object
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
)

_SLOTS = "steps refs bases arguments workspace threads begin end clock ticks".split()
_CLOCK_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)

DRIVER_IR = (
    "define void @tensorwright_run(ptr %frame) {\nentry:\n  %time = alloca [2 x i64], align 16\n"
    + "".join(
        f"  %{name}.at = getelementptr i64, ptr %frame, i64 {position}\n"
        f"  %{name} = load {'i64' if name in ('threads', 'begin', 'end') else 'ptr'}, "
        f"ptr %{name}.at\n"
        for position, name in enumerate(_SLOTS)
    )
    + f"""\
  %threads32 = trunc i64 %threads to i32
  %is_timed = icmp ne ptr %clock, null
  br label %next
next:
  %i = phi i64 [%begin, %entry], [%i.next, %call]
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
  %is_more = icmp slt i64 %i, %end
  br i1 %is_more, label %begin_step, label %done
begin_step:
  %step = getelementptr [3 x i64], ptr %steps, i64 %i
  %kernel = load ptr, ptr %step
  %first.at = getelementptr i64, ptr %step, i64 1
  %first = load i64, ptr %first.at
  %count.at = getelementptr i64, ptr %step, i64 2
  %count = load i64, ptr %count.at
  br label %argument
argument:
  %k = phi i64 [0, %begin_step], [%k.next, %fill]
  %has_argument = icmp slt i64 %k, %count
  br i1 %has_argument, label %fill, label %call
fill:
  %number = add i64 %first, %k
  %ref = getelementptr [2 x i64], ptr %refs, i64 %number
  %base.index = load i64, ptr %ref
  %offset.at = getelementptr i64, ptr %ref, i64 1
  %offset = load i64, ptr %offset.at
  %base.at = getelementptr i64, ptr %bases, i64 %base.index
  %base = load i64, ptr %base.at
  %address = add i64 %base, %offset
  %argument.at = getelementptr i64, ptr %arguments, i64 %k
  store i64 %address, ptr %argument.at
  %k.next = add i64 %k, 1
  br label %argument
call:
  call void %kernel(ptr %arguments, ptr %workspace, i32 %threads32)
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
"""
)
"""The clock is POSIX's clock_gettime, whose seconds and nanoseconds are 64 bits each."""


class NativeFrame(ctypes.Structure):
    """The frame as the driver reads it."""

    _fields_ = tuple((name, ctypes.c_int64) for name in _SLOTS)


@dataclass(frozen=True, slots=True)
class Driver:
    """The compiled driver; `run(address of a NativeFrame)` releases the interpreter's lock."""

    code: LoadedObject
    run: Callable[[int], None]
    copy_address: int
    clock_address: int


def driver() -> Driver:
    """The process's driver, compiled when first asked for."""
    with _LOCK:  # of two made at once, one would be unloaded under its user's feet
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
    """Steps begin..end run in one foreign call."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class HostSegment:
    """Step `index` runs in Python."""

    index: int
    step: HostStep[TypedRef]


Segment = NativeSegment | HostSegment


@dataclass(frozen=True, slots=True)
class Program:
    """A plan with its code loaded; read-only, shared by all calls.

    steps (n, 3) and refs (m, 2) are the driver's tables; a host step has an empty row, so that
    positions are those of the plan. `code` keeps the addresses in `steps` valid.
    """

    plan: Plan
    code: tuple[LoadedObject, ...]
    steps: Array
    refs: Array
    segments: tuple[Segment, ...]
    most_arguments: int


def load_program(plan: Plan, objects: Sequence[bytes]) -> Program:
    """Link the object code, one object per kernel, and lay out the driver's tables.

    Raises:  InternalError if an object cannot be linked or lacks its symbol.
    """
    code = tuple(
        load_object(data, (kernel.symbol,))
        for kernel, data in zip(plan.kernels, objects, strict=True)
    )
    kernels = [part.address(kernel.symbol) for part, kernel in zip(code, plan.kernels, strict=True)]
    steps: list[tuple[int, int, int]] = []
    refs: list[tuple[int, int]] = []
    for step in plan.steps:
        added = _step_refs(plan, step)
        steps.append((_function(step, kernels), len(refs), len(added)))
        refs += added
    return Program(
        plan,
        code,
        np.array(steps, np.int64).reshape(-1, 3),
        np.array(refs, np.int64).reshape(-1, 2),
        _segments(plan.steps),
        max((count for _, _, count in steps), default=0),
    )


def base_count(plan: Plan) -> int:
    """How many base addresses a frame has."""
    return 2 + len(plan.inputs) + len(plan.outputs) + len(plan.constants)


def base_index(plan: Plan, ref: BufferRef) -> int:
    """Which base address a reference counts from."""
    match ref:
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


def _segments(steps: Sequence[Step]) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    begin = 0
    for position, step in enumerate(steps):
        if isinstance(step, HostStep):
            if begin < position:
                segments.append(NativeSegment(begin, position))
            segments.append(HostSegment(position, step))
            begin = position + 1
    if begin < len(steps):
        segments.append(NativeSegment(begin, len(steps)))
    return tuple(segments)
