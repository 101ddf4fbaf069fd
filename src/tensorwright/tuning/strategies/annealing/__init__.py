"""Simulated annealing over arrays of chains. Read `chains.py`, then `search.py`."""

from tensorwright.tuning.strategies.annealing.archive import Archive
from tensorwright.tuning.strategies.annealing.chains import Walk, anneal
from tensorwright.tuning.strategies.annealing.options import (
    VANILLA,
    AnnealingOptions,
    Cooling,
    Pick,
    Scale,
)
from tensorwright.tuning.strategies.annealing.search import AnnealingFactory, AnnealingSearch
from tensorwright.tuning.strategies.annealing.temperature import (
    Temperatures,
    unit_of,
    wanted_acceptance,
)

__all__ = [
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
