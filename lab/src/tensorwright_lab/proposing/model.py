"""A model that proposes: decision by decision, which way is likely to lead to a fast schedule.

    P(schedule) = P(structure) P(choice 1 | structure) P(choice 2 | structure, choice 1) ...
    P(way) = exp(score of its row / temperature) / the sum over all ways that can be taken next

The score is that of trees over the rows of `decisions.py`.  Nothing is measured and nothing built:
a proposal costs what it takes to look at each of its decisions once.

After models of the next decision: TLP (Zhai et al., ASPLOS 2023), TLM (Zhai et al., OSDI 2024).

A proposing model as a file: plain arrays, as those of the time model.

    about      {"kind": "tensorwright proposing model", ..., "columns": "9f3c...",
               "statistics": {...}}
    starts, features, children, values     see `Forest`

`columns` is a digest of the names of the rows' columns: trees that ask for others are refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.base import RecordError
from tensorwright.machine import Machine
from tensorwright.tuning.models import Forest
from tensorwright.tuning.population.population import Genes, Population, by_sketch
from tensorwright.tuning.population.space_tables import SpaceTables
from tensorwright.tuning.strategies.annealing import pick_covering
from tensorwright.tuning.task import Task
from tensorwright.tuning.time_model import ArrayFile
from tensorwright_lab.proposing.decisions import (
    COLUMN_DIGEST,
    COLUMNS,
    DecisionTables,
    Matrix,
    Prefix,
)

_ROUNDS = 6  # of drawing again what is beyond the limits
_DRAWN = 16  # how many times more are drawn than are proposed first

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ProposingModel:
    """Trained trees.  Threads: any number may ask at once.

    statistics   what is known of its training and accuracy, for people: plain data
    """

    trees: Forest
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.trees.columns != len(COLUMNS):
            raise RecordError(
                stage="proposing model",
                where="trees",
                reason=f"their rows have {self.trees.columns} columns, not {len(COLUMNS)}",
                remedy="train it again",
            )

    def scores(self, rows: Matrix) -> Scores:
        """Of ways that can be taken.  Shapes:  (..., columns) -> (...)."""
        flat = np.ascontiguousarray(rows.reshape(-1, rows.shape[-1]), np.float32)
        scores: Scores = self.trees.sums(flat).astype(np.float64).reshape(rows.shape[:-1])
        return scores

    def proposers(self, machine: Machine) -> ModelProposers:
        """The factory of proposers for a session's tasks on a machine."""
        return ModelProposers(self, machine)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Candidates that were drawn, and the natural logarithm of their probabilities (n,)."""

    population: Population
    log_chance: Scores


def draw(
    model: ProposingModel,
    decisions: DecisionTables,
    tables: SpaceTables,
    count: int,
    random: Generator,
    *,
    allowed: NDArray[np.int64] | None = None,
) -> Drawn:
    """Candidates, each decision drawn by what the model takes to be likely; equal ones may be among
    them, and fewer come back where hardly anything keeps to the limits.

    allowed   the sketches to draw from; all where None
    """
    numbers = np.arange(len(decisions.structures)) if allowed is None else allowed
    logs = _log_chances(model.scores(decisions.structures[numbers]))
    parts: list[Population] = []
    chances: list[Scores] = []
    missing = count
    for _ in range(_ROUNDS):
        if missing <= 0:
            break
        rows = _pick(np.repeat(logs[None], missing, axis=0), random)
        sketch = numbers[rows].astype(np.int32)
        genes = np.zeros((missing, tables.width), np.int64)
        chance = logs[rows].copy()
        for number, own in by_sketch(sketch):
            genes[own], taken = _grow(model, decisions, number, len(own), tables.width, random)
            chance[own] += taken
        drawn = Population(sketch, genes)
        is_valid = tables.valid(drawn)
        parts.append(drawn.take(is_valid))
        chances.append(chance[is_valid])
        missing -= int(is_valid.sum())
    if not parts:
        return Drawn(Population.empty(tables.width), np.empty(0))
    return Drawn(Population.joined(parts), np.concatenate(chances))


def log_chances(model: ProposingModel, decisions: DecisionTables, population: Population) -> Scores:
    """The natural logarithm of the probability that each candidate would be drawn (n,)."""
    first = _log_chances(model.scores(decisions.structures))
    chances = first[population.sketch]
    for number, own in by_sketch(population.sketch):
        prefix = Prefix.begun(decisions.sketch(number), len(own))
        for position, choice in enumerate(decisions.sketch(number).choices):
            genes = population.genes[own, position]
            logs = _log_chances(model.scores(decisions.rows(number, position, prefix)))
            chances[own] += logs[np.arange(len(own)), genes]
            prefix = prefix.then(choice, genes)
    return chances


def _grow(
    model: ProposingModel,
    decisions: DecisionTables,
    number: int,
    count: int,
    width: int,
    random: Generator,
) -> tuple[Genes, Scores]:
    """The choices of some candidates of one sketch, and their log chances."""
    table = decisions.sketch(number)
    prefix = Prefix.begun(table, count)
    genes = np.zeros((count, width), np.int64)
    chance = np.zeros(count)
    for position, choice in enumerate(table.choices):
        whole = np.concatenate([prefix.taken, prefix.room], axis=1)
        _, first, same = np.unique(whole, axis=0, return_index=True, return_inverse=True)
        few = Prefix(prefix.taken[first], prefix.room[first])
        logs = _log_chances(model.scores(decisions.rows(number, position, few)))[same.reshape(-1)]
        rows = _pick(logs, random)
        genes[:, position] = rows
        chance += logs[np.arange(count), rows]
        prefix = prefix.then(choice, rows)
    return genes, chance


def _log_chances(scores: Scores) -> Scores:
    """The logarithm of the softmax over the last axis."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    chances: Scores = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return chances


def _pick(logs: Scores, random: Generator) -> NDArray[np.int64]:
    """A column for each row (n, ways), drawn by its chances."""
    sums = np.cumsum(np.exp(logs), axis=1)
    at = random.random(len(logs))[:, None] * sums[:, -1:]
    columns: NDArray[np.int64] = np.minimum((sums <= at).sum(axis=1), logs.shape[1] - 1)
    return columns


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
        drawn = draw(self._model, self._decisions, self._tables, count, random, allowed=allowed)
        return drawn.population

    def first(self, count: int, random: Generator, variety: float = 1.0) -> Population:
        """`count` programs to measure before any other, the most promising first, each once: likely
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


FILE = ArrayFile("proposing model", 1, "train it again, or search without it")


def save_proposing_model(model: ProposingModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file; equal models give equal files.  Raises: OutputError."""
    fields = {"columns": COLUMN_DIGEST, "statistics": dict(model.statistics)}
    FILE.save(path, fields, model.trees.arrays)


def load_proposing_model(path: str | os.PathLike[str]) -> ProposingModel:
    """Read what `save_proposing_model` wrote.

    Raises:  RecordError for a file that cannot be read, is damaged, comes from another version, or
             was trained on other columns.
    """
    about, arrays = FILE.load(path)
    if about.get("columns") != COLUMN_DIGEST:
        reason = f"it was trained on other columns, by version {about.get('tool')!r}"
        raise FILE.fault(path, reason)
    try:
        trees = Forest.of_arrays(arrays, len(COLUMNS), is_rounded=True)
        return ProposingModel(trees, about["statistics"])
    except RecordError as error:
        raise FILE.fault(path, f"{error.where}: {error.reason}") from None
    except (KeyError, TypeError) as error:
        reason = f"a field is missing, or is not what it should be: {error}"
        raise FILE.fault(path, reason) from None
