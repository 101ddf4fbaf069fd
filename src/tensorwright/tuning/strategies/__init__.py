"""What proposes candidates. Read `strategy.py` first, then `evolution/`; `named.py` has all."""

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
from tensorwright.tuning.strategies.random_search import RandomSearch
from tensorwright.tuning.strategies.sources import MakeProposer, Proposer
from tensorwright.tuning.strategies.strategy import Strategy

__all__ = [
    "STRATEGIES",
    "USUAL_STRATEGY",
    "Guide",
    "MakeGuide",
    "MakeProposer",
    "ModelGuide",
    "ModelGuides",
    "Outcome",
    "Proposer",
    "RandomSearch",
    "Strategy",
    "StrategyChoice",
    "check_strategy",
    "choose_strategy",
    "is_guided",
]
