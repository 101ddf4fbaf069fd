"""Searches that are compared with the usual one.

grid.py       every schedule of a space, in a fixed order
genetic.py    AutoTVM's genetic algorithm on measured speeds
beam.py       programs grow choice by choice
ablations.py  evolution with a part left out
"""

from tensorwright_lab.strategies.ablations import (
    RandomGuide,
    RoundRobinScheduler,
    limited_space,
    without_evolution,
    without_refinement,
)
from tensorwright_lab.strategies.beam import BeamFactory
from tensorwright_lab.strategies.genetic import GeneticOptions, GeneticSearch
from tensorwright_lab.strategies.grid import GridSearch, grid

__all__ = [
    "BeamFactory",
    "GeneticOptions",
    "GeneticSearch",
    "GridSearch",
    "RandomGuide",
    "RoundRobinScheduler",
    "grid",
    "limited_space",
    "without_evolution",
    "without_refinement",
]
