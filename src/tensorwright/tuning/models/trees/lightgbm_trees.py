"""Fit boosted trees with LightGBM: the one module that imports it, which takes a second or two.

It is imported by name where trees are fitted; LightGBM itself needs libgomp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import lightgbm
import numpy as np

from tensorwright.tuning.models.losses import Column, make_loss, row_slopes
from tensorwright.tuning.models.protocol import (
    BoostedSettings,
    Features,
    GrowthSettings,
    TrainingSet,
)
from tensorwright.tuning.models.trees.forest import Forest, parse_lightgbm

Slopes: TypeAlias = Callable[[Any, Any], Any]


def fit(data: TrainingSet, margin: Column, settings: BoostedSettings) -> Forest:
    """Trees that, added up over a program's rows and to its margin, make the loss small.

    margin  (programs,): where the scores start from
    Equal arguments give equal trees: one thread, and no choice that depends on timing.
    """
    loss = make_loss(data, settings)
    step = 0

    def slopes(values: Any, _: Any) -> Any:
        nonlocal step
        step += 1
        scores = margin + data.sums(values)
        return row_slopes(data, loss.slopes(scores, step))

    more = {
        "min_sum_hessian_in_leaf": settings.least_hessian,
        "feature_fraction_bynode": settings.feature_share,
    }
    return grow(data.rows, slopes, settings, more)


def grow(
    rows: Features, slopes: Slopes, settings: GrowthSettings, more: Mapping[str, object]
) -> Forest:
    """Trees over rows (rows, columns), by the slopes of a loss at the trees' values (rows,).

    more   parameters of LightGBM beside those that all trees are grown with
    """
    parameters = {
        "objective": slopes,
        "num_leaves": settings.leaves,
        "learning_rate": settings.learning_rate,
        "max_bin": settings.bins,
        "min_data_in_leaf": settings.least_rows,
        "lambda_l2": settings.l2,
        "feature_fraction": settings.feature_share,
        "seed": settings.seed,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "use_missing": False,
        "feature_pre_filter": False,
        "verbose": -1,
        **more,
    }
    labels = np.zeros(len(rows))  # not used: the loss gives the slopes
    data = lightgbm.Dataset(rows, label=labels, free_raw_data=True)
    booster = lightgbm.train(parameters, data, settings.rounds)
    return parse_lightgbm(booster.model_to_string(), rows.shape[1])
