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

Leases: which threads of the pool help which call.

A call that is alone may have a worker for each other core; calls that run at once share the cores
evenly. A worker stands still if another process has its core, and its call then waits. That is
worth it for a worker that has run for much longer than it stood. Another one rests: calls do
without it, each time longer than before, and then try it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright import machine_code
from tensorwright.runtime.native.pool.layout import (
    LEASE,
    Clock,
    Pool,
    Worker,
    lock,
    pool_of,
    worker_of,
)
from tensorwright.runtime.native.pool.serving import float_state, set_float_state

SIZE, FIRST_WORKER = 5, 8
"""Words of a team's slot: how many threads it has; the address of its worker n at FIRST_WORKER + n,
from n = 1 on."""

FIRST_REST_NS, LONGEST_REST_NS = 10_000_000, 1_600_000_000
_LONGER = 4  # times as long as the rest before
_PRICE = 16  # how much time a worker must have run for the time that it stands still
# A call on two threads is 1.2 times as long as on one thread, which takes T, if the worker stands
# for 0.7 T in it. For that the worker must have run for 11 T, in 22 calls: under 5 % are so long.
_SAVINGS_NS = 100_000_000  # of time that it has run, from which it can pay


@dataclass(frozen=True, slots=True)
class Workers:
    """Functions that the pool's threads are had by.

    start(count)     see to it that there are so many workers; fewer if the system has no more
    take(worker)     lease a worker, and wake it if it sleeps; whether it was free
    """

    start: machine_code.NativeFunction
    take: machine_code.NativeFunction


def workers_of(team: machine_code.Number) -> machine_code.NativeArray:
    """The addresses of the workers of a team; number 0 is the call itself, and has none."""
    return team.array(machine_code.Kind.POINTER).part(FIRST_WORKER)


def share_of(
    function: machine_code.NativeFunction, active: machine_code.Number
) -> machine_code.Number:
    """How many threads each call may have where so many run at once."""
    cores = pool_of(function).acquire(Pool.CORES)
    return cores.apply("udiv", active.larger(1)).larger(1)


def release(function: machine_code.NativeFunction, worker: machine_code.NativeArray) -> None:
    """Give a worker back, which is idle."""
    worker.release(Worker.OWNER, function.number(LEASE.FREE))


def write_workers(module: machine_code.Module, serve: machine_code.NativeFunction) -> Workers:
    """Both functions.

    serve   what the threads of workers run
    """
    return Workers(_write_start(module, serve), _write_take(module))


def write_lease(
    module: machine_code.Module, clock: Clock, workers: Workers
) -> machine_code.NativeFunction:
    """lease(team, threads): take as many free workers as its share of the cores allows; threads
    that are missing are started.
    """
    kinds = (machine_code.Kind.POINTER, machine_code.Kind.I64)
    function = machine_code.NativeFunction(module, "lease", kinds, is_internal=True)
    team, threads = function.parameters
    pool, words = pool_of(function), team.array(machine_code.Kind.I64)
    active, now = (
        function.variable(machine_code.Kind.I64, pool.acquire(Pool.ACTIVE)),
        clock.now(function),
    )
    with function.when(now < pool.acquire(Pool.CROWD_UNTIL)):
        active.set(active.now.larger(pool.acquire(Pool.CROWD)))
    most = share_of(function, active.now).smaller(threads)
    number = function.variable(machine_code.Kind.I64, 0)
    with function.when(pool.acquire(Pool.WORKERS) + 1 < most):
        function.do(workers.start, most - 1)
    count = pool.acquire(Pool.WORKERS)
    with function.repeat(lambda: (number.now < count) & (words[SIZE] < most)):
        worker = worker_of(function, number.now)
        number.set(number.now + 1)
        is_rested = worker.acquire(Worker.REST_UNTIL) < now
        with (
            function.when(is_rested),
            function.when(function.call(machine_code.Kind.TRUTH, workers.take, worker.pointer)),
        ):
            workers_of(team)[words[SIZE]] = worker.pointer
            words[SIZE] = words[SIZE] + 1
    function.finish()
    return function


