"""Worker processes: spawned, killable; the unit of work is a plain function of plain data.

Read `job.py` first (a job and how it may end), then `pool.py`. `child.py` is the parent's side of a
process, `worker.py` the code that runs in it.
"""

from tensorwright.processes.child import Child
from tensorwright.processes.guard import Guard
from tensorwright.processes.job import (
    Died,
    Done,
    Job,
    Outcome,
    Raised,
    Stopped,
    TimedOut,
    never,
)
from tensorwright.processes.pool import WorkerPool
from tensorwright.processes.spare import has_spare, occupy_spare, spare_worker, take_spare
from tensorwright.processes.turns import hold_turn

__all__ = [
    "Child",
    "Died",
    "Done",
    "Guard",
    "Job",
    "Outcome",
    "Raised",
    "Stopped",
    "TimedOut",
    "WorkerPool",
    "has_spare",
    "hold_turn",
    "never",
    "occupy_spare",
    "spare_worker",
    "take_spare",
]
