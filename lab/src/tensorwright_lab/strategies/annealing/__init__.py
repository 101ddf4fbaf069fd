"""Simulated annealing over arrays of chains. Read `chains.py`, then `search.py`."""

from tensorwright_lab.strategies.annealing.archive import Archive
from tensorwright_lab.strategies.annealing.chains import Walk, anneal
from tensorwright_lab.strategies.annealing.options import (
    TRAINED,
    USUAL,
    VANILLA,
    AnnealingOptions,
    Cooling,
    Pick,
    Scale,
)
from tensorwright_lab.strategies.annealing.search import AnnealingFactory, AnnealingSearch
from tensorwright_lab.strategies.annealing.temperature import (
    Temperatures,
    unit_of,
    wanted_acceptance,
)

__all__ = [
    "TRAINED",
    "USUAL",
    "VANILLA",
    "AnnealingFactory",
    "AnnealingOptions",
    "AnnealingSearch",
    "Archive",
    "Cooling",
    "Pick",
    "Scale",
    "Temperatures",
    "Walk",
    "anneal",
    "unit_of",
    "wanted_acceptance",
]