def write_pay(module: machine_code.Module, clock: Clock) -> machine_code.NativeFunction:
    """pay(worker, stood): let a worker pay for the nanoseconds in which it stood still; one that
    cannot must rest, which is the answer: it is leased to nobody for a while.
    """
    kinds = (machine_code.Kind.POINTER, machine_code.Kind.I64)
    function = machine_code.NativeFunction(
        module, "pay", kinds, machine_code.Kind.TRUTH, is_internal=True
    )
    worker, stood = function.parameters[0].array(machine_code.Kind.I64), function.parameters[1]
    ran = clock.of_thread(function, worker[Worker.CLOCK])
    before = worker[Worker.PAID].smaller(ran)  # it is larger if the thread had no clock of its own
    paid = before.larger(ran - _SAVINGS_NS) + stood * _PRICE
    must_rest = paid > ran
    longer = (worker[Worker.REST] * _LONGER).larger(FIRST_REST_NS).smaller(LONGEST_REST_NS)
    length = must_rest.choose(longer, 0)
    worker[Worker.PAID] = paid.smaller(ran)
    worker[Worker.REST], worker[Worker.MISSED] = length, 0
    worker.release(Worker.REST_UNTIL, clock.now(function) + length)
    function.finish(must_rest)
    return function


def _write_start(
    module: machine_code.Module, serve: machine_code.NativeFunction
) -> machine_code.NativeFunction:
    """`Workers.start`."""
    function = machine_code.NativeFunction(
        module, "start", (machine_code.Kind.I64,), is_internal=True
    )
    pool, thread = pool_of(function), function.array(machine_code.Kind.POINTER, 1)
    mutex, null = lock(function, pool, Pool.MUTEX), function.number(0, machine_code.Kind.POINTER)
    most = function.parameters[0].smaller(pool[Pool.MOST])
    with function.repeat(lambda: pool[Pool.WORKERS] < most.smaller(pool[Pool.MOST])):
        worker = worker_of(function, pool[Pool.WORKERS])
        main = function.address_of(serve)
        pool.count(Pool.LIVE, 1)
        error = function.call(
            machine_code.Kind.I32, "pthread_create", thread.pointer, null, main, worker.pointer
        )
        with function.when(error.equals(0)) as otherwise:
            function.call(machine_code.Kind.I32, "pthread_detach", thread[0])
            pool.release(Pool.WORKERS, pool[Pool.WORKERS] + 1)
        with otherwise():
            pool.count(Pool.LIVE, -1)
            pool[Pool.MOST] = pool[Pool.WORKERS]
    function.call(machine_code.Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish()
    return function


def _write_take(module: machine_code.Module) -> machine_code.NativeFunction:
    """`Workers.take`; the thread need not have begun to run when this returns."""
    kinds = (machine_code.Kind.POINTER,)
    function = machine_code.NativeFunction(
        module, "take", kinds, machine_code.Kind.TRUTH, is_internal=True
    )
    worker = function.parameters[0].array(machine_code.Kind.I64)
    is_taken = function.variable(machine_code.Kind.TRUTH, 0)
    with function.when(worker.acquire(Worker.OWNER).equals(LEASE.FREE)):
        is_taken.set(worker.exchange(Worker.OWNER, LEASE.FREE, LEASE.CALL))
    with function.when(is_taken.now & worker.acquire(Worker.STATE).equals(Worker.ASLEEP)):
        mutex = lock(function, worker, Worker.MUTEX)
        worker.release(Worker.STATE, function.number(Worker.IDLE))
        function.call(
            machine_code.Kind.I32, "pthread_cond_signal", worker.address(Worker.CONDITION)
        )
        function.call(machine_code.Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish(is_taken.now)
    return function


ADMIT_SYMBOL = "tensorwright_admit"

CROWD_NS = 5_000_000
"""How long calls expect other calls after they last met one."""

_BODY, _CONTEXT, _NEXT, _STATE, _FLOATS, _CONDITION = range(6)
_ENTRY_WORDS = 16
"""The words of an entry of the queue, which lies on the stack of the thread that waits."""

_WAITS, _IS_LET_IN, _IS_DONE = range(3)


def write_gate(module: machine_code.Module, clock: Clock, workers: Workers, arch: str) -> None:
    """The function above."""
    wait, pass_on = _write_wait(module, arch), _write_pass_on(module)
    hand_over = _write_hand_over(module, workers, _write_run_waiting(module, pass_on, arch))
    function = machine_code.NativeFunction(
        module, ADMIT_SYMBOL, (machine_code.Kind.POINTER, machine_code.Kind.POINTER)
    )
    body, context = function.parameters
    pool, is_done = pool_of(function), function.variable(machine_code.Kind.TRUTH, 0)
    count = pool.count(Pool.ACTIVE, 1) + 1
    with function.when(count > 1):
        now = clock.now(function)
        is_past = now > pool.acquire(Pool.CROWD_UNTIL)
        with function.when(is_past | pool.acquire(Pool.CROWD).test("sle", count)):
            pool.release(Pool.CROWD, count)
            pool.release(Pool.CROWD_UNTIL, now + CROWD_NS)
        with function.when(count > pool.acquire(Pool.CORES)):
            is_done.set(function.call(machine_code.Kind.TRUTH, wait, body, context))
    with function.when(is_done.now.equals(0)):
        function.do(body, context)
        with function.when(_is_awaited(pool)):
            null = function.number(0, machine_code.Kind.POINTER)
            following = function.call(machine_code.Kind.POINTER, pass_on, null, function.number(1))
            with function.when(following.differs(0)):
                function.do(hand_over, following)
    function.finish()


def _is_awaited(pool: machine_code.NativeArray) -> machine_code.Number:
    """Count one call less; returns whether another call waits."""
    return pool.count(Pool.ACTIVE, -1) > pool.acquire(Pool.CORES)


def _write_wait(module: machine_code.Module, arch: str) -> machine_code.NativeFunction:
    """wait(body, context): take a pass, or wait in the queue; whether a thread ran the call."""
    kinds = (machine_code.Kind.POINTER, machine_code.Kind.POINTER)
    function = machine_code.NativeFunction(
        module, "wait_at_gate", kinds, machine_code.Kind.TRUTH, is_internal=True
    )
    pool = pool_of(function)
    entry = function.array(machine_code.Kind.I64, _ENTRY_WORDS)
    pointers = entry.pointer.array(machine_code.Kind.POINTER)
    pointers[_BODY], pointers[_CONTEXT] = function.parameters
    entry[_NEXT], entry[_STATE], entry[_FLOATS] = 0, _WAITS, float_state(function, arch)
    condition = entry.address(_CONDITION)
    null = function.number(0, machine_code.Kind.POINTER)
    function.call(machine_code.Kind.I32, "pthread_cond_init", condition, null)
    mutex = lock(function, pool, Pool.MUTEX)
    passes = pool[Pool.PASSES]
    with function.when(passes > 0) as otherwise:
        pool[Pool.PASSES] = passes - 1
    with otherwise():
        own = entry.pointer.cast("ptrtoint", machine_code.Kind.I64)
        with function.when(pool[Pool.FIRST].equals(0)) as behind:
            pool[Pool.FIRST] = own
        with behind():
            _at(pool[Pool.LAST])[_NEXT] = own
        pool[Pool.LAST] = own
        with function.repeat(lambda: entry.acquire(_STATE).equals(_WAITS)):
            function.call(machine_code.Kind.I32, "pthread_cond_wait", condition, mutex)
    function.call(machine_code.Kind.I32, "pthread_mutex_unlock", mutex)
    function.call(machine_code.Kind.I32, "pthread_cond_destroy", condition)
    function.finish(entry.acquire(_STATE).equals(_IS_DONE))
    return function


def _write_pass_on(module: machine_code.Module) -> machine_code.NativeFunction:
    """pass_on(done, wanted): report a done call, and take the next one.

    If `done` is given, that call of the queue is done. If `wanted`, the first call is taken out of
    the queue; if the queue is empty, a pass is left for a call on its way.
    """
    kinds = (machine_code.Kind.POINTER, machine_code.Kind.I64)
    function = machine_code.NativeFunction(
        module, "pass_on", kinds, machine_code.Kind.POINTER, is_internal=True
    )
    done, wanted = function.parameters
    pool, first = pool_of(function), function.variable(machine_code.Kind.I64, 0)
    mutex = lock(function, pool, Pool.MUTEX)
    with function.when(done.differs(0)):
        _wake(function, done, _IS_DONE)
    with function.when(wanted.differs(0)):
        first.set(pool[Pool.FIRST])
        with function.when(first.now.equals(0)) as otherwise:
            pool[Pool.PASSES] = pool[Pool.PASSES] + 1
        with otherwise():
            pool[Pool.FIRST] = _at(first.now)[_NEXT]
    function.call(machine_code.Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish(first.now.cast("inttoptr", machine_code.Kind.POINTER))
    return function


def _write_run_waiting(
    module: machine_code.Module, pass_on: machine_code.NativeFunction, arch: str
) -> machine_code.NativeFunction:
    """run_waiting(entry): on a thread of the pool, run a call, then others while calls wait."""
    function = machine_code.NativeFunction(
        module, "run_waiting", (machine_code.Kind.POINTER,), is_internal=True
    )
    pool, entry = (
        pool_of(function),
        function.variable(machine_code.Kind.POINTER, function.parameters[0]),
    )
    with function.repeat(lambda: entry.now.differs(0)):
        pointers = entry.now.array(machine_code.Kind.POINTER)
        set_float_state(function, arch, entry.now.array(machine_code.Kind.I64)[_FLOATS])
        function.do(pointers[_BODY], pointers[_CONTEXT])
        wanted = _is_awaited(pool).cast("zext", machine_code.Kind.I64)
        entry.set(function.call(machine_code.Kind.POINTER, pass_on, entry.now, wanted))
    function.finish()
    return function


def _write_hand_over(
    module: machine_code.Module, workers: Workers, run_waiting: machine_code.NativeFunction
) -> machine_code.NativeFunction:
    """hand_over(entry): give a call to a free thread of the pool; if none is free, let it in."""
    function = machine_code.NativeFunction(
        module, "hand_over", (machine_code.Kind.POINTER,), is_internal=True
    )
    (entry,), pool = function.parameters, pool_of(function)
    most = pool.acquire(Pool.MOST)
    with function.when(pool.acquire(Pool.WORKERS) < most):
        function.do(workers.start, most)
    count = pool.acquire(Pool.STOP).equals(0).choose(pool.acquire(Pool.WORKERS), 0)
    number, is_taken = (
        function.variable(machine_code.Kind.I64, 0),
        function.variable(machine_code.Kind.TRUTH, 0),
    )
    with function.repeat(lambda: (number.now < count) & is_taken.now.equals(0)):
        worker = worker_of(function, number.now)
        number.set(number.now + 1)
        is_taken.set(function.call(machine_code.Kind.TRUTH, workers.take, worker.pointer))
        with function.when(is_taken.now):
            pointers = worker.pointer.array(machine_code.Kind.POINTER)
            pointers[Worker.BODY] = function.address_of(run_waiting)
            pointers[Worker.DATA] = entry
            worker[Worker.COUNT], worker[Worker.NUMBER] = 1, 0
            worker[Worker.FLOATS] = entry.array(machine_code.Kind.I64)[_FLOATS]
            worker.release(Worker.STATE, function.number(Worker.OFFERED))
    with function.when(is_taken.now.equals(0)):
        mutex = lock(function, pool, Pool.MUTEX)
        _wake(function, entry, _IS_LET_IN)
        function.call(machine_code.Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish()
    return function


def _wake(function: machine_code.NativeFunction, entry: machine_code.Number, state: int) -> None:
    """Tell the caller of an entry why it wakes up; under the mutex, because the entry ends then."""
    words = entry.array(machine_code.Kind.I64)
    words.release(_STATE, function.number(state))
    function.call(machine_code.Kind.I32, "pthread_cond_signal", words.address(_CONDITION))


def _at(address: machine_code.Number) -> machine_code.NativeArray:
    return address.cast("inttoptr", machine_code.Kind.POINTER).array(machine_code.Kind.I64)
