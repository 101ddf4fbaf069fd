"""The distribution of ratios: a default schedule's time over that of the best of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

LIMIT = 3.0
"""The ratio to the best from which on a default schedule counts as a catastrophe."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of some ratios, lower is better; NaN where there are none.

    mean        geometric                   half, p90, p99   so many of a hundred are not above
    most        the largest                 above            how many are above `LIMIT`
    """

    count: int
    mean: float
    half: float
    p90: float
    p99: float
    most: float
    above: int

    def to_data(self) -> dict[str, float | None]:
        """For JSON, which has no NaN."""
        return {name: None if each != each else each for name, each in asdict(self).items()}


def distribution_of(ratios: Sequence[float]) -> Distribution:
    """Sum ratios up; each is above 0."""
    if not ratios:
        nan = float("nan")
        return Distribution(0, nan, nan, nan, nan, nan, 0)
    values = np.array(ratios)
    half, p90, p99 = (float(np.quantile(values, share)) for share in (0.5, 0.9, 0.99))
    mean = float(np.exp(np.log(values).mean()))
    above = int(np.sum(values > LIMIT))
    return Distribution(len(values), mean, half, p90, p99, float(values.max()), above)
