"""Leases: which threads of the pool help which call.

A call that is alone may have a worker for each other core; calls that run at once share the cores
evenly. A worker stands still if another process has its core, and its call then waits. That is
worth it for a worker that has run for much longer than it stood. Another one rests: calls do
without it, each time longer than before, and then try it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.machine_code import Kind, Module, NativeArray, NativeFunction, Number
from tensorwright.runtime.native.pool.clock import Clock
from tensorwright.runtime.native.pool.layout import LEASE, Pool, Worker, lock, pool_of, worker_of

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

    start: NativeFunction
    take: NativeFunction


def workers_of(team: Number) -> NativeArray:
    """The addresses of the workers of a team; number 0 is the call itself, and has none."""
    return team.array(Kind.POINTER).part(FIRST_WORKER)


def share_of(function: NativeFunction, active: Number) -> Number:
    """How many threads each call may have where so many run at once."""
    cores = pool_of(function).acquire(Pool.CORES)
    return cores.apply("udiv", active.larger(1)).larger(1)


def release(function: NativeFunction, worker: NativeArray) -> None:
    """Give a worker back, which is idle."""
    worker.release(Worker.OWNER, function.number(LEASE.FREE))


def write_workers(module: Module, serve: NativeFunction) -> Workers:
    """Both functions.

    serve   what the threads of workers run
    """
    return Workers(_write_start(module, serve), _write_take(module))


def write_lease(module: Module, clock: Clock, workers: Workers) -> NativeFunction:
    """lease(team, threads): take as many free workers as its share of the cores allows; threads
    that are missing are started.
    """
    kinds = (Kind.POINTER, Kind.I64)
    function = NativeFunction(module, "lease", kinds, is_internal=True)
    team, threads = function.parameters
    pool, words = pool_of(function), team.array(Kind.I64)
    active, now = function.variable(Kind.I64, pool.acquire(Pool.ACTIVE)), clock.now(function)
    with function.when(now < pool.acquire(Pool.CROWD_UNTIL)):
        active.set(active.now.larger(pool.acquire(Pool.CROWD)))
    most = share_of(function, active.now).smaller(threads)
    number = function.variable(Kind.I64, 0)
    with function.when(pool.acquire(Pool.WORKERS) + 1 < most):
        function.do(workers.start, most - 1)
    count = pool.acquire(Pool.WORKERS)
    with function.repeat(lambda: (number.now < count) & (words[SIZE] < most)):
        worker = worker_of(function, number.now)
        number.set(number.now + 1)
        is_rested = worker.acquire(Worker.REST_UNTIL) < now
        with (
            function.when(is_rested),
            function.when(function.call(Kind.TRUTH, workers.take, worker.pointer)),
        ):
            workers_of(team)[words[SIZE]] = worker.pointer
            words[SIZE] = words[SIZE] + 1
    function.finish()
    return function


def write_pay(module: Module, clock: Clock) -> NativeFunction:
    """pay(worker, stood): let a worker pay for the nanoseconds in which it stood still; one that
    cannot must rest, which is the answer: it is leased to nobody for a while.
    """
    kinds = (Kind.POINTER, Kind.I64)
    function = NativeFunction(module, "pay", kinds, Kind.TRUTH, is_internal=True)
    worker, stood = function.parameters[0].array(Kind.I64), function.parameters[1]
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


def _write_start(module: Module, serve: NativeFunction) -> NativeFunction:
    """`Workers.start`."""
    function = NativeFunction(module, "start", (Kind.I64,), is_internal=True)
    pool, thread = pool_of(function), function.array(Kind.POINTER, 1)
    mutex, null = lock(function, pool, Pool.MUTEX), function.number(0, Kind.POINTER)
    most = function.parameters[0].smaller(pool[Pool.MOST])
    with function.repeat(lambda: pool[Pool.WORKERS] < most.smaller(pool[Pool.MOST])):
        worker = worker_of(function, pool[Pool.WORKERS])
        main = function.address_of(serve)
        pool.count(Pool.LIVE, 1)
        error = function.call(
            Kind.I32, "pthread_create", thread.pointer, null, main, worker.pointer
        )
        with function.when(error.equals(0)) as otherwise:
            function.call(Kind.I32, "pthread_detach", thread[0])
            pool.release(Pool.WORKERS, pool[Pool.WORKERS] + 1)
        with otherwise():
            pool.count(Pool.LIVE, -1)
            pool[Pool.MOST] = pool[Pool.WORKERS]
    function.call(Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish()
    return function


def _write_take(module: Module) -> NativeFunction:
    """`Workers.take`; the thread need not have begun to run when this returns."""
    kinds = (Kind.POINTER,)
    function = NativeFunction(module, "take", kinds, Kind.TRUTH, is_internal=True)
    worker = function.parameters[0].array(Kind.I64)
    is_taken = function.variable(Kind.TRUTH, 0)
    with function.when(worker.acquire(Worker.OWNER).equals(LEASE.FREE)):
        is_taken.set(worker.exchange(Worker.OWNER, LEASE.FREE, LEASE.CALL))
    with function.when(is_taken.now & worker.acquire(Worker.STATE).equals(Worker.ASLEEP)):
        mutex = lock(function, worker, Worker.MUTEX)
        worker.release(Worker.STATE, function.number(Worker.IDLE))
        function.call(Kind.I32, "pthread_cond_signal", worker.address(Worker.CONDITION))
        function.call(Kind.I32, "pthread_mutex_unlock", mutex)
    function.finish(is_taken.now)
    return function
