"""Evolutionary search over arrays of candidates. Read `../population.py`, then `search.py`."""

from tensorwright.tuning.strategies.evolution.ablations import (
    limited_space,
    without_evolution,
    without_refinement,
)
from tensorwright.tuning.strategies.evolution.options import EvolutionOptions
from tensorwright.tuning.strategies.evolution.search import EvolutionarySearch, EvolutionFactory

__all__ = [
    "EvolutionFactory",
    "EvolutionOptions",
    "EvolutionarySearch",
    "limited_space",
    "without_evolution",
    "without_refinement",
]
