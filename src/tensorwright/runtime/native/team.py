"""Teams: threads that libgomp forks once, and that then share many parallel loops without a fork.

A fork and join through libgomp takes 0.7 us if its threads spin, and 40 us if they sleep.  Handing
a piece to a waiting thread of a team, and waiting until it is done, takes 0.1 us.

    tensorwright_team(main, context, threads)     forks, runs main(context) on the first thread
    tensorwright_parallel(body, data, threads, flags)
    tensorwright_thread_num()                     as GOMP_parallel, omp_get_thread_num and
    tensorwright_num_threads()                    omp_get_num_threads; inside main, other threads
                                                  of the team also run body

Object code is linked to these functions instead of libgomp's (`STAND_INS`), so kernels do not know
what divides their loops. Each thread of a team has a slot on the stack of the first thread; its
POSIX thread-specific value points to the slot:

    slot        epoch, body, data, count, number       written by the first thread, but number
    slot + 128  done                                   written by the thread itself
    team + 128  main, context, size                    (the first thread's slot is the team)

To give work, the first thread writes body, data and count into the slots of the others that take
part, and then raises their epochs. A thread that has done its piece copies the epoch to `done`. A
null body means the end. A count of 0 means outside of any loop; a loop inside another runs alone.

A waiting thread spins for about 50 us, and then yields its core between looks: if there are more
threads than cores, the thread for which it waits must be able to run.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from tensorwright.machine_code import Kind, Module, NativeFunction, Number

_SPINS = 1000
_PAUSES = {"x86-64": ("llvm.x86.sse2.pause", ()), "aarch64": ("llvm.aarch64.hint", (1,))}
"""LLVM's function that says that a thread waits, and its arguments."""

# The words of a slot, and those of the first slot that are of the team.
_SLOT_WORDS = 32
_EPOCH, _BODY, _DATA, _COUNT, _NUMBER = range(5)
_DONE = 16
_MAIN, _CONTEXT, _SIZE = 16, 17, 18
_WORD_BYTES = 8
_SLOT_ALIGN = 128

TEAM_SYMBOL = "tensorwright_team"
STAND_INS = {
    "GOMP_parallel": "tensorwright_parallel",
    "omp_get_thread_num": "tensorwright_thread_num",
    "omp_get_num_threads": "tensorwright_num_threads",
}
"""The functions that kernels call under these names."""

RENAMED = {
    "GOMP_parallel": "tensorwright.libgomp_parallel",
    "omp_get_thread_num": "tensorwright.libgomp_thread_num",
    "omp_get_num_threads": "tensorwright.libgomp_num_threads",
}
"""The names under which `team_ir` calls libgomp's functions, distinct from other libraries'."""

POSIX_SYMBOLS = ("pthread_getspecific", "pthread_setspecific", "sched_yield")

_TEAM_KINDS = (Kind.POINTER, Kind.POINTER, Kind.I32)
_PARALLEL_KINDS = (Kind.POINTER, Kind.POINTER, Kind.I32, Kind.I32)


def serial_ir() -> str:
    """The functions above as LLVM IR, for a process without libgomp."""
    module = Module()
    for symbol, kinds in (
        (TEAM_SYMBOL, _TEAM_KINDS),
        (STAND_INS["GOMP_parallel"], _PARALLEL_KINDS),
    ):
        function = NativeFunction(module, symbol, kinds)
        body, data, *_ = function.parameters
        function.do(body, data)
        function.finish()
    for name, answer in (("omp_get_thread_num", 0), ("omp_get_num_threads", 1)):
        function = NativeFunction(module, STAND_INS[name], (), Kind.I32)
        function.finish(function.number(answer, Kind.I32))
    return module.text()


def team_ir(arch: str) -> str:
    """The functions above as LLVM IR, for a process whose libgomp is linked as `RENAMED` says."""
    module = Module()
    wait = _write_wait(module, *_PAUSES[arch])
    give = _write_give(module)
    _write_team(module, _write_member(module, give, wait))
    _write_parallel(module, give, wait)
    _write_answer(module, "omp_get_thread_num", _NUMBER, 0)
    _write_answer(module, "omp_get_num_threads", _COUNT, 1)
    return module.text()


SLOT_KEY = "tensorwright.slot_key"
"""A symbol whose address is the number `slot_key()`, so that the code is that of any process."""


@lru_cache(maxsize=1)
def slot_key() -> int:
    """The process's key of the thread-specific value, which points to a thread's slot."""
    key = ctypes.c_uint64(0)  # pthread_key_t has 32 bits or 64
    error = ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None)
    if error:
        raise OSError(error, "no thread-specific value is free")
    return key.value


def _key(function: NativeFunction) -> Number:
    return function.outside(SLOT_KEY).cast("ptrtoint", Kind.I64)


def _own_slot(function: NativeFunction) -> Number:
    """The slot of the thread that runs a function; null outside of teams."""
    return function.call(Kind.POINTER, "pthread_getspecific", _key(function))


def _set_own_slot(function: NativeFunction, slot: Number) -> None:
    function.call(Kind.I32, "pthread_setspecific", _key(function), slot)


def _slot_of(team: Number, number: Number) -> Number:
    return team.array(Kind.I64).address(number * _SLOT_WORDS)


def _write_wait(module: Module, pause: str, hints: tuple[int, ...]) -> NativeFunction:
    """Wait until a word has a value."""
    function = NativeFunction(module, "await", (Kind.POINTER, Kind.I64), is_internal=True)
    word, value = function.parameters
    looks = function.variable(Kind.I64, 0)
    with function.repeat(lambda: word.array(Kind.I64).acquire().differs(value)):
        with function.when(looks.now < _SPINS) as otherwise:
            function.do(pause, *(function.number(each, Kind.I32) for each in hints))
            looks.set(looks.now + 1)
        with otherwise():
            function.call(Kind.I32, "sched_yield")
    function.finish()
    return function


