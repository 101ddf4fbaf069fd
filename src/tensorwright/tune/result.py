"""How a session is set up and what comes of it, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tensorwright.base import Target
from tensorwright.tune.task import Task

ROUND_SIZE = 16


class StopReason(Enum):
    """Why a session ended."""

    BUDGET_SPENT = "the budget is spent"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "nothing is left to try"


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """How a session goes about it; the defaults are meant to be right.

    round_size      candidates of a round
    should_resume   whether an unfinished session of the same arguments goes on
    should_rank     whether the best few are measured again at the end
    """

    round_size: int = ROUND_SIZE
    should_resume: bool = True
    should_rank: bool = True


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of one workload; times in seconds per call, infinite where not measured.

    trace   the best schedule as text, "" where none was measured well
    error   why none was, "" otherwise
    """

    task: Task
    trials: int
    default_s: float
    best_s: float
    trace: str
    error: str


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What came of a session.

    trials, elapsed_s    of all runs of the session
    build_s, measure_s   of this run; the rest of its time was search
    """

    session: str
    reason: StopReason
    trials: int
    elapsed_s: float
    build_s: float
    measure_s: float
    tasks: tuple[TaskResult, ...]

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


@dataclass(frozen=True, slots=True)
class Setting:
    """What records of the session have in common, and its budget."""

    target: Target
    threads: int
    hardware: str
    seed: int
    model: str
    trials: int | None
    seconds: float | None
