"""Fit a proposing model to examples."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorwright.base import MachineError
from tensorwright.tuning.models import Forest
from tensorwright.tuning.models.protocol import GrowthSettings
from tensorwright_lab.proposing.examples import Examples
from tensorwright_lab.proposing.model import ProposingModel

TREES_MODULE = "tensorwright_lab.proposing.lightgbm_ways"


@dataclass(frozen=True, slots=True)
class WayTreeSettings(GrowthSettings):
    """As `GrowthSettings`.

    Good schedules of 690 workloads that were held out decided about tiles and the like with a
    likelihood of 0.332 by 400 trees, 0.326 by 150 (evenly 0.163); about structures with 0.260 and
    0.248 (0.174).
    """

    rounds: int = 300
    learning_rate: float = 0.1
    least_rows: int = 30
    l2: float = 2.0
    feature_share: float = 0.3
    threads: int = 1


def fit(
    examples: Examples,
    settings: WayTreeSettings | None = None,
    statistics: Mapping[str, Any] | None = None,
) -> ProposingModel:
    """Trees under whose scores what was taken is likely.

    Raises:  MachineError where LightGBM cannot be loaded.
    """
    try:
        module = importlib.import_module(TREES_MODULE)
    except (ImportError, OSError) as error:
        raise MachineError(
            stage="proposing model",
            where="training",
            reason=f"LightGBM cannot be loaded ({error})",
            remedy="install lightgbm and libgomp",
        ) from None
    forest: Forest = module.fit(examples, settings or WayTreeSettings())
    return ProposingModel(forest.rounded, statistics or {})
