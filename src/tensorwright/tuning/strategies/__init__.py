"""What proposes candidates. Read `strategy.py` first, then `guided.py`; `named.py` has all."""

from tensorwright.tuning.strategies.named import (
    STRATEGIES, USUAL_STRATEGY, RandomSearch, StrategyChoice, check_strategy, choose_strategy,
    is_guided,
)
from tensorwright.tuning.strategies.sources import MakeProposer, ModelGuide, ModelGuides, Proposer
from tensorwright.tuning.strategies.strategy import Guide, MakeGuide, Outcome, Strategy
