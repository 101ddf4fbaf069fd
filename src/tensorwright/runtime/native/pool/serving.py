"""The code of a pool's thread: it does the pieces that calls offer it, and waits between them.

It waits in three ways. For some 50 us it polls. Then it yields its core between polls. It falls
asleep when no call has leased it for 3 ms; at once if it rests, or if all cores have calls.

A piece runs with the float state of the call that offers it: how floats are rounded, and whether
denormal numbers count as 0. It is the register MXCSR of x86-64, and FPCR of AArch64.

The pool's threads when a process forks or ends, and what the knobs say about them.

Native code starts the threads when a call first needs them (`gate.py`). A child of a fork has no
threads: its pool is empty, and its first call starts new ones.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time

from tensorwright import machine_code
from tensorwright.base import knobs
from tensorwright.runtime.native.pool.layout import (
    LEASE,
    Clock,
    Pool,
    Worker,
    lock,
    pool_memory,
    pool_of,
    set_own_slot,
    worker_base,
)

SPINS = 1000
_AWAKE_NS = 3_000_000
_YIELD = 1  # the number of AArch64's hint
FLUSHING = {"x86-64": 1 << 15 | 1 << 6, "aarch64": 1 << 24}
"""The bits of the float state with which denormal f32 and f64 count as 0: FTZ and DAZ of x86-64, FZ
of AArch64. Numbers of 16 bits keep theirs."""


def pause(function: machine_code.NativeFunction, arch: str) -> None:
    """Tell the processor that the thread only waits.

    It is not inline assembly, because LLVM reads that only for the processor on which it runs.
    """
    if arch == "aarch64":
        function.do("llvm.aarch64.hint", function.number(_YIELD, machine_code.Kind.I32))
    else:
        function.do("llvm.x86.sse2.pause")


def float_state(function: machine_code.NativeFunction, arch: str) -> machine_code.Number:
    """The float state of the thread."""
    if arch == "aarch64":
        return function.call(machine_code.Kind.I64, "llvm.aarch64.get.fpcr")
    cell = function.variable(machine_code.Kind.I32, 0)
    function.do("llvm.x86.sse.stmxcsr", cell.cell.pointer)
    return cell.now.cast("zext", machine_code.Kind.I64)


def set_float_state(
    function: machine_code.NativeFunction, arch: str, state: machine_code.Number
) -> None:
    """Give the thread another float state; nothing is written where it has that state."""
    with function.when(float_state(function, arch).differs(state)):
        if arch == "aarch64":
            function.do("llvm.aarch64.set.fpcr", state)
        else:
            cell = function.variable(
                machine_code.Kind.I32, state.cast("trunc", machine_code.Kind.I32)
            )
            function.do("llvm.x86.sse.ldmxcsr", cell.cell.pointer)


def write_serve(
    module: machine_code.Module, clock: Clock, do_piece: machine_code.NativeFunction, arch: str
) -> machine_code.NativeFunction:
    """serve(worker): the function that a thread runs from its start until the pool stops."""
    sleep = _write_sleep(module)
    function = machine_code.NativeFunction(
        module, "serve", (machine_code.Kind.POINTER,), machine_code.Kind.POINTER, is_internal=True
    )
    slot = function.parameters[0]
    worker, pool = slot.array(machine_code.Kind.I64), pool_of(function)
    own_clock = worker.pointer.array(machine_code.Kind.I32).address(2 * Worker.CLOCK)
    own = function.call(machine_code.Kind.I64, "pthread_self")
    function.call(machine_code.Kind.I32, "pthread_getcpuclockid", own, own_clock)
    set_own_slot(function, slot)
    mask_bytes = pool.acquire(Pool.MASK_BYTES)
    with function.when(mask_bytes.differs(0)):
        itself, mask = function.number(0, machine_code.Kind.I32), pool.address(Pool.MASK)
        function.call(machine_code.Kind.I32, "sched_setaffinity", itself, mask_bytes, mask)
    looks, since = (function.variable(machine_code.Kind.I64, 0) for _ in range(2))

    def may_sleep() -> machine_code.Number:
        now = clock.now(function)
        with function.when(looks.now.equals(SPINS)):
            since.set(now)
        is_free = worker.acquire(Worker.OWNER).equals(LEASE.FREE)
        has_waited = now > since.now + _AWAKE_NS
        rests = now < worker.acquire(Worker.REST_UNTIL)
        is_full = pool.acquire(Pool.ACTIVE).test("sge", pool.acquire(Pool.CORES))
        return is_free & (has_waited | rests | is_full)

    with function.repeat(lambda: pool.acquire(Pool.STOP).equals(0)):
        is_offered = worker.acquire(Worker.STATE).equals(Worker.OFFERED)
        with function.when(is_offered) as otherwise:
            _take(function, worker, do_piece, arch)
            looks.set(0)
        with otherwise():
            looks.set(looks.now + 1)
            with function.when(looks.now < SPINS) as long:
                pause(function, arch)
            with long():
                with function.when(may_sleep()) as awake:
                    function.do(sleep, slot)
                    looks.set(0)
                with awake():
                    function.call(machine_code.Kind.I32, "sched_yield")
    set_own_slot(function, function.number(0, machine_code.Kind.POINTER))
    pool.count(Pool.LIVE, -1)
    function.finish(function.number(0, machine_code.Kind.POINTER))
    return function


def _take(
    function: machine_code.NativeFunction,
    worker: machine_code.NativeArray,
    do_piece: machine_code.NativeFunction,
    arch: str,
) -> None:
    """Do the offered piece, unless the call has just taken it back."""
    with function.when(worker.exchange(Worker.STATE, Worker.OFFERED, Worker.BUSY)):
        pointers, runs_calls = (
            worker.pointer.array(machine_code.Kind.POINTER),
            worker[Worker.COUNT].equals(1),
        )
        set_float_state(function, arch, worker[Worker.FLOATS])
        order = runs_calls.choose(function.number(0), worker[Worker.ORDER])
        function.do(do_piece, worker.pointer, pointers[Worker.BODY], pointers[Worker.DATA], order)
        worker.release(Worker.STATE, function.number(Worker.IDLE))
        with function.when(runs_calls):
            worker.release(Worker.OWNER, function.number(LEASE.FREE))


def write_do_piece(module: machine_code.Module) -> machine_code.NativeFunction:
    """do_piece(slot, body, data, order): the piece of a loop that a thread's slot says.

    order   0; or into how many parts the piece is cut, 2 n if they are done in order, 2 n + 1 if
            the last one is done first
    """
    kinds = (
        machine_code.Kind.POINTER,
        machine_code.Kind.POINTER,
        machine_code.Kind.POINTER,
        machine_code.Kind.I64,
    )
    function = machine_code.NativeFunction(module, "do_piece", kinds, is_internal=True)
    slot, body, data, order = function.parameters
    with function.when(order.equals(0)) as in_parts:
        function.do(body, data)
    with in_parts():
        words = slot.array(machine_code.Kind.I64)
        parts, is_back = order >> 1, (order & 1).differs(0)
        count, number = words[Worker.COUNT], words[Worker.NUMBER]
        words[Worker.COUNT] = count * parts
        with function.loop(parts) as part:
            turned = is_back.choose(parts - 1 - part, part)
            words[Worker.NUMBER] = number * parts + turned
            function.do(body, data)
        words[Worker.COUNT], words[Worker.NUMBER] = count, number
    function.finish()
    return function


def _write_sleep(module: machine_code.Module) -> machine_code.NativeFunction:
    """Sleep until a call wakes the thread, unless a call has just leased it."""
    function = machine_code.NativeFunction(
        module, "sleep", (machine_code.Kind.POINTER,), is_internal=True
    )
    worker, pool = function.parameters[0].array(machine_code.Kind.I64), pool_of(function)
    with function.when(worker.exchange(Worker.OWNER, LEASE.FREE, LEASE.ITSELF)):
        mutex = lock(function, worker, Worker.MUTEX)
        worker.release(Worker.STATE, function.number(Worker.ASLEEP))
        worker.release(Worker.OWNER, function.number(LEASE.FREE))

        def is_asleep() -> machine_code.Number:
            sleeps = worker.acquire(Worker.STATE).equals(Worker.ASLEEP)
            return sleeps & pool.acquire(Pool.STOP).equals(0)

        with function.repeat(is_asleep):
            condition = worker.address(Worker.CONDITION)
            function.call(machine_code.Kind.I32, "pthread_cond_wait", condition, mutex)
        function.call(machine_code.Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish()
    return function


_LONGEST_S = 1.0
_LOOK_S = 1e-4


def usable_threads(asked: int | None = None) -> int:
    """The number of threads of kernels: the requested one, or that of the knob `threads`.

    Raises:  UsageError for fewer than one.
    """
    return knobs.THREADS.get() if asked is None else knobs.THREADS.read(asked)


def float_bits(arch: str) -> int:
    """The bits of the float state that calls set on an architecture, by the knob `denormals`."""
    return FLUSHING.get(arch, 0) if knobs.DENORMALS.get() == "flush" else 0


def _stop() -> None:
    """End the threads before the interpreter ends; one that computes for longer is left running.

    The mutexes are taken so that no thread misses its signal.
    """
    if not pool_memory.cache_info().currsize:
        return
    memory, process = pool_memory(), ctypes.CDLL(None)
    memory.words[Pool.STOP] = 1
    for number in range(memory.words[Pool.WORKERS]):
        words = (worker_base(number) + word for word in (Worker.MUTEX, Worker.CONDITION))
        mutex, condition = (ctypes.c_void_p(memory.address_of(word)) for word in words)
        process.pthread_mutex_lock(mutex)
        process.pthread_cond_signal(condition)
        process.pthread_mutex_unlock(mutex)
    latest_s = time.monotonic() + _LONGEST_S
    while memory.words[Pool.LIVE] and time.monotonic() < latest_s:
        time.sleep(_LOOK_S)


def _begin_again() -> None:
    """Empty the pool in the child of a fork."""
    if pool_memory.cache_info().currsize:
        pool_memory().reset()


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
