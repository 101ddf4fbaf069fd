"""Teams: a call and its workers, which share many parallel loops.

    tensorwright_team(main, context, threads)     leases workers, runs main(context)
    tensorwright_parallel(body, data, threads, flags)
    tensorwright_thread_num()                     as GOMP_parallel, omp_get_thread_num and
    tensorwright_num_threads()                    omp_get_num_threads
    tensorwright_order(order)                     how the loops that follow are done in the team
                                                  around (`serving.write_do_piece`), if there is one

Object code is linked to these functions instead of libgomp's, so kernels do not know what divides
their loops. A loop has as many pieces as the team has threads, at most as many as are asked for. A
kernel's result does not depend on how many there are. The call offers a piece to each worker, does
its own, takes back and does those that no worker has begun, and waits for the others. So the pieces
of a loop must not wait for each other. Who waits for a thread must not assume that it runs: another
process can hold its core for milliseconds.

Each thread has a slot: a worker the first words of its memory, a call some words on its stack. Its
POSIX thread-specific value points to it. A count of 0 means outside of any loop; a loop inside
another runs alone. A loop outside of teams has a team for itself.

The native functions of the pool, as one module of LLVM IR.
"""

from __future__ import annotations

from tensorwright import machine_code
from tensorwright.runtime.native.pool import gate, serving
from tensorwright.runtime.native.pool.layout import (
    Clock,
    Pool,
    Worker,
    own_slot,
    pool_of,
    set_own_slot,
)

TEAM_SYMBOL, ORDER_SYMBOL = "tensorwright_team", "tensorwright_order"
STAND_INS = {
    "GOMP_parallel": "tensorwright_parallel",
    "omp_get_thread_num": "tensorwright_thread_num",
    "omp_get_num_threads": "tensorwright_num_threads",
}
"""The functions that kernels call under these names."""

_TEAM_KINDS = (machine_code.Kind.POINTER, machine_code.Kind.POINTER, machine_code.Kind.I32)
_PARALLEL_KINDS = (
    machine_code.Kind.POINTER,
    machine_code.Kind.POINTER,
    machine_code.Kind.I32,
    machine_code.Kind.I32,
)
_SLOT_ALIGN = 128
_PATIENCE_NS = 200_000  # after which a worker that stands still in a piece pays
_LATE_NS = 500_000  # after which one that begins with no piece pays; waking takes up to 100 us


def write_teams(
    module: machine_code.Module,
    clock: Clock,
    workers: gate.Workers,
    do_piece: machine_code.NativeFunction,
    arch: str,
) -> None:
    """The functions above."""
    team = _write_team(module, gate.write_lease(module, clock, workers))
    share_out = _write_share_out(module, clock, do_piece, arch)
    parallel = machine_code.NativeFunction(module, STAND_INS["GOMP_parallel"], _PARALLEL_KINDS)
    body, data, threads, _ = parallel.parameters
    with parallel.when(own_slot(parallel).differs(0)) as outside:
        parallel.do(share_out, body, data, threads)
    with outside():
        with parallel.when(threads > 1) as alone:
            loop = parallel.array(machine_code.Kind.POINTER, 3)
            loop[0], loop[1] = body, data
            loop.pointer.array(machine_code.Kind.I64)[2] = threads.cast(
                "zext", machine_code.Kind.I64
            )
            main = parallel.address_of(_write_main(module, share_out))
            parallel.do(team, main, loop.pointer, threads)
        with alone():
            parallel.do(body, data)
    parallel.finish()
    _write_answer(module, "omp_get_thread_num", Worker.NUMBER, 0)
    _write_answer(module, "omp_get_num_threads", Worker.COUNT, 1)
    order = machine_code.NativeFunction(module, ORDER_SYMBOL, (machine_code.Kind.I64,))
    slot = own_slot(order)
    with order.when(slot.differs(0)):
        slot.array(machine_code.Kind.I64)[Worker.ORDER] = order.parameters[0]
    order.finish()


def _write_team(
    module: machine_code.Module, lease: machine_code.NativeFunction
) -> machine_code.NativeFunction:
    """Lease workers for a while, but in a team and for one thread."""
    function = machine_code.NativeFunction(module, TEAM_SYMBOL, _TEAM_KINDS)
    main, context, threads = function.parameters
    with function.when(own_slot(function).equals(0) & (threads > 1)) as otherwise:
        most = threads.cast("zext", machine_code.Kind.I64)
        team = function.array(machine_code.Kind.I64, most + gate.FIRST_WORKER, _SLOT_ALIGN)
        team[Worker.COUNT] = team[Worker.NUMBER] = team[Worker.ORDER] = 0
        team[gate.SIZE] = 1
        function.do(lease, team.pointer, most)
        set_own_slot(function, team.pointer)
        function.do(main, context)
        set_own_slot(function, function.number(0, machine_code.Kind.POINTER))
        _release_from(function, team, function.number(1))
    with otherwise():
        function.do(main, context)
    function.finish()
    return function


