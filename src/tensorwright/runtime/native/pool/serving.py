"""The code of a pool's thread: it does the pieces that calls offer it, and waits between them.

It waits in three ways. For some 50 us it polls. Then it yields its core between polls. It falls
asleep when no call has leased it for 3 ms; at once if it rests, or if all cores have calls.

A piece runs with the float state of the call that offers it: how floats are rounded, and whether
denormal numbers count as 0. It is the register MXCSR of x86-64, and FPCR of AArch64.
"""

from __future__ import annotations

from tensorwright.machine_code import Kind, Module, NativeArray, NativeFunction, Number
from tensorwright.runtime.native.pool.clock import Clock
from tensorwright.runtime.native.pool.layout import (
    LEASE,
    Pool,
    Worker,
    lock,
    pool_of,
    set_own_slot,
)

SPINS = 1000
_AWAKE_NS = 3_000_000
_YIELD = 1  # the number of AArch64's hint
FLUSHING = {"x86-64": 1 << 15 | 1 << 6, "aarch64": 1 << 24}
"""The bits of the float state with which denormal f32 and f64 count as 0: FTZ and DAZ of x86-64, FZ
of AArch64. Numbers of 16 bits keep theirs."""


def pause(function: NativeFunction, arch: str) -> None:
    """Tell the processor that the thread only waits.

    It is not inline assembly, because LLVM reads that only for the processor on which it runs.
    """
    if arch == "aarch64":
        function.do("llvm.aarch64.hint", function.number(_YIELD, Kind.I32))
    else:
        function.do("llvm.x86.sse2.pause")


def float_state(function: NativeFunction, arch: str) -> Number:
    """The float state of the thread."""
    if arch == "aarch64":
        return function.call(Kind.I64, "llvm.aarch64.get.fpcr")
    cell = function.variable(Kind.I32, 0)
    function.do("llvm.x86.sse.stmxcsr", cell.cell.pointer)
    return cell.now.cast("zext", Kind.I64)


def set_float_state(function: NativeFunction, arch: str, state: Number) -> None:
    """Give the thread another float state; nothing is written where it has that state."""
    with function.when(float_state(function, arch).differs(state)):
        if arch == "aarch64":
            function.do("llvm.aarch64.set.fpcr", state)
        else:
            cell = function.variable(Kind.I32, state.cast("trunc", Kind.I32))
            function.do("llvm.x86.sse.ldmxcsr", cell.cell.pointer)


def write_serve(
    module: Module, clock: Clock, do_piece: NativeFunction, arch: str
) -> NativeFunction:
    """serve(worker): the function that a thread runs from its start until the pool stops."""
    sleep = _write_sleep(module)
    function = NativeFunction(module, "serve", (Kind.POINTER,), Kind.POINTER, is_internal=True)
    slot = function.parameters[0]
    worker, pool = slot.array(Kind.I64), pool_of(function)
    own_clock = worker.pointer.array(Kind.I32).address(2 * Worker.CLOCK)
    own = function.call(Kind.I64, "pthread_self")
    function.call(Kind.I32, "pthread_getcpuclockid", own, own_clock)
    set_own_slot(function, slot)
    mask_bytes = pool.acquire(Pool.MASK_BYTES)
    with function.when(mask_bytes.differs(0)):
        itself, mask = function.number(0, Kind.I32), pool.address(Pool.MASK)
        function.call(Kind.I32, "sched_setaffinity", itself, mask_bytes, mask)
    looks, since = (function.variable(Kind.I64, 0) for _ in range(2))

    def may_sleep() -> Number:
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
                    function.call(Kind.I32, "sched_yield")
    set_own_slot(function, function.number(0, Kind.POINTER))
    pool.count(Pool.LIVE, -1)
    function.finish(function.number(0, Kind.POINTER))
    return function


def _take(
    function: NativeFunction, worker: NativeArray, do_piece: NativeFunction, arch: str
) -> None:
    """Do the offered piece, unless the call has just taken it back."""
    with function.when(worker.exchange(Worker.STATE, Worker.OFFERED, Worker.BUSY)):
        pointers, runs_calls = worker.pointer.array(Kind.POINTER), worker[Worker.COUNT].equals(1)
        set_float_state(function, arch, worker[Worker.FLOATS])
        order = runs_calls.choose(function.number(0), worker[Worker.ORDER])
        function.do(do_piece, worker.pointer, pointers[Worker.BODY], pointers[Worker.DATA], order)
        worker.release(Worker.STATE, function.number(Worker.IDLE))
        with function.when(runs_calls):
            worker.release(Worker.OWNER, function.number(LEASE.FREE))


def write_do_piece(module: Module) -> NativeFunction:
    """do_piece(slot, body, data, order): the piece of a loop that a thread's slot says.

    order   0; or into how many parts the piece is cut, 2 n if they are done in order, 2 n + 1 if
            the last one is done first
    """
    kinds = (Kind.POINTER, Kind.POINTER, Kind.POINTER, Kind.I64)
    function = NativeFunction(module, "do_piece", kinds, is_internal=True)
    slot, body, data, order = function.parameters
    with function.when(order.equals(0)) as in_parts:
        function.do(body, data)
    with in_parts():
        words = slot.array(Kind.I64)
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


def _write_sleep(module: Module) -> NativeFunction:
    """Sleep until a call wakes the thread, unless a call has just leased it."""
    function = NativeFunction(module, "sleep", (Kind.POINTER,), is_internal=True)
    worker, pool = function.parameters[0].array(Kind.I64), pool_of(function)
    with function.when(worker.exchange(Worker.OWNER, LEASE.FREE, LEASE.ITSELF)):
        mutex = lock(function, worker, Worker.MUTEX)
        worker.release(Worker.STATE, function.number(Worker.ASLEEP))
        worker.release(Worker.OWNER, function.number(LEASE.FREE))

        def is_asleep() -> Number:
            sleeps = worker.acquire(Worker.STATE).equals(Worker.ASLEEP)
            return sleeps & pool.acquire(Pool.STOP).equals(0)

        with function.repeat(is_asleep):
            condition = worker.address(Worker.CONDITION)
            function.call(Kind.I32, "pthread_cond_wait", condition, mutex)
        function.call(Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish()
    return function
