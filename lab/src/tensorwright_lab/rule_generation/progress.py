"""Progress of long steps, reported from time to time, with the remaining time.

meter = Meter(say, "level 2", total=10.0)
meter.add(4.0)                   some seconds later
say("level 2: 40%, 0:09 left")    at most every five seconds
"""

from __future__ import annotations

import time
from collections.abc import Callable

Say = Callable[[str], None]
_INTERVAL_S = 5.0


class Meter:
    """Counts the effort done, and tells the remaining time at the pace so far.

    total   effort of the whole step, in any unit; `done` of it was done in an earlier run
    """

    def __init__(
        self,
        say: Say,
        label: str,
        total: float,
        done: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._label = label
        self._total = max(total, 1e-9)
        self._before = self._done = done
        self._clock = clock
        self._start = self._last = clock()

    def add(self, effort: float) -> None:
        """So much more is done."""
        self._done += effort
        now = self._clock()
        if now - self._last < _INTERVAL_S:
            return
        self._last = now
        pace = (self._done - self._before) / (now - self._start)
        left = (self._total - self._done) / pace if pace > 0 else 0.0
        self._say(f"{self._label}: {self._done / self._total:.0%}, {duration(left)} left")


def duration(time_s: float) -> str:
    """Minutes and seconds, as `m:ss`."""
    minutes, seconds = divmod(round(max(time_s, 0.0)), 60)
    return f"{minutes}:{seconds:02d}"
