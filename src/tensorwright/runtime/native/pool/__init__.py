"""The pool: the threads of a process that help its calls, and how calls share the cores.

Read `layout.py` first, the layout of the pool's memory, then `team.py`, which divides parallel
loops. `gate.py` lets in as many calls at once as there are cores, and assigns threads to calls.
`serving.py` is the code of these threads, and of their end.
"""

from tensorwright.runtime.native.pool.gate import ADMIT_SYMBOL
from tensorwright.runtime.native.pool.layout import (
    POOL_SYMBOL, Pool, Worker, pool_memory, worker_base,
)
from tensorwright.runtime.native.pool.serving import (
    float_bits, float_state, set_float_state, usable_threads,
)
from tensorwright.runtime.native.pool.team import (
    EXPORTS, ORDER_SYMBOL, POSIX_SYMBOLS, STAND_INS, TEAM_SYMBOL, pool_ir,
)
