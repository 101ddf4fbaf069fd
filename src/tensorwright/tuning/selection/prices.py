"""What untuned workloads take, for whoever compares programs of different workloads."""

from __future__ import annotations

from math import sqrt

from tensorwright.base import TensorwrightError
from tensorwright.machine import NOMINAL
from tensorwright.schedule import Workload
from tensorwright.tuning.selection.predictor import Predictor


def predicted_price(predictor: Predictor, workload: Workload) -> float | None:
    """Seconds of a step of a network under the schedule that a predictor chooses.

    Between what is likely and what is rarely exceeded: of two alike, the certain is better.  None
    for a program that cannot be priced or scheduled.
    """
    try:
        estimate = predictor.best(workload).estimate
    except TensorwrightError:
        return None
    if estimate is None:
        return None
    return sqrt(estimate.seconds * estimate.upper_seconds) + NOMINAL.call_s
