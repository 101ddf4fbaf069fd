"""Which workload gets the next round.

A scheduler decides from the history of every task alone, so that it is the same when a session
resumes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tensorwright.tune.task import Task

_RECENT_ROUNDS = 3
_HOPE = 0.5  # the share of its time that a task may lose in its first round, for all we know


@dataclass(slots=True)
class TaskState:
    """Where the search of one task stands; the session writes it, schedulers read it.

    trials        candidates on record, counted over all runs of the session
    default_s     median seconds of the default schedule; infinite where not measured
    best_s        of the best; infinite where there is none
    history       `best_s` after each round
    is_exhausted  its strategy has nothing left to propose
    error         why nothing could be measured, the last of such texts; "" where something was
    """

    task: Task
    trials: int = 0
    default_s: float = math.inf
    best_s: float = math.inf
    history: tuple[float, ...] = ()
    is_exhausted: bool = False
    error: str = ""

    @property
    def cost_s(self) -> float:
        """What the task adds to the time of the whole; infinite where nothing is known."""
        return self.task.weight * self.best_s


class Scheduler(Protocol):
    """Chooses tasks. Holds no state of its own that a resumed session would lack."""

    def choose(self, states: Sequence[TaskState]) -> int | None:
        """The position of the task that gets the next round; None where all are exhausted."""


class RoundRobinScheduler:
    """The task with the fewest rounds: what there is without a task scheduler."""

    def choose(self, states: Sequence[TaskState]) -> int | None:
        """As `Scheduler.choose`."""
        open_tasks = [n for n, state in enumerate(states) if not state.is_exhausted]
        return min(open_tasks, key=lambda n: (len(states[n].history), n), default=None)


class GreedyScheduler:
    """The task with the largest weight x best time x potential.

    The potential is what the last rounds gained, and a hope that falls with the number of rounds.
    Tasks that were never measured well take turns, at most every second round of all.
    """

    def choose(self, states: Sequence[TaskState]) -> int | None:
        """As `Scheduler.choose`."""
        open_tasks = [n for n, state in enumerate(states) if not state.is_exhausted]
        if not open_tasks:
            return None
        known = [n for n in open_tasks if math.isfinite(states[n].cost_s)]
        unknown = [n for n in open_tasks if n not in known]
        rounds = sum(len(state.history) for state in states)
        if unknown and (not known or rounds % 2 == 0):
            return min(unknown, key=lambda n: (len(states[n].history), n))
        return max(known, key=lambda n: (states[n].cost_s * potential(states[n]), -n))


def potential(state: TaskState) -> float:
    """The share of its time that a task may lose in the next round."""
    history = state.history
    hope = _HOPE / (1 + len(history))
    recent = history[-1 - _RECENT_ROUNDS :]
    if len(recent) < 2 or not math.isfinite(recent[0]):
        return hope
    gain = (recent[0] - recent[-1]) / recent[0] / (len(recent) - 1)
    return max(gain, 0.0) + hope
