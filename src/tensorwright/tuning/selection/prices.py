"""What untuned workloads take, for whoever compares programs of different workloads."""

from __future__ import annotations

from math import sqrt

from tensorwright.base import TensorwrightError
from tensorwright.machine import NOMINAL
from tensorwright.schedule import Workload
from tensorwright.tuning.selection.predictor import Predictor


class PredictedPrices:
    """Prices of workloads under the schedules that a predictor chooses; as it, the same always."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    def seconds_of(self, workload: Workload) -> float | None:
        """Between what is likely and what is rarely exceeded: of two alike, the certain is better.

        None for a program that cannot be priced or scheduled.
        """
        try:
            estimate = self._predictor.best(workload).estimate
        except TensorwrightError:
            return None
        return None if estimate is None else sqrt(estimate.seconds * estimate.upper_seconds)

    def step_seconds(self) -> float:
        """What each kernel costs beside its work."""
        return NOMINAL.call_s
