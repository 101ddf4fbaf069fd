"""Fit the trees of the time model with LightGBM; imported by name where trees are fitted."""

from __future__ import annotations

from typing import Any

from tensorwright.tuning.models import Forest
from tensorwright.tuning.models.trees.lightgbm_trees import grow
from tensorwright_lab.pretraining.programs import Programs
from tensorwright_lab.pretraining.time_loss import (
    TimeLoss,
    TimeTreeSettings,
    row_slopes,
    weights_of,
)


def fit(programs: Programs, loss: TimeLoss, settings: TimeTreeSettings) -> Forest:
    """Trees that, added to the base of each statement, make the loss of the programs small.

    Equal arguments give equal trees, whatever the number of threads.
    """
    weights = weights_of(programs)

    def slopes(values: Any, _: Any) -> Any:
        predicted, shares = programs.total(values)
        return row_slopes(programs, shares, loss.slopes(programs, weights, predicted))

    more = {"min_sum_hessian_in_leaf": 0.01, "num_threads": settings.threads}
    return grow(programs.rows, slopes, settings, more)
