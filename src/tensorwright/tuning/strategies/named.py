"""Strategies by name, and by their settings: the choices of a user.

Those that are only compared are part of the laboratory, and are loaded by name.

Random search: sketches by turns at random, decisions uniformly, nothing twice.

The baseline that every learned strategy must beat.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tensorwright.base import LaboratoryPart, UsageError, did_you_mean
from tensorwright.records import Record
from tensorwright.tuning.population.population import Candidate, candidate_of, default_candidate
from tensorwright.tuning.space.sketch import Sketch, Space
from tensorwright.tuning.strategies.annealing import VANILLA, AnnealingOptions
from tensorwright.tuning.strategies.evolution import EvolutionOptions
from tensorwright.tuning.strategies.guided import GuidedFactory, GuidedOptions
from tensorwright.tuning.strategies.sources import MakeProposer
from tensorwright.tuning.strategies.strategy import MakeGuide, StrategyFactory
from tensorwright.tuning.task import Task

_DRAWS_PER_CANDIDATE = 30
_LARGEST_LISTED = 20_000


class RandomSearch:
    """Sampling without replacement; the default schedule comes first.

    Resuming needs no saved generator: with the same seed the same candidates are drawn again, and
    those on record are passed over.
    """

    def __init__(self, task: Task, space: Space, seed: int) -> None:
        self._space = space
        self._random = random.Random(f"{seed} {task.workload.key}")
        self._seen: set[str] = set()
        self._drawn: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
        self._is_first = True

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        candidates: list[Candidate] = []
        for candidate in self._draw(_DRAWS_PER_CANDIDATE * count):
            if candidate.trace not in self._seen:
                self._seen.add(candidate.trace)
                candidates.append(candidate)
            if len(candidates) >= count:
                return tuple(candidates)
        if self._space.size <= _LARGEST_LISTED:
            candidates += self._rest(count - len(candidates))
        return tuple(candidates)

    def observe(self, records: Sequence[Record]) -> None:
        """Exclude the programs of records."""
        self._seen.update(record.trace for record in records)

    def _draw(self, most: int) -> Iterator[Candidate]:
        """Candidates with decisions not drawn before; gives up after `most` draws."""
        sketches = self._space.sketches
        if not sketches:
            return
        if self._is_first:
            self._is_first = False
            yield default_candidate(self._space)
        for _ in range(most):
            sketch = self._random.choice(sketches)
            decisions = tuple(sorted(sketch.sample(self._random, self._space.cut).items()))
            if (sketch.name, decisions) not in self._drawn:
                self._drawn.add((sketch.name, decisions))
                yield candidate_of(sketch, decisions)

    def _rest(self, count: int) -> list[Candidate]:
        """The programs of a small space that are left, in random order."""
        everything = [pair for sketch in self._space.sketches for pair in _list(sketch)]
        self._random.shuffle(everything)
        candidates: list[Candidate] = []
        for sketch, decisions in everything:
            if len(candidates) >= count:
                break
            candidate = candidate_of(sketch, decisions)
            if candidate.trace not in self._seen:
                self._seen.add(candidate.trace)
                candidates.append(candidate)
        return candidates


def _list(sketch: Sketch) -> Iterator[tuple[Sketch, tuple[tuple[str, int], ...]]]:
    for genes in itertools.product(*(range(len(choice.values)) for choice in sketch.choices)):
        decisions = sketch.decisions_of(genes)
        if sketch.is_valid(decisions):
            yield sketch, tuple(sorted(decisions.items()))


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
