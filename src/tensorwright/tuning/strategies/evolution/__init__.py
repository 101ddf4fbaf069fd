"""Evolutionary search over arrays of candidates. Read `../population.py`, then `search.py`."""

from tensorwright.tuning.strategies.evolution.options import EvolutionOptions
from tensorwright.tuning.strategies.evolution.search import EvolutionarySearch, EvolutionFactory

__all__ = ["EvolutionFactory", "EvolutionOptions", "EvolutionarySearch"]
