"""Which workload gets the next round.

A scheduler decides from the history of every task alone, so that it is the same when a session
resumes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tensorwright.tuning.task import Task


@dataclass(slots=True)
class TaskState:
    """The state of the search of one task; the session writes it, schedulers read it.

    trials        candidates on record, counted over all runs of the session
    default_s     median seconds of the default schedule; infinite if not measured
    best_s        of the best; infinite if there is none
    history       `best_s` after each round
    is_exhausted  its strategy has nothing left to propose
    error         why nothing could be measured, the last of such texts; "" if something was
    predicted_s   of the default by a trained model; infinite without one
    upper_s       the same, exceeded once in ten times
    hoped_s       of the best schedule by the model; infinite if it was not asked
    hoped_upper_s  the same, exceeded once in ten times
    """

    task: Task
    trials: int = 0
    default_s: float = math.inf
    best_s: float = math.inf
    history: tuple[float, ...] = ()
    is_exhausted: bool = False
    error: str = ""
    predicted_s: float = math.inf
    upper_s: float = math.inf
    hoped_s: float = math.inf
    hoped_upper_s: float = math.inf

    @property
    def expected_s(self) -> float:
        """The best time, or the predicted one as long as nothing was tried."""
        return self.best_s if self.trials else min(self.best_s, self.predicted_s)

    @property
    def is_predicted(self) -> bool:
        """Whether a model has a price for it."""
        return math.isfinite(self.predicted_s)

    @property
    def cost_s(self) -> float:
        """The time of the task in the whole; infinite if unknown."""
        return self.task.weight * self.best_s


class Scheduler(Protocol):
    """Chooses tasks. Holds no state of its own that a resumed session would lack."""

    def choose(self, states: Sequence[TaskState]) -> int | None:
        """The position of the task that gets the next round; None if all are exhausted."""
