"""The time model of a target: trained trees for processors, a page of formulas for cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tensorwright.base import ByKind, TargetKind, TargetProtocol, of_kind
from tensorwright.machine import Card, Machine
from tensorwright.tuning.models import Features, Sample, Scores
from tensorwright.tuning.time_model.launch_times import LaunchTimes
from tensorwright.tuning.time_model.model import Policy, Prediction
from tensorwright.tuning.time_model.pretrained import pretrained_model


class AnyTimeModel(Protocol):
    """Predicts times of programs for one kind of machine.  Threads: any number may call it."""

    def __hash__(self) -> int:
        """Of the model, which never changes."""

    @property
    def policy(self) -> Policy:
        """The policy of choosing by its predictions."""

    @property
    def digest(self) -> str:
        """A short text that differs from that of any other model, for the keys of caches."""

    def predict(self, features: Features, machine: Any) -> Prediction:
        """The times of programs, on a machine of its kind.

        Shapes:  features (programs, statements, features) -> (programs,)
        """


TIME_MODELS: ByKind[Callable[[], AnyTimeModel | None]] = {
    TargetKind.CPU: (pretrained_model,),
    TargetKind.GPU: (LaunchTimes,),
}
"""One for each kind; None if the file of trees cannot be used."""


def time_model_of(target: TargetProtocol) -> AnyTimeModel | None:
    """The model in force for a target.  Raises: MachineError if its kind has none."""
    (make,) = of_kind(TIME_MODELS, target, "time models")
    return make()


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
