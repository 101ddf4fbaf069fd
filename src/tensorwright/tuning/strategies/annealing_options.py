"""The options of simulated annealing: every variation is a field.

The temperatures of chains, step by step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import UsageError
from tensorwright.tuning.population.space_tables import Weights

_EVEN = Weights(1.0, 1.0, 1.0, 1.0, 1.0, is_shared=False)


class Scale(StrEnum):
    """The unit of temperatures."""

    SCORES = "scores"
    SPREAD = "spread"
    """In the spread of the scores of random programs: quartile from quartile, as of a normal
    distribution with the standard deviation 1."""


class Cooling(StrEnum):
    """How the temperature falls from the first to the last."""

    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    ADAPTIVE = "adaptive"
    """So that the share of accepted steps follows a given course (`annealing_options.py`)."""


class Pick(StrEnum):
    """How the programs to be measured are picked from the best that the chains have seen."""

    BEST = "best"
    COVERING = "covering"
    """For scores and for decisions that no other of them takes: `covering.pick_covering`."""


@dataclass(frozen=True, slots=True)
class AnnealingOptions:
    """The numbers of the search; the defaults are meant to be right, `VANILLA` is AutoTVM's.

    Chains
        chains          of one round                 steps   of each chain at most
        leap            share of steps that draw any row of a choice; the others take a neighbour
        weights         of the kinds of steps        tries   so often a step beyond the limits is
                        drawn again before the chain stays where it is
        sketches        the most structures of one round; 0: all
        is_persistent   whether chains go on in the next round where they ended; else a round
                        depends on the records only, and a search that was killed goes on exactly
        measured_share  of the chains that start at the best measured programs
        proposed_share  of the others that a proposing model draws, where there is one
    Temperature, higher is more random
        scale           in what it is told           cooling    how it falls
        first, last     where it starts and ends
        rungs           the temperatures at once, each `1 / rungs` of the chains; those next to
                        each other swap places (parallel tempering)
        coldest         the lowest of them, in the highest
        swap_every      steps from swap to swap
    Where nothing is found
        idle_steps      steps without a new one among the best seen, after which chains are
                        reheated, and finally stop
        reheats         so often the temperature goes back to half of where it was first
        restart_share   of the chains, the worst, that start afresh when reheated
        patience        trials without a gain, after which chains start only from random programs,
                        in the structures that were tried least; the next `patience` trials
                        without one end it; 0: never
        islands         the most structures then
    What is measured
        plan            programs that are planned at once; 0: as many as are asked for
        spare           the best programs to pick from, as a multiple of the plan
        pick            how they are picked          variety    what a decision that no other
                        program of the plan takes is worth, all of a program together, in the
                        spread of the scores of those kept
        epsilon         share of the proposals that are drawn at random
        random_first    random trials before the first plan; none in sessions with a trained
                        model and without settings
        start_share     share of a proposal that structures as chosen by rule may have; the default
                        schedule alone if 0
        refine_share    share of the proposals that are neighbours of the best measured programs

    Source:  temperatures of chains that swap: Earl and Deem, Phys. Chem. Chem. Phys. 7, 2005.
    Raises:  UsageError for numbers that make no sense.
    """

    chains: int = 64
    steps: int = 60
    leap: float = 0.2
    weights: Weights = field(default_factory=Weights)
    tries: int = 2
    sketches: int = 8
    is_persistent: bool = False
    measured_share: float = 0.5
    proposed_share: float = 0.5
    scale: Scale = Scale.SPREAD
    cooling: Cooling = Cooling.EXPONENTIAL
    first: float = 0.5
    last: float = 0.01
    rungs: int = 1
    coldest: float = 0.05
    swap_every: int = 5
    idle_steps: int = 20
    reheats: int = 2
    restart_share: float = 0.5
    patience: int = 32
    islands: int = 3
    plan: int = 0
    spare: int = 8
    pick: Pick = Pick.COVERING
    variety: float = 1.0
    epsilon: float = 0.06
    random_first: int = 64
    start_share: float = 0.5
    refine_share: float = 0.0

    def __post_init__(self) -> None:
        least = {"chains": 1, "steps": 1, "tries": 1, "rungs": 1, "swap_every": 1, "spare": 1}
        counts = ("sketches", "idle_steps", "reheats", "patience", "plan", "random_first")
        for name, low in (least | dict.fromkeys(counts, 0)).items():
            if getattr(self, name) < low:
                raise _fault(name, f"{getattr(self, name)} is below {low}")
        shares = ("leap", "measured_share", "restart_share", "epsilon", "start_share")
        for name in (*shares, "refine_share", "proposed_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise _fault(name, f"{getattr(self, name)} is not a share between 0 and 1")
        if not 0.0 < self.coldest <= 1.0:
            raise _fault("coldest", f"{self.coldest} is not above 0 and at most 1")
        if not 0.0 <= self.last <= self.first:
            raise _fault("last", f"{self.last} is not between 0 and the first, {self.first}")
        if self.rungs > self.chains:
            raise _fault("rungs", f"{self.rungs} temperatures for {self.chains} chains")


VANILLA = AnnealingOptions(
    chains=128,
    steps=500,
    leap=1.0,
    weights=_EVEN,
    tries=1,
    sketches=0,
    is_persistent=True,
    measured_share=0.0,
    proposed_share=0.0,
    scale=Scale.SCORES,
    cooling=Cooling.LINEAR,
    first=1.0,
    last=0.0,
    idle_steps=50,
    reheats=0,
    patience=0,
    plan=64,
    spare=1,
    pick=Pick.BEST,
    epsilon=0.05,
    random_first=64,
    start_share=0.0,
)
"""Simulated annealing as in AutoTVM (Chen et al., NeurIPS 2018, and the source of its tuner)."""


def _fault(name: str, reason: str) -> UsageError:
    return UsageError(
        stage="tune",
        where=f"annealing option {name}",
        reason=reason,
        remedy="leave it at its default",
    )


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
