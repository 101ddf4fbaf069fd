"""The protocol of a cost model: it ranks programs by their features, and learns from measured ones.

A model sees features only. Their length does not depend on the operator, so one model learns from
all workloads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Features: TypeAlias = NDArray[np.float32]
"""Of one program (statements, features) or of many (programs, statements, features)."""
Scores: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A measured program.

    workload     key of its workload: only programs of one workload are compared
    features     (statements, features)
    time_s       seconds per call
    is_censored  it was dropped early, as clearly slower than the best: the time is a lower bound
    """

    workload: str
    features: Features
    time_s: float
    is_censored: bool = False


class CostModel(Protocol):
    """Ranks programs. Equal calls in equal order give equal scores.

    Threads: a model serves one search at a time. `observe` and `update` come between rounds.
    """

    def predict(self, features: Features) -> Scores:
        """A score for each program, higher is better, comparable within one workload.

        Shapes:  features (programs, statements, features) -> (programs,)
        """

    def observe(self, samples: Sequence[Sample]) -> None:
        """Take in measured programs. Failed ones are not samples."""

    def update(self) -> bool:
        """Learn from what was observed, if it is worth the time; whether scores have changed."""
