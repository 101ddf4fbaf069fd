"""A proposing model at work: what populations and chains start from."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.machine import Machine
from tensorwright.tuning.proposing.decisions import DecisionTables
from tensorwright.tuning.proposing.model import ProposingModel, draw
from tensorwright.tuning.strategies.population import Population
from tensorwright.tuning.strategies.selection import pick_covering
from tensorwright.tuning.strategies.space_tables import SpaceTables
from tensorwright.tuning.task import Task

_DRAWN = 16  # so many times more are drawn than are proposed


class ModelProposer:
    """A `Proposer`: draws by a model, for one workload on one machine."""

    def __init__(
        self, model: ProposingModel, task: Task, tables: SpaceTables, machine: Machine
    ) -> None:
        self._model = model
        self._tables = tables
        self._decisions = DecisionTables(task.workload, tables.space, machine)

    def draw(
        self, count: int, random: Generator, allowed: NDArray[np.int64] | None = None
    ) -> Population:
        """As `Proposer.draw`."""
        found = draw(self._model, self._decisions, self._tables, count, random, allowed=allowed)
        return found.population

    def first(self, count: int, random: Generator, variety: float = 1.0) -> Population:
        """So many programs to measure before any other, the most promising first, each once: likely
        ones that are unlike each other.

        variety   see `pick_covering`
        """
        drawn = draw(self._model, self._decisions, self._tables, _DRAWN * count, random)
        once = drawn.population.first_of_each()
        population, chances = drawn.population.take(once), drawn.log_chance[once]
        return population.take(pick_covering(self._tables, population, chances, count, variety))


class ModelProposers:
    """Makes the proposers of a session's tasks."""

    def __init__(self, model: ProposingModel, machine: Machine) -> None:
        self._model = model
        self._machine = machine

    def __call__(self, task: Task, tables: SpaceTables) -> ModelProposer:
        """The proposer of a task."""
        return ModelProposer(self._model, task, tables, self._machine)
