"""Worker processes: spawned, killable; the unit of work is a plain function of plain data.

Read `job.py` first (a job and how it may end), then `pool.py`, the parent's side of processes.
`worker.py` is the code that runs in one.
"""

from tensorwright.processes.job import (
    Died, Done, Guard, Job, Outcome, Raised, Stopped, TimedOut, hold_turn, never,
)
from tensorwright.processes.pool import (
    Child, WorkerPool, has_spare, occupy_spare, spare_worker, take_spare,
)
