"""Populations: many candidates of one space as arrays, drawn, varied and picked together.

Read `candidate.py` and `population.py` first, then `space_tables.py`, which says what candidates
of a space may decide.
"""

from tensorwright.tuning.population.candidate import Candidate, candidate_of, default_candidate
from tensorwright.tuning.population.picking import find_new, pick_diverse
from tensorwright.tuning.population.population import Population, by_sketch
from tensorwright.tuning.population.space_tables import SpaceTables, make_space_tables
from tensorwright.tuning.population.variation import (
    cross,
    everything,
    mutate,
    neighbourhood,
    sample,
)

__all__ = [
    "Candidate",
    "Population",
    "SpaceTables",
    "by_sketch",
    "candidate_of",
    "cross",
    "default_candidate",
    "everything",
    "find_new",
    "make_space_tables",
    "mutate",
    "neighbourhood",
    "pick_diverse",
    "sample",
]
