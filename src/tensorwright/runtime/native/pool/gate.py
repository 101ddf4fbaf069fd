"""The gate: as many calls run at once as there are cores; the others wait in order.

    tensorwright_enter()    before a call's kernels, tensorwright_leave() after them

`active` counts the calls that run or wait. A call that finds as many as there are cores joins the
queue; a call that leaves while others wait lets the first of them run in its place. If that one is
counted but not yet in the queue, a pass lies ready for it. So each call that waits is let in by one
that leaves, and a call at the gate is in native code, where it holds nothing that another needs.
"""

from __future__ import annotations

from tensorwright.machine_code import Kind, Module, NativeArray, NativeFunction, Number
from tensorwright.runtime.native.pool.clock import Clock
from tensorwright.runtime.native.pool.layout import Pool, pool_of

ENTER_SYMBOL, LEAVE_SYMBOL = "tensorwright_enter", "tensorwright_leave"

CROWD_NS = 5_000_000
"""How long calls count on the company of others after they last met."""

_NEXT, _IS_IN, _CONDITION = 0, 1, 2
_ENTRY_WORDS = 16


def write_gate(module: Module, clock: Clock) -> None:
    """The two functions."""
    wait = _write_wait(module)
    enter = NativeFunction(module, ENTER_SYMBOL)
    pool = pool_of(enter)
    count = pool.count(Pool.ACTIVE, 1) + 1
    with enter.when(count > 1):
        now = clock.now(enter)
        is_past = now > pool.acquire(Pool.CROWD_UNTIL)
        with enter.when(is_past | pool.acquire(Pool.CROWD).test("sle", count)):
            pool.release(Pool.CROWD, count)
            pool.release(Pool.CROWD_UNTIL, now + CROWD_NS)
        with enter.when(count > pool.acquire(Pool.CORES)):
            enter.do(wait)
    enter.finish()
    let_in = _write_let_in(module)
    leave = NativeFunction(module, LEAVE_SYMBOL)
    pool = pool_of(leave)
    with leave.when(pool.count(Pool.ACTIVE, -1) > pool.acquire(Pool.CORES)):
        leave.do(let_in)
    leave.finish()


def _write_wait(module: Module) -> NativeFunction:
    """Take a pass, or wait in the queue until another call leaves."""
    function = NativeFunction(module, "wait_at_gate", is_internal=True)
    pool = pool_of(function)
    entry = function.array(Kind.I64, _ENTRY_WORDS)
    entry[_NEXT] = entry[_IS_IN] = 0
    condition = entry.address(_CONDITION)
    null = function.number(0, Kind.POINTER)
    function.call(Kind.I32, "pthread_cond_init", condition, null)
    mutex = lock(function, pool, Pool.MUTEX)
    passes = pool[Pool.PASSES]
    with function.when(passes > 0) as otherwise:
        pool[Pool.PASSES] = passes - 1
    with otherwise():
        own = entry.pointer.cast("ptrtoint", Kind.I64)
        with function.when(pool[Pool.FIRST].equals(0)) as behind:
            pool[Pool.FIRST] = own
        with behind():
            _at(pool[Pool.LAST])[_NEXT] = own
        pool[Pool.LAST] = own
        with function.repeat(lambda: entry.acquire(_IS_IN).equals(0)):
            function.call(Kind.I32, "pthread_cond_wait", condition, mutex)
    function.call(Kind.I32, "pthread_mutex_unlock", mutex)
    function.call(Kind.I32, "pthread_cond_destroy", condition)
    function.finish()
    return function


def _write_let_in(module: Module) -> NativeFunction:
    """Let in the first call of the queue, or the next one that comes to it."""
    function = NativeFunction(module, "let_in", is_internal=True)
    pool = pool_of(function)
    mutex = lock(function, pool, Pool.MUTEX)
    first = pool[Pool.FIRST]
    with function.when(first.equals(0)) as otherwise:
        pool[Pool.PASSES] = pool[Pool.PASSES] + 1
    with otherwise():
        entry = _at(first)
        pool[Pool.FIRST] = entry[_NEXT]
        entry.release(_IS_IN, function.number(1))
        function.call(Kind.I32, "pthread_cond_signal", entry.address(_CONDITION))
    function.call(Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish()
    return function


def lock(function: NativeFunction, words: NativeArray, position: int) -> Number:
    """Lock a mutex, which is the answer."""
    mutex = words.address(position)
    function.call(Kind.I32, "pthread_mutex_lock", mutex)
    return mutex


def _at(address: Number) -> NativeArray:
    return address.cast("inttoptr", Kind.POINTER).array(Kind.I64)
