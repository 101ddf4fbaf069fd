"""What comes of a session, as values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tensorwright.tuning.task import Task


class StopReason(Enum):
    """Why a session ended."""

    BUDGET_SPENT = "the budget is spent"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "nothing is left to try"
    NO_GAIN = "the last rounds gained nothing"


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of one workload; times in seconds per call, infinite where not measured.

    trace   the best schedule as text, "" where none was measured well
    error   why none was, "" otherwise
    tried   schedules on record besides the default
    """

    task: Task
    trials: int
    default_s: float
    best_s: float
    trace: str
    error: str
    tried: int = 0

    @property
    def is_untuned(self) -> bool:
        """Whether there is nothing to choose from but the default schedule."""
        return self.tried == 0

    @property
    def cost_s(self) -> float:
        """What the workload adds to the time of the whole; 0 where it was not measured."""
        return self.task.weight * self.best_s if math.isfinite(self.best_s) else 0.0


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What came of a session.

    trials, elapsed_s    of all runs of the session
    search_s, build_s, measure_s   of this run
    """

    session: str
    reason: StopReason
    trials: int
    elapsed_s: float
    build_s: float
    measure_s: float
    tasks: tuple[TaskResult, ...]
    search_s: float = 0.0

    @property
    def untuned(self) -> tuple[tuple[TaskResult, float], ...]:
        """The workloads without a search, and their share of the measured time, largest first."""
        total_s = sum(each.cost_s for each in self.tasks) or 1.0
        found = [(each, each.cost_s / total_s) for each in self.tasks if each.is_untuned]
        return tuple(sorted(found, key=lambda pair: -pair[1]))

    @property
    def is_interrupted(self) -> bool:
        """Whether the session can go on where it stopped."""
        return self.reason is StopReason.INTERRUPTED

    @property
    def resume_text(self) -> str:
        """What to tell the user about going on; "" where the session is finished."""
        if not self.is_interrupted:
            return ""
        return (
            f"stopped after {self.trials} trials, all of them kept; "
            f"run the same command again to go on (session {self.session})"
        )
