"""The native functions of the pool, as one module of LLVM IR."""

from __future__ import annotations

from tensorwright.machine_code import Module
from tensorwright.runtime.native.pool.clock import Clock
from tensorwright.runtime.native.pool.gate import ADMIT_SYMBOL, write_gate
from tensorwright.runtime.native.pool.lease import write_workers
from tensorwright.runtime.native.pool.serving import write_do_piece, write_serve
from tensorwright.runtime.native.pool.team import (
    ORDER_SYMBOL,
    STAND_INS,
    TEAM_SYMBOL,
    write_teams,
)

EXPORTS = (TEAM_SYMBOL, ORDER_SYMBOL, *STAND_INS.values(), ADMIT_SYMBOL)

POSIX_SYMBOLS = (
    *("pthread_getspecific", "pthread_setspecific", "pthread_mutex_lock", "pthread_mutex_unlock"),
    *("pthread_cond_init", "pthread_cond_destroy", "pthread_cond_wait", "pthread_cond_signal"),
    *("pthread_create", "pthread_detach", "pthread_self", "pthread_getcpuclockid"),
    *("sched_yield", "sched_setaffinity", "clock_gettime"),
)
"""The functions that they call."""


def pool_ir(arch: str) -> str:
    """The functions for an architecture; they are linked with `POOL_SYMBOL`."""
    module = Module()
    clock = Clock(module)
    do_piece = write_do_piece(module)
    workers = write_workers(module, write_serve(module, clock, do_piece, arch))
    write_gate(module, clock, workers, arch)
    write_teams(module, clock, workers, do_piece, arch)
    return module.text()
