"""What a partition asks of whoever predicts times, and what it decided by that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from tensorwright.graph.workload import Workload


class Pricing(Protocol):
    """Predicts what workloads take, untuned, in a network.

    Equal workloads have equal prices, in any order of questions: a partition shall be the same in
    every process.
    """

    def seconds_of(self, workload: Workload) -> float | None:
        """Seconds of a workload under its default schedule; None where nothing can be said."""
        ...

    def step_seconds(self) -> float:
        """Seconds that each kernel costs beside its work: its call, and waiting for threads."""
        ...


LEAST_GAIN = 1.2
"""By how much faster another choice must be expected to be: predictions are no measurements."""


class StepPrices:
    """What workloads take as steps of a network, each asked for once; used inside one function.

    most   so many are asked for, then nothing can be said
    """

    def __init__(self, pricing: Pricing, most: float = math.inf) -> None:
        self._pricing, self._most = pricing, most
        self._seconds: dict[str, float | None] = {}

    def seconds_of(self, workload: Workload) -> float | None:
        """Seconds of a workload, its call included; None where nothing can be said."""
        if workload.key not in self._seconds:
            if len(self._seconds) >= self._most:
                return None
            seconds = self._pricing.seconds_of(workload)
            step_seconds = self._pricing.step_seconds()
            self._seconds[workload.key] = None if seconds is None else seconds + step_seconds
        return self._seconds[workload.key]


@dataclass(frozen=True, slots=True)
class Decision:
    """One program as one kernel, and as two.

    reason           the criterion that leaves it open
    parts            names of the two workloads
    fused_seconds    of the one kernel      separate_seconds   of both, with a step more; where the
                     dearer alone is too slow, of that
    is_fused         what was decided
    """

    reason: str
    parts: tuple[str, str]
    fused_seconds: float
    separate_seconds: float
    is_fused: bool

    def __str__(self) -> str:
        first, second = self.parts
        fused, apart = (f"{1e6 * x:.1f} us" for x in (self.fused_seconds, self.separate_seconds))
        verdict = "one kernel" if self.is_fused else "two kernels"
        return f"{self.reason}: {first} | {second}: {fused} as one, {apart} as two: {verdict}"
