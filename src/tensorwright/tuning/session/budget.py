"""The spent part of a session's budget, and where its time goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from tensorwright.tuning.session.arguments import Budget
from tensorwright.tuning.session.saved_state import Spent


class Activity(Enum):
    """The kinds of work for which a session spends time."""

    SEARCH = "search"
    BUILD = "build"
    MEASURE = "measure"


class Spending:
    """Counts trials and seconds over all runs of a session; mutable.

    reserve_s   seconds that are kept for the ranking at the end
    after_s     seconds that are kept for later work
    """

    def __init__(
        self, budget: Budget, spent: Spent, reserve_s: float, after_s: float = 0.0
    ) -> None:
        self._budget = budget
        self._spent = spent
        self._reserve_s = reserve_s
        self._after_s = after_s
        self._started = time.monotonic()
        self._seconds = dict.fromkeys(Activity, 0.0)
        self.trials_here = 0

    @property
    def trials(self) -> int:
        """Candidates tried in all runs."""
        return self._spent.trials + self.trials_here

    @property
    def elapsed_here_s(self) -> float:
        """Seconds of this run."""
        return time.monotonic() - self._started

    @property
    def elapsed_s(self) -> float:
        """Seconds of all runs."""
        return self._spent.seconds + self.elapsed_here_s

    @property
    def is_late(self) -> bool:
        """Whether the minutes are spent, except the seconds that are kept."""
        return self._is_past(self._reserve_s + self._after_s)

    @property
    def is_over(self) -> bool:
        """Whether even the ranking must end."""
        return self._is_past(self._after_s)

    def _is_past(self, kept_s: float) -> bool:
        seconds = self._budget.seconds
        return seconds is not None and self.elapsed_s >= seconds - kept_s

    @property
    def is_spent(self) -> bool:
        """Whether no further round may begin."""
        trials = self._budget.trials
        return self.is_late or (trials is not None and self.trials >= trials)

    def room(self, size: int) -> int:
        """The number of candidates of a round of `size`; at least one."""
        trials = self._budget.trials
        return size if trials is None else max(1, min(size, trials - self.trials))

    @contextmanager
    def counting(self, activity: Activity) -> Iterator[None]:
        """Count the time of the block for a kind of work."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._seconds[activity] += time.monotonic() - start

    def seconds(self, activity: Activity) -> float:
        """Seconds of this run for a kind of work."""
        return self._seconds[activity]
