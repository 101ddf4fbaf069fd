"""Who proposes candidates. Read `strategy.py` first, then `evolution/`; `named.py` has all."""

from tensorwright.tuning.strategies.guide import Guide, MakeGuide
from tensorwright.tuning.strategies.history import Outcome
from tensorwright.tuning.strategies.model_guide import ModelGuide, ModelGuides
from tensorwright.tuning.strategies.named import (
    STRATEGIES,
    USUAL_STRATEGY,
    StrategyChoice,
    check_strategy,
    choose_strategy,
    is_guided,
)
from tensorwright.tuning.strategies.population import Population
from tensorwright.tuning.strategies.random_search import RandomSearch
from tensorwright.tuning.strategies.sources import MakeProposer, Proposer
from tensorwright.tuning.strategies.space_tables import make_space_tables
from tensorwright.tuning.strategies.strategy import Candidate, Strategy
from tensorwright.tuning.strategies.variation import (
    cross,
    everything,
    mutate,
    neighbourhood,
    sample,
)

__all__ = [
    "STRATEGIES",
    "USUAL_STRATEGY",
    "Candidate",
    "Guide",
    "MakeGuide",
    "MakeProposer",
    "ModelGuide",
    "ModelGuides",
    "Outcome",
    "Population",
    "Proposer",
    "RandomSearch",
    "Strategy",
    "StrategyChoice",
    "check_strategy",
    "choose_strategy",
    "cross",
    "everything",
    "is_guided",
    "make_space_tables",
    "mutate",
    "neighbourhood",
    "sample",
]
