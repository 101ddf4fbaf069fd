"""The search of a session: evolution under a cost model that all its tasks share."""

from __future__ import annotations

from tensorwright.base import Target
from tensorwright.tuning.features import Featurizer
from tensorwright.tuning.models import CostModel
from tensorwright.tuning.strategies.evolution.options import EvolutionOptions
from tensorwright.tuning.strategies.evolution.search import EvolutionFactory
from tensorwright.tuning.strategies.model_guide import ModelGuides


def evolution_by(
    model: CostModel, target: Target, options: EvolutionOptions | None = None
) -> EvolutionFactory:
    """What makes the searches of a session's tasks; each learns from the records of all."""
    return EvolutionFactory(ModelGuides(model, Featurizer, target), options)
