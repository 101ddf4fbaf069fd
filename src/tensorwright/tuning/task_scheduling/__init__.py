"""Which workload gets the next round, and the objective of a session."""

from tensorwright.tuning.task_scheduling.gradient_scheduler import GradientScheduler
from tensorwright.tuning.task_scheduling.objective import (
    LatencyRequirement,
    MeanSpeedUp,
    NetworkTimes,
    Objective,
    TotalLatency,
)
from tensorwright.tuning.task_scheduling.scheduler import Scheduler, TaskState

__all__ = [
    "GradientScheduler",
    "LatencyRequirement",
    "MeanSpeedUp",
    "NetworkTimes",
    "Objective",
    "Scheduler",
    "TaskState",
    "TotalLatency",
]
