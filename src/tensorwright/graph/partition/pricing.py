"""Decisions by predicted time: a proposal is taken if it is faster by a margin.

The time of a workload with named sizes is its time for typical sizes.  If the proposal's gain is
close to the margin, the times for sizes half-way between the bounds count, too.

decide = Decisions(price)
decide("attention", Alternative("two kernels", (a, b)), Alternative("one kernel", (ab,)))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.graph.sizes import halfway, representative
from tensorwright.graph.workload import Workload, bind_workload

Price: TypeAlias = Callable[[Workload], float | None]
"""Seconds that an untuned workload takes as a step of a network, with its call and the wait for its
threads.  None if no prediction is possible.

Equal workloads have equal prices in any order of questions, so that every process cuts a network in
the same way.
"""

LEAST_GAIN = 1.2  # predictions are not measurements
_NEAR = 1.1  # within this factor of the limit, alternatives are compared at other sizes, too


@dataclass(frozen=True, slots=True)
class Alternative:
    """A choice with its name and its workloads, which are built when a price is asked for."""

    name: str
    workloads: Iterable[Workload]


@dataclass(frozen=True, slots=True)
class Decision:
    """The comparison of the present choice with a proposal.

    kept_seconds    of the present choice; both times are for typical sizes
    other_seconds   of the proposal; if its first workloads alone are too slow, of these only
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

    most         how many workloads are priced at most; after these, present choices stay
    stops_early  whether the pricing of a proposal ends when it is too slow
    """

    def __init__(self, price: Price, most: float = math.inf, *, stops_early: bool = True) -> None:
        self.made: list[Decision] = []
        self._price = price
        self._most = most
        self._stops_early = stops_early
        self._seconds: dict[tuple[str | int, ...], float | None] = {}

    def __call__(
        self, question: str, kept: Alternative, other: Alternative, least_gain: float = LEAST_GAIN
    ) -> Decision | None:
        """Take the proposal if it is faster by the margin; None if a workload has no price."""
        kept_workloads, other_workloads = list(kept.workloads), list[Workload]()
        kept_s = self._total(kept_workloads, math.inf)
        if kept_s is None:
            return None
        limit = kept_s / least_gain
        sizes = {size.name: size for each in kept_workloads for size in each.sizes}
        near = _NEAR * limit if sizes else limit
        stop = near if self._stops_early else math.inf
        other_s = self._total(other.workloads, stop, other_workloads)
        if other_s is None:
            return None
        is_changed = other_s < limit
        if sizes and limit / _NEAR < other_s < near:
            at, both = halfway(sizes.values()), (kept_workloads, other_workloads)
            kept_half, other_half = (self._total(each, math.inf, at=at) for each in both)
            if kept_half and other_half:
                is_changed = other_s * other_half < limit * kept_half / least_gain
        names = question, kept.name, other.name
        self.made.append(Decision(*names, kept_s, other_s, is_changed))
        return self.made[-1]

    def _total(
        self,
        workloads: Iterable[Workload],
        limit: float,
        priced: list[Workload] | None = None,
        at: Mapping[str, int] | None = None,
    ) -> float | None:
        """Seconds of all workloads, or of the first ones that reach a limit together.

        priced   gets the workloads whose prices were asked for
        at       numbers for sizes; typical ones if None
        """
        total = 0.0
        for workload in workloads:
            if priced is not None:
                priced.append(workload)
            seconds = self._seconds_of(workload, at)
            if seconds is None:
                return None
            total += seconds
            if total >= limit:
                break
        return total

    def _seconds_of(self, workload: Workload, at: Mapping[str, int] | None) -> float | None:
        numbers = representative(workload.sizes)
        if at is not None:
            numbers = {name: at.get(name, number) for name, number in numbers.items()}
        asked: tuple[str | int, ...] = (workload.key, *numbers.values())
        if asked not in self._seconds:
            if len(self._seconds) >= self._most:
                return None
            self._seconds[asked] = self._price(bind_workload(workload, numbers))
        return self._seconds[asked]

    def describe(self, subject: str) -> str:
        """One line for each decision; equal decisions have one line."""
        lines = dict.fromkeys(self.made)
        changes = sum(each.is_changed for each in lines)
        head = f"{len(lines)} open questions about {subject}, {changes} changes"
        return "\n".join((head, *(f"  {each}" for each in lines)))
