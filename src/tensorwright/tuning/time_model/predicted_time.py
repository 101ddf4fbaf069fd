"""The time model as a cost model, for what searches with one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorwright.machine import Card, Machine
from tensorwright.tuning.models import Features, Sample, Scores
from tensorwright.tuning.time_model.models_by_kind import AnyTimeModel


@dataclass(frozen=True, slots=True, eq=False)
class PredictedTime:
    """A `CostModel`: minus log2 of the seconds predicted for one machine. Learns nothing."""

    model: AnyTimeModel
    machine: Machine | Card

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        predicted = self.model.predict(features, self.machine)
        scores: Scores = -predicted.scores(self.model.policy.caution)
        return scores

    def observe(self, samples: Sequence[Sample]) -> None:
        """Nothing is learned."""

    def update(self) -> bool:
        """Nothing changes."""
        return False
