"""How the trees of the time model are grown."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.tuning.models.settings import GrowthSettings


@dataclass(frozen=True, slots=True)
class TimeTreeSettings(GrowthSettings):
    """As `GrowthSettings`; `threads` changes how long it takes, and nothing else.

    Over three folds of 500 workloads, choices by these took 1.19 times the best of 24 (99 % below
    3.0), with half of the features for each tree and a rate of 0.1 1.22 (99 % below 5.6); fewer
    leaves, more rows a leaf made no difference above noise.
    """

    rounds: int = 400
    learning_rate: float = 0.06
    least_rows: int = 20
    l2: float = 5.0
    feature_share: float = 0.3
    threads: int = 1
