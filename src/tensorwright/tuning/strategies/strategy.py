"""What a search strategy is: proposes candidates for one workload and learns from their records.

A strategy sees no clock and measures nothing, so that the same seed and the same records give the
same proposals.
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
        """Up to `count` new candidates, the most promising first; fewer where the space ends.

        None is proposed twice, and none that `observe` has told of.
        """

    def observe(self, records: Sequence[Record]) -> None:
        """Learn what came of candidates, of this search's or others that are on record."""


class StrategyFactory(Protocol):
    """Makes the strategy of a task: what `tune` takes, so that each workload has its own."""

    def __call__(self, task: Task, space: Space, seed: int) -> Strategy:
        """A fresh strategy. Equal arguments give equal strategies."""
