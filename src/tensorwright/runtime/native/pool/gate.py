"""The gate: as many calls run at once as there are cores; the others wait in order.

    tensorwright_admit(body, context)     calls body(context) when the call's turn has come

`active` counts the calls that run or wait. If fewer calls are active than there are cores, a new
call runs on the thread of its caller. Otherwise it joins the queue, and its caller sleeps. A thread
that has finished a call while others wait passes its turn on. If it is a thread of the pool, it
runs the first call of the queue, and so on. If it is the thread of a caller, which must return, it
hands the first call to a free thread of the pool. So while calls wait, each core goes from one call
to the next without waiting for a thread to wake up. (A system wakes a thread on the core where it
last ran. If that core is busy and another one has just become free, the thread can wait for
milliseconds beside an idle core.)

If no thread of the pool is free, the waiting call is let in: its caller's thread wakes up and runs
it. If a call is counted but not yet in the queue, a pass is left for it, and it does not wait. So
each waiting call is run or let in when another call is done. A call that another thread runs has
the float state of its caller. A call at the gate is in native code, where it holds no lock that
another one needs.
"""

from __future__ import annotations

from tensorwright.machine_code import Kind, Module, NativeArray, NativeFunction, Number
from tensorwright.runtime.native.pool.clock import Clock
from tensorwright.runtime.native.pool.layout import Pool, Worker, lock, pool_of, worker_of
from tensorwright.runtime.native.pool.lease import Workers
from tensorwright.runtime.native.pool.serving import float_state, set_float_state

ADMIT_SYMBOL = "tensorwright_admit"

CROWD_NS = 5_000_000
"""How long calls expect other calls after they last met one."""

_BODY, _CONTEXT, _NEXT, _STATE, _FLOATS, _CONDITION = range(6)
_ENTRY_WORDS = 16
"""The words of an entry of the queue, which lies on the stack of the thread that waits."""

_WAITS, _IS_LET_IN, _IS_DONE = range(3)


def write_gate(module: Module, clock: Clock, workers: Workers, arch: str) -> None:
    """The function above."""
    wait, pass_on = _write_wait(module, arch), _write_pass_on(module)
    hand_over = _write_hand_over(module, workers, _write_run_waiting(module, pass_on, arch))
    function = NativeFunction(module, ADMIT_SYMBOL, (Kind.POINTER, Kind.POINTER))
    body, context = function.parameters
    pool, is_done = pool_of(function), function.variable(Kind.TRUTH, 0)
    count = pool.count(Pool.ACTIVE, 1) + 1
    with function.when(count > 1):
        now = clock.now(function)
        is_past = now > pool.acquire(Pool.CROWD_UNTIL)
        with function.when(is_past | pool.acquire(Pool.CROWD).test("sle", count)):
            pool.release(Pool.CROWD, count)
            pool.release(Pool.CROWD_UNTIL, now + CROWD_NS)
        with function.when(count > pool.acquire(Pool.CORES)):
            is_done.set(function.call(Kind.TRUTH, wait, body, context))
    with function.when(is_done.now.equals(0)):
        function.do(body, context)
        with function.when(_is_awaited(pool)):
            null = function.number(0, Kind.POINTER)
            following = function.call(Kind.POINTER, pass_on, null, function.number(1))
            with function.when(following.differs(0)):
                function.do(hand_over, following)
    function.finish()


def _is_awaited(pool: NativeArray) -> Number:
    """Count one call less; returns whether another call waits."""
    return pool.count(Pool.ACTIVE, -1) > pool.acquire(Pool.CORES)


def _write_wait(module: Module, arch: str) -> NativeFunction:
    """wait(body, context): take a pass, or wait in the queue; whether a thread ran the call."""
    kinds = (Kind.POINTER, Kind.POINTER)
    function = NativeFunction(module, "wait_at_gate", kinds, Kind.TRUTH, is_internal=True)
    pool = pool_of(function)
    entry = function.array(Kind.I64, _ENTRY_WORDS)
    pointers = entry.pointer.array(Kind.POINTER)
    pointers[_BODY], pointers[_CONTEXT] = function.parameters
    entry[_NEXT], entry[_STATE], entry[_FLOATS] = 0, _WAITS, float_state(function, arch)
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
        with function.repeat(lambda: entry.acquire(_STATE).equals(_WAITS)):
            function.call(Kind.I32, "pthread_cond_wait", condition, mutex)
    function.call(Kind.I32, "pthread_mutex_unlock", mutex)
    function.call(Kind.I32, "pthread_cond_destroy", condition)
    function.finish(entry.acquire(_STATE).equals(_IS_DONE))
    return function


