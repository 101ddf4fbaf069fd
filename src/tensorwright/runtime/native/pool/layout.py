"""The memory of the pool: one block a process, which is never freed.

Each group of words is on cache lines of its own; the comments say who writes them.

    Pool      cores, key, stop, mask             Python, when the process starts and ends
              workers, most, live                when threads start and end
              active                             each call: those that run or wait at the gate
              crowd, crowd_until                 each call that meets another one
              first, last, passes                under the gate's mutex
    Worker    state, body, data, count,          the call that has the lease, and the thread itself
              number, floats, order
              owner                              who takes or returns the lease
              rest, rest_until, paid, missed,    the call that has the lease
              missed_last
              clock                              the thread, when it starts

The state of a worker is

    IDLE -> OFFERED             a call offers it a piece of a loop       (the call, by release)
    OFFERED -> BUSY             the thread has begun with the piece      (the thread, by exchange)
    OFFERED -> IDLE             the call has taken the piece back        (the call, by exchange)
    BUSY -> IDLE                the piece is done                        (the thread, by release)
    IDLE -> ASLEEP -> IDLE      nobody needs it; a call wakes it         (under its mutex)

A piece's words are written in state IDLE by the call that has the lease, and read in state BUSY. So
a thread reads what belongs to the offer that it took, and a call never waits for a thread that has
not begun. A count of 1 means waiting calls (`gate.py`) in place of a piece: the thread runs them
and then gives itself back. No order of memory is assumed but that of acquire and release.

Time in native functions: the monotonic clock, and the clocks of threads.
"""

from __future__ import annotations

import ctypes
import os
import time
from functools import lru_cache

import numpy as np

from tensorwright import machine_code
from tensorwright.base import Array, knobs
from tensorwright.runtime.buffers import address_of, empty_bytes

POOL_SYMBOL = "tensorwright.pool"
MOST_WORKERS = 1023
_WORD_BYTES = 8
_MASK_WORDS = 128  # for 8192 cores, which is the most that Linux has
_LINE = 16  # words: two cache lines of 64 bytes, which processors fetch together


class Pool:
    """The positions of the pool's words."""

    CORES, WORKERS, MOST, STOP, LIVE, KEY, MASK_BYTES = range(7)
    ACTIVE = _LINE
    CROWD, CROWD_UNTIL = 2 * _LINE, 2 * _LINE + 1
    FIRST, LAST, PASSES = (3 * _LINE + n for n in range(3))
    MUTEX = 4 * _LINE
    MASK = 5 * _LINE  # of the cores that the threads may use
    SIZE = 5 * _LINE + _MASK_WORDS


class Worker:
    """The positions of a worker's words, and its states; a team's slot begins in the same way."""

    STATE, BODY, DATA, COUNT, NUMBER = range(5)
    FLOATS = 6  # behind the words that a team's slot has, too
    ORDER = 7  # a team's slot has it, too
    OWNER, REST, REST_UNTIL, PAID, MISSED, MISSED_LAST, CLOCK = (_LINE + n for n in range(7))
    MUTEX, CONDITION = 2 * _LINE, 3 * _LINE
    SIZE = 4 * _LINE

    IDLE, OFFERED, BUSY, ASLEEP = range(4)


class Lease:
    """Who has a worker: nobody, a call, or the thread itself while it falls asleep."""

    FREE, CALL, ITSELF = range(3)


LEASE = Lease


