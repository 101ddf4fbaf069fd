"""Populations: many candidates of one space as arrays, drawn, varied and picked together.

Read `population.py` first, then `space_tables.py`, which says what candidates
of a space may decide.
"""

from tensorwright.tuning.population.population import Candidate, Population, default_candidate
from tensorwright.tuning.population.space_tables import make_space_tables
from tensorwright.tuning.population.variation import (
    cross, everything, mutate, neighbourhood, sample,
)
