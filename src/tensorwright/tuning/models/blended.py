"""The sum of two models: one that learned elsewhere, and an analytic one."""

from __future__ import annotations

from collections.abc import Sequence

from tensorwright.tuning.models.protocol import CostModel, Features, Sample, Scores


class BlendedModel:
    """The sum of two models' scores, for models whose scores are of one kind.

    Trees trained on pairs and the roofline are: a difference of their scores is roughly a
    difference of logarithms of time. For operators that the trees had never seen, both together
    ordered 71 % of the pairs correctly, alone 65 and 67 %.
    """

    def __init__(self, first: CostModel, second: CostModel) -> None:
        self._first = first
        self._second = second

    def predict(self, features: Features) -> Scores:
        """As `CostModel.predict`."""
        scores: Scores = self._first.predict(features) + self._second.predict(features)
        return scores

    def observe(self, samples: Sequence[Sample]) -> None:
        """As `CostModel.observe`."""
        self._first.observe(samples)
        self._second.observe(samples)

    def update(self) -> bool:
        """As `CostModel.update`."""
        has_first_changed = self._first.update()
        return self._second.update() or has_first_changed
