"""Evolutionary search over arrays of candidates. Read `population.py`, then `search.py`."""

from tensorwright.tune.evolution.ablations import (
    limited_space,
    without_evolution,
    without_refinement,
)
from tensorwright.tune.evolution.atlas import Atlas, Weights, make_atlas
from tensorwright.tune.evolution.beam import BeamFactory, BeamSearch
from tensorwright.tune.evolution.guide import Guide, RandomGuide
from tensorwright.tune.evolution.history import History, Outcome
from tensorwright.tune.evolution.model_guide import (
    FeatureSource,
    ModelGuide,
    ModelGuides,
)
from tensorwright.tune.evolution.options import EvolutionOptions
from tensorwright.tune.evolution.population import Population
from tensorwright.tune.evolution.search import EvolutionarySearch, EvolutionFactory
from tensorwright.tune.evolution.standard import evolution_by
from tensorwright.tune.evolution.variation import cross, everything, mutate, neighbourhood, sample

__all__ = [
    "Atlas",
    "BeamFactory",
    "BeamSearch",
    "EvolutionFactory",
    "EvolutionOptions",
    "EvolutionarySearch",
    "FeatureSource",
    "Guide",
    "History",
    "ModelGuide",
    "ModelGuides",
    "Outcome",
    "Population",
    "RandomGuide",
    "Weights",
    "cross",
    "everything",
    "evolution_by",
    "limited_space",
    "make_atlas",
    "mutate",
    "neighbourhood",
    "sample",
    "without_evolution",
    "without_refinement",
]