def _write_give(module: Module) -> NativeFunction:
    """Give a piece of work to each thread but the first."""
    function = NativeFunction(
        module, "give", (Kind.POINTER, Kind.POINTER, Kind.POINTER, Kind.I64), is_internal=True
    )
    team, body, data, count = function.parameters
    with function.loop(count, first=1) as number:
        slot = _slot_of(team, number)
        slot.array(Kind.POINTER)[_BODY] = body
        slot.array(Kind.POINTER)[_DATA] = data
        words = slot.array(Kind.I64)
        words[_COUNT] = count
        words.release(_EPOCH, words[_EPOCH] + 1)
    function.finish()
    return function


def _write_team(module: Module, member: NativeFunction) -> None:
    """Fork a team, but in a team and for one thread."""
    function = NativeFunction(module, TEAM_SYMBOL, _TEAM_KINDS)
    main, context, threads = function.parameters
    is_free = _own_slot(function).equals(0)
    with function.when(is_free & (threads > 1)) as otherwise:
        words = threads.cast("zext", Kind.I64) * _SLOT_WORDS
        team = function.array(Kind.I64, words, _SLOT_ALIGN).pointer
        size, zero = words * _WORD_BYTES, function.number(0, Kind.I8)
        function.do("llvm.memset.p0.i64", team, zero, size, function.number(0, Kind.TRUTH))
        team.array(Kind.POINTER)[_MAIN] = main
        team.array(Kind.POINTER)[_CONTEXT] = context
        body, flags = function.address_of(member), function.number(0, Kind.I32)
        function.do(RENAMED["GOMP_parallel"], body, team, threads, flags)
    with otherwise():
        function.do(main, context)
    function.finish()


def _write_member(module: Module, give: NativeFunction, wait: NativeFunction) -> NativeFunction:
    """What each thread of a team does: the first runs its main function, the others follow."""
    function = NativeFunction(module, "member", (Kind.POINTER,), is_internal=True)
    (team,) = function.parameters
    number = function.call(Kind.I32, RENAMED["omp_get_thread_num"]).cast("zext", Kind.I64)
    slot = _slot_of(team, number)
    slot.array(Kind.I64)[_NUMBER] = number
    _set_own_slot(function, slot)
    with function.when(number.equals(0)) as otherwise:
        size = function.call(Kind.I32, RENAMED["omp_get_num_threads"]).cast("zext", Kind.I64)
        team.array(Kind.I64)[_SIZE] = size
        pointers = team.array(Kind.POINTER)
        function.do(pointers[_MAIN], pointers[_CONTEXT])
        no_body = function.number(0, Kind.POINTER)
        function.do(give, team, no_body, no_body, size)
    with otherwise():
        _follow(function, slot, wait)
    _set_own_slot(function, function.number(0, Kind.POINTER))
    function.finish()
    return function


def _follow(function: NativeFunction, slot: Number, wait: NativeFunction) -> None:
    """Do the pieces of work that a thread is given until there is no body."""
    epoch = function.variable(Kind.I64, 0)

    def has_work() -> Number:
        epoch.set(epoch.now + 1)
        function.do(wait, slot, epoch.now)
        return slot.array(Kind.POINTER)[_BODY].differs(0)

    with function.repeat(has_work):
        function.do(slot.array(Kind.POINTER)[_BODY], slot.array(Kind.POINTER)[_DATA])
        slot.array(Kind.I64).release(_DONE, epoch.now)


def _write_parallel(module: Module, give: NativeFunction, wait: NativeFunction) -> None:
    """Share out a loop: in the team around, or by libgomp where there is none."""
    function = NativeFunction(module, STAND_INS["GOMP_parallel"], _PARALLEL_KINDS)
    body, data, threads, _ = function.parameters
    slot = _own_slot(function)
    with function.when(slot.equals(0)) as otherwise:
        function.do(RENAMED["GOMP_parallel"], *function.parameters)
    with otherwise():
        words = slot.array(Kind.I64)
        before, asked, size = words[_COUNT], threads.cast("zext", Kind.I64), words[_SIZE]
        count = asked.equals(0).choose(size, asked.smaller(size))
        with function.when(before.equals(0) & (count > 1)) as alone:
            words[_COUNT] = count
            function.do(give, slot, body, data, count)
            function.do(body, data)
            with function.loop(count, first=1) as number:
                other = _slot_of(slot, number).array(Kind.I64)
                function.do(wait, other.address(_DONE), other[_EPOCH])
            words[_COUNT] = 0
        with alone():
            number = words[_NUMBER]
            words[_NUMBER] = 0
            words[_COUNT] = 1
            function.do(body, data)
            words[_NUMBER] = number
            words[_COUNT] = before
    function.finish()


def _write_answer(module: Module, name: str, word: int, least: int) -> None:
    """A function that answers with a word of the thread's slot, at least with a number."""
    function = NativeFunction(module, STAND_INS[name], (), Kind.I32)
    answer = function.variable(Kind.I32, least)
    slot = _own_slot(function)
    with function.when(slot.equals(0)) as otherwise:
        answer.set(function.call(Kind.I32, RENAMED[name]))
    with otherwise():
        answer.set(slot.array(Kind.I64)[word].larger(least).cast("trunc", Kind.I32))
    function.finish(answer.now)
