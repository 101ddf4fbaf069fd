"""The pool's threads when a process forks or ends, and what the knobs say about them.

Native code starts the threads when a call first needs them (`lease.py`). A child of a fork has no
threads: its pool is empty, and its first call starts new ones.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import time

from tensorwright.base import knobs
from tensorwright.runtime.native.pool.layout import Pool, Worker, pool_memory, worker_base
from tensorwright.runtime.native.pool.serving import FLUSHING

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