def _release_from(
    function: machine_code.NativeFunction,
    team: machine_code.NativeArray,
    first: machine_code.Number,
) -> None:
    """Give back the workers of a team from a number on."""
    with function.loop(team[gate.SIZE], first) as number:
        gate.release(function, gate.workers_of(team.pointer)[number].array(machine_code.Kind.I64))
    team[gate.SIZE] = first


def _write_main(
    module: machine_code.Module, share_out: machine_code.NativeFunction
) -> machine_code.NativeFunction:
    """What the team of one loop does."""
    function = machine_code.NativeFunction(
        module, "one_loop", (machine_code.Kind.POINTER,), is_internal=True
    )
    loop = function.parameters[0]
    body, data = (loop.array(machine_code.Kind.POINTER)[n] for n in range(2))
    threads = loop.array(machine_code.Kind.I64)[2].cast("trunc", machine_code.Kind.I32)
    function.do(share_out, body, data, threads)
    function.finish()
    return function


def _write_share_out(
    module: machine_code.Module, clock: Clock, do_piece: machine_code.NativeFunction, arch: str
) -> machine_code.NativeFunction:
    """Do a loop with the workers of the team around; alone inside of another loop."""
    offer = _write_offer(module, arch)
    finish = _write_finish(module, clock, do_piece, arch)
    kinds = (machine_code.Kind.POINTER, machine_code.Kind.POINTER, machine_code.Kind.I32)
    function = machine_code.NativeFunction(module, "share_out", kinds, is_internal=True)
    body, data, threads = function.parameters
    slot = own_slot(function)
    words = slot.array(machine_code.Kind.I64)
    before = words[Worker.COUNT]
    count = function.variable(machine_code.Kind.I64, 1)
    with function.when(before.equals(0)):
        _shrink(function, words)
        asked, size = threads.cast("zext", machine_code.Kind.I64), words[gate.SIZE]
        count.set(asked.equals(0).choose(size, asked.smaller(size)))
    with function.when(count.now > 1) as alone:
        words[Worker.COUNT] = count.now
        function.do(offer, slot, body, data)
        function.do(do_piece, slot, body, data, words[Worker.ORDER])
        function.do(finish, slot, body, data)
        words[Worker.COUNT] = 0
    with alone():
        number = words[Worker.NUMBER]
        words[Worker.NUMBER] = 0
        words[Worker.COUNT] = 1
        is_outside, in_order = before.equals(0), function.number(0)
        function.do(do_piece, slot, body, data, is_outside.choose(words[Worker.ORDER], in_order))
        words[Worker.NUMBER] = number
        words[Worker.COUNT] = before
    function.finish()
    return function


def _shrink(function: machine_code.NativeFunction, team: machine_code.NativeArray) -> None:
    """Give back the workers that other calls have come to need."""
    active = pool_of(function).acquire(Pool.ACTIVE)
    with function.when((active > 1) & (team[gate.SIZE] > 1)):
        share = gate.share_of(function, active)
        with function.when(share < team[gate.SIZE]):
            _release_from(function, team, share)


def _write_offer(module: machine_code.Module, arch: str) -> machine_code.NativeFunction:
    """Offer each worker a piece."""
    kinds = (machine_code.Kind.POINTER, machine_code.Kind.POINTER, machine_code.Kind.POINTER)
    function = machine_code.NativeFunction(module, "offer", kinds, is_internal=True)
    team, body, data = function.parameters
    count, floats = (
        team.array(machine_code.Kind.I64)[Worker.COUNT],
        serving.float_state(function, arch),
    )
    with function.loop(count, first=1) as number:
        worker = gate.workers_of(team)[number]
        pointers, words = (
            worker.array(machine_code.Kind.POINTER),
            worker.array(machine_code.Kind.I64),
        )
        pointers[Worker.BODY], pointers[Worker.DATA] = body, data
        words[Worker.COUNT], words[Worker.NUMBER], words[Worker.FLOATS] = count, number, floats
        words[Worker.ORDER] = team.array(machine_code.Kind.I64)[Worker.ORDER]
        words.release(Worker.STATE, function.number(Worker.OFFERED))
    function.finish()
    return function


