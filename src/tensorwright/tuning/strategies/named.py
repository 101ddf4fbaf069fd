"""Strategies by name, and by their settings: the choices of a user.

Those that are only compared are part of the laboratory, and are loaded by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tensorwright.base import LaboratoryPart, UsageError, did_you_mean
from tensorwright.tuning.strategies.annealing import VANILLA, AnnealingFactory, AnnealingOptions
from tensorwright.tuning.strategies.evolution import EvolutionFactory, EvolutionOptions
from tensorwright.tuning.strategies.guide import MakeGuide
from tensorwright.tuning.strategies.random_search import RandomSearch
from tensorwright.tuning.strategies.sources import MakeProposer
from tensorwright.tuning.strategies.strategy import StrategyFactory

Settings: TypeAlias = EvolutionOptions | AnnealingOptions
StrategyChoice: TypeAlias = str | Settings | StrategyFactory
"""A name of `STRATEGIES`, settings of one of them, or a factory of searches."""

USUAL_STRATEGY = "evolution"
STRATEGIES: Mapping[str, Settings | StrategyFactory | LaboratoryPart] = {
    USUAL_STRATEGY: EvolutionOptions(),
    "annealing": AnnealingOptions(),
    "annealing-vanilla": VANILLA,
    "genetic": LaboratoryPart("strategy genetic", "strategies", "GeneticSearch"),
    "grid": LaboratoryPart("strategy grid", "strategies", "GridSearch"),
    "random": RandomSearch,
}

TRAINED: Mapping[str, Settings] = {
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
    match chosen:
        case EvolutionOptions():
            return EvolutionFactory(make_guide, chosen, make_proposer)
        case AnnealingOptions():
            return AnnealingFactory(make_guide, chosen, make_proposer)
        case _:
            return chosen


def is_guided(choice: StrategyChoice) -> bool:
    """Whether a strategy asks a model what to try."""
    settings = STRATEGIES[choice] if isinstance(choice, str) else choice
    return isinstance(settings, EvolutionOptions | AnnealingOptions)


def check_strategy(choice: StrategyChoice) -> None:
    """Refuse an unknown strategy, or one that is not installed, as `choose_strategy` does."""
    _named(choice)


def _named(choice: StrategyChoice) -> Settings | StrategyFactory:
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
