"""The pool: the threads of a process that help its calls, and how calls share the cores.

Read `layout.py` first, the layout of the pool's memory, then `team.py`, which divides parallel
loops. `gate.py` lets in as many calls at once as there are cores. `lease.py` assigns threads to
calls. `serving.py` is the code of these threads, and `threads.py` ends them.
"""

from tensorwright.runtime.native.pool.code import EXPORTS, POSIX_SYMBOLS, pool_ir
from tensorwright.runtime.native.pool.gate import ADMIT_SYMBOL
from tensorwright.runtime.native.pool.layout import (
    POOL_SYMBOL,
    Pool,
    Worker,
    pool_memory,
    worker_base,
)
from tensorwright.runtime.native.pool.serving import float_state, set_float_state
from tensorwright.runtime.native.pool.team import ORDER_SYMBOL, STAND_INS, TEAM_SYMBOL
from tensorwright.runtime.native.pool.threads import float_bits, usable_threads

__all__ = [
    "ADMIT_SYMBOL",
    "EXPORTS",
    "ORDER_SYMBOL",
    "POOL_SYMBOL",
    "POSIX_SYMBOLS",
    "STAND_INS",
    "TEAM_SYMBOL",
    "Pool",
    "Worker",
    "float_bits",
    "float_state",
    "pool_ir",
    "pool_memory",
    "set_float_state",
    "usable_threads",
    "worker_base",
]
