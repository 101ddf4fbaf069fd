"""The guide of a search: it scores programs that were not measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.population.population import Population
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.history import Outcome
from tensorwright.tuning.task import Task

Scores = NDArray[np.float64]


class Guide(Protocol):
    """Scores programs of one space, and learns from those that were measured."""

    def refresh(self) -> None:
        """Begin a round: score by all that was learned."""

    def scores(self, population: Population) -> Scores:
        """One number a program, higher is better; minus infinity for one that cannot be lowered."""

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Take in what was measured."""


MakeGuide = Callable[[Task, Space, int], Guide]
"""The guide of a task's search, from its space and seed."""
