"""The learned model of a session by default: boosted trees over statements.

The score of a program is the sum of the trees' values over its rows, so that one model serves
programs of any number of statements, and all operators.

Source:   Zheng et al., Ansor, OSDI 2020, section 5.2.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorwright.tuning.features import STATEMENT, FeatureSet
from tensorwright.tuning.models.fading import RefitPolicy
from tensorwright.tuning.models.learned import LearnedModel
from tensorwright.tuning.models.protocol import CostModel
from tensorwright.tuning.models.settings import BoostedSettings


class BoostedModel(LearnedModel):
    """A `LearnedModel` of boosted trees; the arguments are explained there."""

    def __init__(
        self,
        settings: BoostedSettings | None = None,
        prior: CostModel | None = None,
        policy: RefitPolicy | None = None,
        on_notice: Callable[[str], None] | None = None,
        features: FeatureSet = STATEMENT,
    ) -> None:
        super().__init__(settings or BoostedSettings(), prior, policy, on_notice, features)
