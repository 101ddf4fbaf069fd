"""Evolutionary search over arrays of candidates. Read `../population.py`, then `search.py`."""

from tensorwright.tuning.strategies.evolution.ablations import (
    limited_space,
    without_evolution,
    without_refinement,
)
from tensorwright.tuning.strategies.evolution.options import EvolutionOptions
from tensorwright.tuning.strategies.evolution.search import EvolutionarySearch, EvolutionFactory
from tensorwright.tuning.strategies.evolution.standard import evolution_by

__all__ = [
    "EvolutionFactory",
    "EvolutionOptions",
    "EvolutionarySearch",
    "evolution_by",
    "limited_space",
    "without_evolution",
    "without_refinement",
]
