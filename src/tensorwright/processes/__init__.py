"""Worker processes: spawned, killable; the unit of work is a plain function of plain data."""

from tensorwright.processes.outcomes import Died, Done, Job, Outcome, Raised, Stopped, TimedOut
from tensorwright.processes.pool import WorkerPool, never

__all__ = ["Died", "Done", "Job", "Outcome", "Raised", "Stopped", "TimedOut", "WorkerPool", "never"]
