"""The search of a session: evolution under a cost model that all its tasks share."""

from __future__ import annotations

from tensorwright.base import Target
from tensorwright.tune.evolution.model_guide import ModelGuides
from tensorwright.tune.evolution.options import EvolutionOptions
from tensorwright.tune.evolution.search import EvolutionFactory
from tensorwright.tune.features import Featurizer
from tensorwright.tune.models import CostModel


def evolution_by(
    model: CostModel, target: Target, options: EvolutionOptions | None = None
) -> EvolutionFactory:
    """What makes the searches of a session's tasks; each learns from the records of all."""
    return EvolutionFactory(ModelGuides(model, Featurizer, target), options)
