"""Searches that ask no model: `grid.py` goes through a space, `genetic.py` breeds."""

from tensorwright.tuning.strategies.unguided.genetic import (
    GeneticFactory,
    GeneticOptions,
    GeneticSearch,
)
from tensorwright.tuning.strategies.unguided.grid import GridSearch, grid

__all__ = ["GeneticFactory", "GeneticOptions", "GeneticSearch", "GridSearch", "grid"]
