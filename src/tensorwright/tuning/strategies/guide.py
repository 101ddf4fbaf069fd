"""What guides a search: a judgement of programs that were not measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.history import Outcome
from tensorwright.tuning.strategies.population import Population
from tensorwright.tuning.task import Task

Scores = NDArray[np.float64]
Features = NDArray[np.float32]


class Guide(Protocol):
    """Judges programs of one space, and learns from those that were measured."""

    def refresh(self) -> None:
        """A round begins: judge by all that was learned."""

    def scores(self, population: Population) -> Scores:
        """One number a program, higher is better; minus infinity for what cannot be lowered."""

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Take in what was measured."""


MakeGuide = Callable[[Task, Space, int], Guide]
"""The guide of a task's search, from its space and seed."""


class RandomGuide:
    """No judgement: a number for each program that says nothing, the same every time.

    The ablation without a model.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = np.uint64(seed * 2 + 1)

    def refresh(self) -> None:
        """As `Guide.refresh`."""

    def scores(self, population: Population) -> Scores:
        """As `Guide.scores`."""
        mixed = (population.keys ^ self._seed) * np.uint64(0xD1342543DE82EF95 | 1)
        found: Scores = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
        return found

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Nothing to learn."""