def _write_pass_on(module: Module) -> NativeFunction:
    """pass_on(done, wanted): report a done call, and take the next one.

    If `done` is given, that call of the queue is done. If `wanted`, the first call is taken out of
    the queue; if the queue is empty, a pass is left for a call on its way.
    """
    kinds = (Kind.POINTER, Kind.I64)
    function = NativeFunction(module, "pass_on", kinds, Kind.POINTER, is_internal=True)
    done, wanted = function.parameters
    pool, first = pool_of(function), function.variable(Kind.I64, 0)
    mutex = lock(function, pool, Pool.MUTEX)
    with function.when(done.differs(0)):
        _wake(function, done, _IS_DONE)
    with function.when(wanted.differs(0)):
        first.set(pool[Pool.FIRST])
        with function.when(first.now.equals(0)) as otherwise:
            pool[Pool.PASSES] = pool[Pool.PASSES] + 1
        with otherwise():
            pool[Pool.FIRST] = _at(first.now)[_NEXT]
    function.call(Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish(first.now.cast("inttoptr", Kind.POINTER))
    return function


def _write_run_waiting(module: Module, pass_on: NativeFunction, arch: str) -> NativeFunction:
    """run_waiting(entry): on a thread of the pool, run a call, then others while calls wait."""
    function = NativeFunction(module, "run_waiting", (Kind.POINTER,), is_internal=True)
    pool, entry = pool_of(function), function.variable(Kind.POINTER, function.parameters[0])
    with function.repeat(lambda: entry.now.differs(0)):
        pointers = entry.now.array(Kind.POINTER)
        set_float_state(function, arch, entry.now.array(Kind.I64)[_FLOATS])
        function.do(pointers[_BODY], pointers[_CONTEXT])
        wanted = _is_awaited(pool).cast("zext", Kind.I64)
        entry.set(function.call(Kind.POINTER, pass_on, entry.now, wanted))
    function.finish()
    return function


def _write_hand_over(
    module: Module, workers: Workers, run_waiting: NativeFunction
) -> NativeFunction:
    """hand_over(entry): give a call to a free thread of the pool; if none is free, let it in."""
    function = NativeFunction(module, "hand_over", (Kind.POINTER,), is_internal=True)
    (entry,), pool = function.parameters, pool_of(function)
    most = pool.acquire(Pool.MOST)
    with function.when(pool.acquire(Pool.WORKERS) < most):
        function.do(workers.start, most)
    count = pool.acquire(Pool.STOP).equals(0).choose(pool.acquire(Pool.WORKERS), 0)
    number, is_taken = function.variable(Kind.I64, 0), function.variable(Kind.TRUTH, 0)
    with function.repeat(lambda: (number.now < count) & is_taken.now.equals(0)):
        worker = worker_of(function, number.now)
        number.set(number.now + 1)
        is_taken.set(function.call(Kind.TRUTH, workers.take, worker.pointer))
        with function.when(is_taken.now):
            pointers = worker.pointer.array(Kind.POINTER)
            pointers[Worker.BODY] = function.address_of(run_waiting)
            pointers[Worker.DATA] = entry
            worker[Worker.COUNT], worker[Worker.NUMBER] = 1, 0
            worker[Worker.FLOATS] = entry.array(Kind.I64)[_FLOATS]
            worker.release(Worker.STATE, function.number(Worker.OFFERED))
    with function.when(is_taken.now.equals(0)):
        mutex = lock(function, pool, Pool.MUTEX)
        _wake(function, entry, _IS_LET_IN)
        function.call(Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish()
    return function


def _wake(function: NativeFunction, entry: Number, state: int) -> None:
    """Tell the caller of an entry why it wakes up; under the mutex, because the entry ends then."""
    words = entry.array(Kind.I64)
    words.release(_STATE, function.number(state))
    function.call(Kind.I32, "pthread_cond_signal", words.address(_CONDITION))


def _at(address: Number) -> NativeArray:
    return address.cast("inttoptr", Kind.POINTER).array(Kind.I64)
