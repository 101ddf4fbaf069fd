"""The cost model of a session."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tensorwright.base import CpuTarget, RecordError, Target
from tensorwright.machine import machine_of
from tensorwright.tuning.features import STATEMENT, FeatureSet
from tensorwright.tuning.models.blended import BlendedModel
from tensorwright.tuning.models.fading import Fading, RefitPolicy
from tensorwright.tuning.models.learned import LearnedModel
from tensorwright.tuning.models.protocol import CostModel
from tensorwright.tuning.models.roofline import RooflineModel
from tensorwright.tuning.models.saved_model import SavedModel, load_model
from tensorwright.tuning.models.settings import BoostedSettings, FitSettings, LossKind

_TRAINED_HALF_LIFE = 512.0  # samples: a prior from many workloads outlasts a dozen rounds


def make_model(
    target: Target,
    threads: int,
    seed: int = 0,
    saved: SavedModel | str | os.PathLike[str] | None = None,
    on_notice: Callable[[str], None] | None = None,
    prior: CostModel | None = None,
    settings: FitSettings | None = None,
    features: FeatureSet = STATEMENT,
    fading: Fading = Fading.HALVING,
) -> LearnedModel:
    """The learned model, which starts from a prior, and from a saved model, if any.

    saved      the model or its file, which may be missing
    prior      a model trained on many workloads, which judges statements; None: the roofline.
               Other features have neither
    on_notice  told, in a sentence, if the library that fits is missing; a warning if None
    settings   how it is fitted; boosted trees on pairs if None
    fading     how the prior gives way to own measurements
    Raises:    RecordError for a file that is not a model, or a model for other features.
    """
    half_life = RefitPolicy().half_life if prior is None else _TRAINED_HALF_LIFE
    policy = RefitPolicy(half_life=half_life, fading=fading)
    if features is STATEMENT and isinstance(target, CpuTarget):
        prior = prior or RooflineModel(machine_of(target, threads))
    before: SavedModel | None = None
    if isinstance(saved, SavedModel):
        before = saved
    elif saved is not None and Path(saved).exists():
        before = load_model(saved)
    if before is not None:
        if before.feature_set != features.name:
            raise _other_features(before, features)
        is_alike = prior is not None and before.loss is not LossKind.SQUARES
        prior = BlendedModel(before, prior) if prior is not None and is_alike else before
    chosen = settings or BoostedSettings(seed=seed)
    return LearnedModel(chosen, prior, policy, on_notice, features)


def _other_features(before: SavedModel, features: FeatureSet) -> RecordError:
    return RecordError(
        stage="cost model",
        where=f"model of {before.samples} programs",
        reason=f"it judges the features {before.feature_set!r}, and not {features.name!r}",
        remedy=f"choose the features {before.feature_set!r}, or another model to start from",
    )
