"""Fit the trees of the time model with LightGBM; imported by name where trees are fitted."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from tensorwright.tuning.models import Forest, parse_lightgbm
from tensorwright.tuning.pretraining.programs import Programs
from tensorwright.tuning.pretraining.settings import TimeTreeSettings
from tensorwright.tuning.pretraining.time_loss import TimeLoss, row_slopes, weights_of


def fit(programs: Programs, loss: TimeLoss, settings: TimeTreeSettings) -> Forest:
    """Trees that, added to the base of each statement, make the loss of the programs small.

    Equal arguments give equal trees, whatever the number of threads.
    """
    weights = weights_of(programs)

    def slopes(values: Any, _: Any) -> Any:
        predicted, shares = programs.total(values)
        return row_slopes(programs, shares, loss.slopes(programs, weights, predicted))

    parameters = {
        "objective": slopes,
        "num_leaves": settings.leaves,
        "learning_rate": settings.learning_rate,
        "max_bin": settings.bins,
        "min_data_in_leaf": settings.least_rows,
        "min_sum_hessian_in_leaf": 0.01,
        "lambda_l2": settings.l2,
        "feature_fraction": settings.feature_share,
        "seed": settings.seed,
        "num_threads": settings.threads,
        "deterministic": True,
        "force_row_wise": True,
        "use_missing": False,
        "feature_pre_filter": False,
        "verbose": -1,
    }
    labels = np.zeros(len(programs.rows))  # the loss knows better
    rows = lightgbm.Dataset(programs.rows, label=labels, free_raw_data=True)
    booster = lightgbm.train(parameters, rows, settings.rounds)
    return parse_lightgbm(booster.model_to_string())
