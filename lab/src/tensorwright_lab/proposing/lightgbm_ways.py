"""Fit the trees of a proposing model with LightGBM; imported by name where trees are fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorwright.tuning.models import Forest
from tensorwright.tuning.models.trees.lightgbm_trees import grow
from tensorwright_lab.proposing.examples import Examples, WayTreeSettings, shares_of

_LEAST_HESSIAN = 1e-4


def fit(examples: Examples, settings: WayTreeSettings) -> Forest:
    """Trees that make the cross entropy of what was taken small, decision by decision."""
    weights = np.repeat(examples.weights, examples.counts)

    def slopes(values: Any, _: Any) -> Any:
        shares = shares_of(examples.counts, values)
        gradient = weights * (shares - examples.taken)
        hessian = weights * np.maximum(shares * (1.0 - shares), _LEAST_HESSIAN)
        return gradient, hessian

    more = {"min_sum_hessian_in_leaf": 0.01, "num_threads": settings.threads}
    return grow(examples.rows, slopes, settings, more)
