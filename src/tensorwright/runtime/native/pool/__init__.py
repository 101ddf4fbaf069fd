"""The pool: the threads of a process that help its calls, and how calls share the cores.

Read `layout.py` first, which says what lies in the pool's memory, then `team.py`: how a parallel
loop is divided. `gate.py` lets in as many calls at once as there are cores. `lease.py` says which
threads help which call. `serving.py` is what those threads do, and `threads.py` ends them.
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
from tensorwright.runtime.native.pool.team import STAND_INS, TEAM_SYMBOL
from tensorwright.runtime.native.pool.threads import usable_threads

__all__ = [
    "ADMIT_SYMBOL",
    "EXPORTS",
    "POOL_SYMBOL",
    "POSIX_SYMBOLS",
    "STAND_INS",
    "TEAM_SYMBOL",
    "Pool",
    "Worker",
    "pool_ir",
    "pool_memory",
    "usable_threads",
    "worker_base",
]
