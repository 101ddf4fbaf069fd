"""The temperatures of chains, step by step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tensorwright.tuning.strategies.annealing.options import AnnealingOptions, Cooling, Scale

_NORMAL_QUARTILES = 1.349  # from quartile to quartile of a normal distribution, in its deviations
_LEAST_SHARE = 1e-3  # exponential cooling ends at this share of the first, not at 0
_STEP = 1.05  # the factor by which adaptive cooling changes the temperature in a step

Column = NDArray[np.float64]


class Temperatures:
    """Of some chains in one round; mutable.

    unit   of the options' temperatures
    """

    def __init__(self, options: AnnealingOptions, unit: float, chains: int) -> None:
        self._options = options
        self._first = options.first * unit
        self._last = options.last * unit
        rung = np.arange(chains) % options.rungs
        self._shares: Column = options.coldest ** (rung / max(options.rungs - 1, 1))
        self._base = self._first
        self._from = self._first
        self._begun = 0

    def at(self, step: int) -> Column:
        """(chains,): the temperatures for accepting steps."""
        options = self._options
        share = (step - self._begun) / max(options.steps - self._begun, 1)
        match options.cooling:
            case Cooling.CONSTANT:
                self._base = self._from
            case Cooling.LINEAR:
                self._base = self._from + share * (self._last - self._from)
            case Cooling.EXPONENTIAL:
                last = max(self._last, _LEAST_SHARE * self._first)
                self._base = self._from * (last / self._from) ** share if self._from else 0.0
            case Cooling.ADAPTIVE:
                pass
        return self._base * self._shares

    def note(self, step: int, accepted: float) -> None:
        """Take in the share of a step that was accepted."""
        if self._options.cooling is not Cooling.ADAPTIVE:
            return
        is_hot = accepted > wanted_acceptance(step / self._options.steps)
        base = self._base / _STEP if is_hot else self._base * _STEP
        self._base = min(max(base, self._last), self._first)

    def reheat(self, step: int) -> None:
        """Back to half of the last start, and down again in the remaining steps."""
        self._from = self._base = max(0.5 * self._from, self._last)
        self._begun = step


def wanted_acceptance(share: float) -> float:
    """The share of steps to be accepted when so much of a round is over.

    Source:  Lam and Delosme 1988, as modified by Boyan, Learning Evaluation Functions for Global
             Optimization, 1998: soon 0.44, that for half of the time, then down to none.
    """
    if share < 0.15:
        return float(0.44 + 0.56 * 560.0 ** (-share / 0.15))
    if share < 0.65:
        return 0.44
    return float(0.44 * 440.0 ** (-(share - 0.65) / 0.35))


def unit_of(scale: Scale, scores: Column) -> float:
    """The unit of temperatures, from the scores of random programs."""
    if scale is Scale.SCORES:
        return 1.0
    finite = scores[np.isfinite(scores)]
    if len(finite) < 2:
        return 1.0
    low, high = np.quantile(finite, (0.25, 0.75))
    spread = float(high - low) / _NORMAL_QUARTILES or float(np.std(finite))
    return spread if spread > 0 and math.isfinite(spread) else 1.0
