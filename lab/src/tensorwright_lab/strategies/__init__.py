"""Searches that are compared with the usual one.

genetic.py    AutoTVM's genetic algorithm on measured speeds, and every schedule in a fixed order
ablations.py  evolution with a part left out, and programs that grow choice by choice
"""

from tensorwright_lab.strategies.ablations import (
    BeamFactory, RandomGuide, RoundRobinScheduler, limited_space, without_evolution,
    without_refinement,
)
from tensorwright_lab.strategies.genetic import GeneticOptions, GeneticSearch, GridSearch, grid
