"""Made-up prices of workloads, for tests of what is decided by price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tensorwright.graph import Workload


class Prices:
    """Prices by a function of the workload; counts what it was asked."""

    def __init__(self, seconds_of: Callable[[Workload], float | None], step: float = 0.0) -> None:
        self.asked: Counter[str] = Counter()
        self._seconds_of = seconds_of
        self._step = step

    def __call__(self, workload: Workload) -> float | None:
        self.asked[workload.key] += 1
        seconds = self._seconds_of(workload)
        return None if seconds is None else seconds + self._step
