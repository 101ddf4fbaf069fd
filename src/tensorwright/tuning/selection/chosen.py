"""The chosen schedule of a workload, and its estimate."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.schedule import Trace
from tensorwright.tuning.population import Candidate


@dataclass(frozen=True, slots=True)
class Estimate:
    """The time of a program: a median, and a time that is exceeded once in ten times."""

    seconds: float
    upper_seconds: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """A schedule.

    estimate    None if the program cannot be priced
    by_rule     the estimate of the schedule by rule; None if that cannot be priced
    is_by_rule  whether it is that one
    decisions   in its sketch: sorted pairs (name, value)
    """

    trace: Trace
    estimate: Estimate | None
    by_rule: Estimate | None
    is_by_rule: bool
    decisions: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Elite:
    """One of the candidates that are expected to be the fastest, and its expected time."""

    candidate: Candidate
    estimate: Estimate
