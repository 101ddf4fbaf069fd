"""What was chosen for a workload, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.schedule import Trace
from tensorwright.tuning.population import Candidate


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long a program takes: what is as likely too much as too little, and what is exceeded
    once in ten times.
    """

    seconds: float
    upper_seconds: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """A schedule.

    estimate    None where the program cannot be priced
    by_rule     the estimate of the schedule by rule; None likewise
    is_by_rule  whether it is that one
    decisions   what it decides in its sketch: sorted pairs (name, value)
    """

    trace: Trace
    estimate: Estimate | None
    by_rule: Estimate | None
    is_by_rule: bool
    decisions: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Elite:
    """One of the candidates that are expected to be the fastest, and how long it should take."""

    candidate: Candidate
    estimate: Estimate