class _Memory:
    """The block, and the Python objects that keep it."""

    def __init__(self) -> None:
        words = Pool.SIZE + MOST_WORKERS * Worker.SIZE
        self._bytes: Array = empty_bytes(words * _WORD_BYTES)
        self.words = self._bytes.view("i8")
        self.address = address_of(self._bytes)
        self.reset()

    def reset(self) -> None:
        """Begin again, with no worker: in a new process, where no other thread has survived."""
        cores = knobs.CORES.get()
        most = min(cores, MOST_WORKERS)  # no call has more threads than there are cores
        self.words[:] = 0
        self.words[Pool.CORES] = cores
        self.words[Pool.MOST] = most
        self.words[Pool.KEY] = slot_key()
        self._set_mask()
        process = ctypes.CDLL(None)
        process.pthread_mutex_init(ctypes.c_void_p(self.address_of(Pool.MUTEX)), None)
        for number in range(most):
            base = worker_base(number)
            mutex, condition = (
                ctypes.c_void_p(self.address_of(base + word))
                for word in (Worker.MUTEX, Worker.CONDITION)
            )
            process.pthread_mutex_init(mutex, None)
            process.pthread_cond_init(condition, None)

    def _set_mask(self) -> None:
        """Let the pool's threads use the cores of this thread, whichever caller starts them."""
        if hasattr(os, "sched_getaffinity"):
            mask = self.words[Pool.MASK :][:_MASK_WORDS].view("u1")
            bits = sum(1 << core for core in os.sched_getaffinity(0))
            mask[:] = np.frombuffer(bits.to_bytes(len(mask), "little"), "u1")
            self.words[Pool.MASK_BYTES] = len(mask)

    def address_of(self, word: int) -> int:
        """The address of a word of the pool."""
        return self.address + word * _WORD_BYTES


@lru_cache(maxsize=1)
def pool_memory() -> _Memory:
    """The process's pool."""
    memory = _Memory()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))  # threads use it until the process ends
    return memory


def worker_base(number: int) -> int:
    """The position of the first word of a worker, counted from 0."""
    return Pool.SIZE + number * Worker.SIZE


@lru_cache(maxsize=1)
def slot_key() -> int:
    """The process's key of the thread-specific value, which points to a thread's slot."""
    key = ctypes.c_uint64(0)  # pthread_key_t has 32 bits or 64
    error = ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None)
    if error:
        raise OSError(error, "no thread-specific value is free")
    return key.value


# How native functions reach it


def pool_of(function: machine_code.NativeFunction) -> machine_code.NativeArray:
    """The words of the pool; the code is that of any process, linked with `POOL_SYMBOL`."""
    function.module.declare(f"@{POOL_SYMBOL} = external global i8")
    return machine_code.Number(function, machine_code.Kind.POINTER, f"@{POOL_SYMBOL}").array(
        machine_code.Kind.I64
    )


def worker_of(
    function: machine_code.NativeFunction, number: machine_code.Number
) -> machine_code.NativeArray:
    """The words of a worker."""
    return pool_of(function).part(number * Worker.SIZE + Pool.SIZE)


def lock(
    function: machine_code.NativeFunction, words: machine_code.NativeArray, position: int
) -> machine_code.Number:
    """Lock a mutex, which is the answer."""
    mutex = words.address(position)
    function.call(machine_code.Kind.I32, "pthread_mutex_lock", mutex)
    return mutex


def own_slot(function: machine_code.NativeFunction) -> machine_code.Number:
    """The slot of the thread that runs a function; null outside of teams."""
    return function.call(
        machine_code.Kind.POINTER, "pthread_getspecific", pool_of(function)[Pool.KEY]
    )


def set_own_slot(function: machine_code.NativeFunction, slot: machine_code.Number) -> None:
    """Say which slot a thread has."""
    function.call(machine_code.Kind.I32, "pthread_setspecific", pool_of(function)[Pool.KEY], slot)


_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)
_NANOSECONDS = 1_000_000_000


class Clock:
    """A function of a module that reads a clock of POSIX's clock_gettime, in nanoseconds."""

    def __init__(self, module: machine_code.Module) -> None:
        self._read = machine_code.NativeFunction(
            module, "read_clock", (machine_code.Kind.I32,), machine_code.Kind.I64, is_internal=True
        )
        function = self._read
        seconds_ns = function.array(machine_code.Kind.I64, 2)
        function.call(
            machine_code.Kind.I32, "clock_gettime", function.parameters[0], seconds_ns.pointer
        )
        function.finish(seconds_ns[0] * _NANOSECONDS + seconds_ns[1])

    def now(self, function: machine_code.NativeFunction) -> machine_code.Number:
        """The monotonic clock."""
        kind = function.number(_MONOTONIC, machine_code.Kind.I32)
        return function.call(machine_code.Kind.I64, self._read, kind)

    def of_thread(
        self, function: machine_code.NativeFunction, clock: machine_code.Number
    ) -> machine_code.Number:
        """How long a thread has run, by the number of its clock."""
        return function.call(
            machine_code.Kind.I64, self._read, clock.cast("trunc", machine_code.Kind.I32)
        )