def _write_finish(
    module: machine_code.Module, clock: Clock, do_piece: machine_code.NativeFunction, arch: str
) -> machine_code.NativeFunction:
    """Do the pieces that no worker has begun; wait for the others, and drop who stood still."""
    wait, pay = _write_wait(module, clock, arch), gate.write_pay(module, clock)
    miss = _write_miss(module, clock)
    kinds = (machine_code.Kind.POINTER, machine_code.Kind.POINTER, machine_code.Kind.POINTER)
    function = machine_code.NativeFunction(module, "finish", kinds, is_internal=True)
    team, body, data = function.parameters
    own, workers = team.array(machine_code.Kind.I64), gate.workers_of(team)
    count = own[Worker.COUNT]
    with function.loop(count, first=1) as number:
        worker = workers[number].array(machine_code.Kind.I64)
        is_back = function.variable(machine_code.Kind.TRUTH, 0)
        with function.when(worker.acquire(Worker.STATE).equals(Worker.OFFERED)):
            is_back.set(worker.exchange(Worker.STATE, Worker.OFFERED, Worker.IDLE))
        with function.when(is_back.now) as begun:
            own[Worker.NUMBER] = number
            function.do(do_piece, team, body, data, own[Worker.ORDER])
            own[Worker.NUMBER] = 0
            function.do(miss, worker.pointer)
        with begun(), function.when(worker[Worker.MISSED].differs(0)):
            worker[Worker.MISSED] = 0
    with function.loop(count, first=1) as position:
        number = count - position  # the last one first: it takes the place of one that is dropped
        worker = workers[number].array(machine_code.Kind.I64)
        stood = function.variable(machine_code.Kind.I64, function.number(0) - worker[Worker.MISSED])
        with function.when(worker.acquire(Worker.STATE).differs(Worker.IDLE)):
            stood.set(function.call(machine_code.Kind.I64, wait, worker.pointer))
        with (
            function.when(stood.now > _PATIENCE_NS),
            function.when(function.call(machine_code.Kind.TRUTH, pay, worker.pointer, stood.now)),
        ):
            gate.release(function, worker)
            last = own[gate.SIZE] - 1
            workers[number] = workers[last]
            own[gate.SIZE] = last
    function.finish()
    return function


def _write_miss(module: machine_code.Module, clock: Clock) -> machine_code.NativeFunction:
    """Note when a worker first did not begin with a piece. If it has missed pieces for too long,
    note for how long, as a negative number. A miss long after the last one is a first one.
    """
    function = machine_code.NativeFunction(
        module, "miss", (machine_code.Kind.POINTER,), is_internal=True
    )
    worker = function.parameters[0].array(machine_code.Kind.I64)
    first, last, now = worker[Worker.MISSED], worker[Worker.MISSED_LAST], clock.now(function)
    worker[Worker.MISSED_LAST] = now
    with function.when(first.equals(0) | (now > last + _LATE_NS)) as again:
        worker[Worker.MISSED] = now
    with again(), function.when(now > first + _LATE_NS):
        worker[Worker.MISSED] = first - now
    function.finish()
    return function


def _write_wait(
    module: machine_code.Module, clock: Clock, arch: str
) -> machine_code.NativeFunction:
    """Wait until a worker has done its piece; how long it did not run meanwhile, in nanoseconds."""
    function = machine_code.NativeFunction(
        module, "await", (machine_code.Kind.POINTER,), machine_code.Kind.I64, is_internal=True
    )
    worker = function.parameters[0].array(machine_code.Kind.I64)
    looks, began, ran = (function.variable(machine_code.Kind.I64, 0) for _ in range(3))
    with function.repeat(lambda: worker.acquire(Worker.STATE).differs(Worker.IDLE)):
        with function.when(looks.now < serving.SPINS) as long:
            serving.pause(function, arch)
            looks.set(looks.now + 1)
        with long():
            with function.when(began.now.equals(0)):
                began.set(clock.now(function))
                ran.set(clock.of_thread(function, worker[Worker.CLOCK]))
            function.call(machine_code.Kind.I32, "sched_yield")
    stood = function.variable(machine_code.Kind.I64, 0)
    with function.when(began.now.differs(0)):
        waited = clock.now(function) - began.now
        with function.when(waited > _PATIENCE_NS):
            running = clock.of_thread(function, worker[Worker.CLOCK]) - ran.now
            stood.set(waited - running)
    function.finish(stood.now)
    return function


def _write_answer(module: machine_code.Module, name: str, word: int, least: int) -> None:
    """A function that answers with a word of the thread's slot, at least with a number."""
    function = machine_code.NativeFunction(module, STAND_INS[name], (), machine_code.Kind.I32)
    answer = function.variable(machine_code.Kind.I32, least)
    slot = own_slot(function)
    with function.when(slot.differs(0)):
        answer.set(
            slot.array(machine_code.Kind.I64)[word]
            .larger(least)
            .cast("trunc", machine_code.Kind.I32)
        )
    function.finish(answer.now)


EXPORTS = (TEAM_SYMBOL, ORDER_SYMBOL, *STAND_INS.values(), gate.ADMIT_SYMBOL)

POSIX_SYMBOLS = (
    *("pthread_getspecific", "pthread_setspecific", "pthread_mutex_lock", "pthread_mutex_unlock"),
    *("pthread_cond_init", "pthread_cond_destroy", "pthread_cond_wait", "pthread_cond_signal"),
    *("pthread_create", "pthread_detach", "pthread_self", "pthread_getcpuclockid"),
    *("sched_yield", "sched_setaffinity", "clock_gettime"),
)
"""The functions that they call."""


def pool_ir(arch: str) -> str:
    """The functions for an architecture; they are linked with `POOL_SYMBOL`."""
    module = machine_code.Module()
    clock = Clock(module)
    do_piece = serving.write_do_piece(module)
    workers = gate.write_workers(module, serving.write_serve(module, clock, do_piece, arch))
    gate.write_gate(module, clock, workers, arch)
    write_teams(module, clock, workers, do_piece, arch)
    return module.text()
