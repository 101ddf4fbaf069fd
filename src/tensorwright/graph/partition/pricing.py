"""Decisions by predicted time: what is proposed is taken where it is faster by a margin.

The time of a workload with named sizes is that for typical numbers.

decide = Decisions(price)
decide("attention", Alternative("two kernels", (a, b)), Alternative("one kernel", (ab,)))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.graph.sizes import representative
from tensorwright.graph.workload import Workload, bind_workload

Price: TypeAlias = Callable[[Workload], float | None]
"""Seconds that a workload takes, untuned, as a step of a network: with its call and the wait for
its threads.  None where nothing can be said.

Equal workloads have equal prices, in any order of questions: a network is cut in the same way in
every process.
"""

LEAST_GAIN = 1.2  # predictions are no measurements


@dataclass(frozen=True, slots=True)
class Alternative:
    """What may be run, by a name, and its workloads; they are built when a price is asked for."""

    name: str
    workloads: Iterable[Workload]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was in force against what was proposed.

    other_seconds   of all workloads; where the first ones alone are too slow, of these
    """

    question: str
    kept: str
    other: str
    kept_seconds: float
    other_seconds: float
    is_changed: bool

    @property
    def chosen(self) -> str:
        """The name of the alternative that was taken."""
        return self.other if self.is_changed else self.kept

    def __str__(self) -> str:
        kept, other = (f"{1e6 * x:.1f} us" for x in (self.kept_seconds, self.other_seconds))
        return f"{self.question}: {self.kept} {kept}, {self.other} {other}: {self.chosen}"


class Decisions:
    """The decisions about one graph, in order; mutable, used inside one function.

    most         so many workloads are priced, each once; then what is in force stays
    stops_early  an alternative is priced until it is too slow
    """

    def __init__(self, price: Price, most: float = math.inf, *, stops_early: bool = True) -> None:
        self.made: list[Decision] = []
        self._price = price
        self._most = most
        self._stops_early = stops_early
        self._seconds: dict[str, float | None] = {}

    def __call__(
        self, question: str, kept: Alternative, other: Alternative, least_gain: float = LEAST_GAIN
    ) -> Decision | None:
        """Which of two is taken, the other where it is so many times as fast; None where one has
        no price.
        """
        kept_s = self._total(kept, math.inf)
        if kept_s is None:
            return None
        limit = kept_s / least_gain
        other_s = self._total(other, limit if self._stops_early else math.inf)
        if other_s is None:
            return None
        names = question, kept.name, other.name
        self.made.append(Decision(*names, kept_s, other_s, is_changed=other_s < limit))
        return self.made[-1]

    def _total(self, alternative: Alternative, limit: float) -> float | None:
        """Seconds of all workloads, or of the first ones that reach a limit together."""
        total = 0.0
        for workload in alternative.workloads:
            seconds = self._seconds_of(workload)
            if seconds is None:
                return None
            total += seconds
            if total >= limit:
                break
        return total

    def _seconds_of(self, workload: Workload) -> float | None:
        if workload.key not in self._seconds:
            if len(self._seconds) >= self._most:
                return None
            typical = bind_workload(workload, representative(workload.sizes))
            self._seconds[workload.key] = self._price(typical)
        return self._seconds[workload.key]

    def describe(self, subject: str) -> str:
        """One line for each decision, equal ones once."""
        lines = dict.fromkeys(self.made)
        changes = sum(each.is_changed for each in lines)
        head = f"{len(lines)} doubts about {subject}, {changes} changes"
        return "\n".join((head, *(f"  {each}" for each in lines)))
