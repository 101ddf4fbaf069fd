"""Worker processes: spawned, killable; the unit of work is a plain function of plain data.

Read `job.py` first (a job and how it may end), then `pool.py`. `pool.py` is the parent's side of a
process, `worker.py` the code that runs in it.
"""

from tensorwright.processes.job import (
    Died, Done, Guard, Job, Outcome, Raised, Stopped, TimedOut, hold_turn, never,
)
from tensorwright.processes.pool import (
    Child, WorkerPool, has_spare, occupy_spare, spare_worker, take_spare,
)
