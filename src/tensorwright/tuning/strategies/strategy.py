"""The protocol of a search strategy: it proposes candidates and learns from their records.

A strategy has no clock and measures nothing, so the same seed and the same records give the same
proposals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tensorwright.records import Record
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.task import Task


class Strategy(Protocol):
    """The search of one workload. Calls come in turn: propose, observe, propose, ..."""

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """Up to `count` new candidates, the most promising first; fewer if the space ends.

        None is proposed twice, and none whose record `observe` has seen.
        """

    def observe(self, records: Sequence[Record]) -> None:
        """Learn from records of candidates, of this search or of others."""


class StrategyFactory(Protocol):
    """Makes the strategy of a task: what `tune` takes, so that each workload has its own."""

    def __call__(self, task: Task, space: Space, seed: int) -> Strategy:
        """A fresh strategy. Equal arguments give equal strategies."""
