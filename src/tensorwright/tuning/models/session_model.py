"""The cost model of a session."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tensorwright.base import Target
from tensorwright.tuning.models.blended import BlendedModel
from tensorwright.tuning.models.boosted import BoostedModel, RefitPolicy
from tensorwright.tuning.models.machine import machine_of
from tensorwright.tuning.models.protocol import CostModel
from tensorwright.tuning.models.roofline import RooflineModel
from tensorwright.tuning.models.saved_model import SavedModel, load_model
from tensorwright.tuning.models.settings import BoostedSettings, LossKind

_TRAINED_HALF_LIFE = 512.0  # samples: what many workloads have taught outlasts a dozen rounds


def make_model(
    target: Target,
    threads: int,
    seed: int = 0,
    saved: SavedModel | str | os.PathLike[str] | None = None,
    on_notice: Callable[[str], None] | None = None,
    prior: CostModel | None = None,
) -> BoostedModel:
    """The learned model, which starts from what is known before, and from saved trees, if any.

    saved      the trees or their file, which may be missing
    prior      what was trained before on many workloads; the roofline where None
    on_notice  told, in a sentence, if LightGBM cannot be used; a warning where None
    Raises:    RecordError for a file that is no model, or one for other features.
    """
    policy = RefitPolicy() if prior is None else RefitPolicy(half_life=_TRAINED_HALF_LIFE)
    prior = prior or RooflineModel(machine_of(target, threads))
    trees = saved if saved is None or isinstance(saved, SavedModel) else _read(saved)
    if trees is not None:
        is_alike = trees.loss is LossKind.PAIRS
        prior = BlendedModel(trees, prior) if is_alike else trees
    return BoostedModel(BoostedSettings(seed=seed), prior, policy, on_notice)


def _read(path: str | os.PathLike[str]) -> SavedModel | None:
    return load_model(path) if Path(path).exists() else None
