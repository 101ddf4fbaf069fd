"""Strategies by name, and by their settings: the choices of a user.

Those that are only compared are part of the laboratory, and are loaded by name.

Random search: sketches at random, decisions uniformly, nothing twice.

The baseline that every learned strategy must beat.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tensorwright.base import LaboratoryPart, UsageError, did_you_mean
from tensorwright.records import Record
from tensorwright.tuning.population import Candidate, make_space_tables, sample
from tensorwright.tuning.population.population import find_new
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.annealing import VANILLA, AnnealingOptions
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedFactory, GuidedOptions
from tensorwright.tuning.strategies.sources import MakeProposer, rest_of
from tensorwright.tuning.strategies.strategy import History, MakeGuide, StrategyFactory
from tensorwright.tuning.task import Task

_DRAWN = 64  # at once
_ROUNDS = 30  # of them that may bring nothing new, before what is left of the space is listed


class RandomSearch:
    """Sampling without replacement; the default schedule comes first.

    Resuming needs no saved generator: with the same seed the same candidates are drawn again, and
    those on record are passed over.
    """

    def __init__(self, task: Task, space: Space, seed: int) -> None:
        self._tables = make_space_tables(space)
        self._history = History(self._tables)
        self._random = np.random.default_rng((seed, zlib.crc32(task.workload.key.encode())))
        self._drawn = self._tables.starts().take(np.zeros(1, np.int64))

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        proposed: list[Candidate] = []
        for _ in range(_ROUNDS):
            new = find_new(self._drawn, self._history.keys)
            proposed += self._history.take_new(new, count - len(proposed))
            if len(proposed) == count:
                return tuple(proposed)
            self._drawn = sample(self._tables, _DRAWN, self._random)
        rest = rest_of(self._tables, self._history, self._random)
        return (*proposed, *self._history.take_new(rest, count - len(proposed)))

    def observe(self, records: Sequence[Record]) -> None:
        """Exclude the programs of records."""
        self._history.observe(records)


StrategyChoice: TypeAlias = str | GuidedOptions | StrategyFactory
"""A name of `STRATEGIES`, settings of one of them, or a factory of searches."""

USUAL_STRATEGY = "evolution"
STRATEGIES: Mapping[str, GuidedOptions | StrategyFactory | LaboratoryPart] = {
    USUAL_STRATEGY: EvolutionOptions(),
    "annealing": AnnealingOptions(),
    "annealing-vanilla": VANILLA,
    "genetic": LaboratoryPart("strategy genetic", "strategies", "GeneticSearch"),
    "grid": LaboratoryPart("strategy grid", "strategies", "GridSearch"),
    "random": RandomSearch,
}

TRAINED: Mapping[str, GuidedOptions] = {
    USUAL_STRATEGY: EvolutionOptions(start_share=0.5),
    "annealing": AnnealingOptions(random_first=0),
}
"""Settings if a model that was trained before excludes structures."""


def choose_strategy(
    choice: StrategyChoice,
    make_guide: MakeGuide,
    *,
    is_trained: bool = False,
    make_proposer: MakeProposer | None = None,
) -> StrategyFactory:
    """The factory of the searches of tasks.

    make_guide      the guide of a strategy that needs one
    is_trained      whether the guide was trained before: a strategy by name then tries fewer
                    structures by rule, and nothing at random first
    make_proposer   of programs from which populations and chains start, beside random ones
    Raises:      UsageError for a name that is none, with a list; MachineError for one of the
                 laboratory, where that is not installed.
    """
    chosen = _named(choice)
    if is_trained and isinstance(choice, str):
        chosen = TRAINED.get(choice, chosen)
    if isinstance(chosen, GuidedOptions):
        return GuidedFactory(make_guide, chosen, make_proposer)
    return chosen


def is_guided(choice: StrategyChoice) -> bool:
    """Whether a strategy asks a model what to try."""
    settings = STRATEGIES[choice] if isinstance(choice, str) else choice
    return isinstance(settings, GuidedOptions)


def check_strategy(choice: StrategyChoice) -> None:
    """Refuse an unknown strategy, or one that is not installed, as `choose_strategy` does."""
    _named(choice)


def _named(choice: StrategyChoice) -> GuidedOptions | StrategyFactory:
    """The strategy of a choice; raises as `choose_strategy`."""
    if not isinstance(choice, str):
        return choice
    if choice not in STRATEGIES:
        names = "one of " + ", ".join(STRATEGIES)
        near = did_you_mean(str(choice), STRATEGIES)
        raise UsageError(
            stage="tune",
            where="strategy",
            reason=f"there is no {choice!r}",
            remedy=f"{near} {names}".strip(),
        )
    named = STRATEGIES[choice]
    if isinstance(named, LaboratoryPart):
        searches: StrategyFactory = named.load()
        return searches
    return named
