"""Simulated annealing by a model's scores: chains walk, and the best programs are measured.

Chains are arrays, one row a chain, all of a step at once.

    step:    for each chain   neighbour := a random step from its program
                              it goes there if exp((new - old) / temperature) > a random number
             then swaps:      of two chains next to each other in temperature, exchange places if
                              exp((1/t1 - 1/t2) (score2 - score1)) > a random number
    all that was seen goes to an archive of the best

A neighbour beyond the limits of its sketch is drawn again a few times, then the chain stays.

After AutoTVM (Chen et al., NeurIPS 2018, section 4), whose settings are `VANILLA`.  Its temperature
starts at 1 whatever the scores are. If the scores of a model differ by less than that, annealing is
a random walk; if they differ by more, it is a descent. It never starts anew.

Source:   Kirkpatrick et al., Science 220, 1983; Metropolis; Earl and Deem, PCCP 7, 2005 (swaps).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.base import UsageError
from tensorwright.tuning.population.population import Keys, Population
from tensorwright.tuning.population.space_tables import SpaceTables, Weights
from tensorwright.tuning.population.variation import DRAWS, sample, step_from
from tensorwright.tuning.strategies.guided import Explorer, Ground, GuidedOptions
from tensorwright.tuning.strategies.strategy import Scores


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
    """So that the share of accepted steps follows a given course (`wanted_acceptance`)."""


class Pick(StrEnum):
    """How the programs to be measured are picked from the best that the chains have seen."""

    BEST = "best"
    COVERING = "covering"
    """For scores and for decisions that no other of them takes: `pick_covering`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnealingOptions(GuidedOptions):
    """The numbers of the search; the defaults are meant to be right, `VANILLA` is AutoTVM's.

    Chains
        chains          of one round                 steps   of each chain at most
        tries           so often a step beyond the limits is drawn again before the chain stays
                        where it is
        is_persistent   whether chains go on in the next round where they ended; else a round
                        depends on the records only, and a search that was killed goes on exactly
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
    What is measured
        spare           the best programs to pick from, as a multiple of the plan
        pick            how they are picked          variety    what a decision that no other
                        program of the plan takes is worth, all of a program together, in the
                        spread of the scores of those kept
    The others are those of every guided search.

    Raises:  UsageError for numbers that make no sense.
    """

    chains: int = 64
    steps: int = 60
    tries: int = 2
    is_persistent: bool = False
    measured_share: float = 0.5
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
    random_first: int = 64
    spare: int = 8
    pick: Pick = Pick.COVERING
    variety: float = 1.0

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

    def explorer(self) -> Explorer:
        """As `GuidedOptions.explorer`."""
        return Chains(self)


VANILLA = AnnealingOptions(
    chains=128,
    steps=500,
    leap=1.0,
    weights=Weights(1.0, 1.0, 1.0, 1.0, 1.0, is_shared=False),
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


class Temperatures:
    """Of some chains in one round; mutable.

    unit   of the options' temperatures
    """

    def __init__(self, options: AnnealingOptions, unit: float, chains: int) -> None:
        self._options = options
        self._first = options.first * unit
        self._last = options.last * unit
        rung = np.arange(chains) % options.rungs
        self._shares: Scores = options.coldest ** (rung / max(options.rungs - 1, 1))
        self._base = self._first
        self._from = self._first
        self._begun = 0

    def at(self, step: int) -> Scores:
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


def unit_of(scale: Scale, scores: Scores) -> float:
    """The unit of temperatures, from the scores of random programs."""
    if scale is Scale.SCORES:
        return 1.0
    finite = scores[np.isfinite(scores)]
    if len(finite) < 2:
        return 1.0
    low, high = np.quantile(finite, (0.25, 0.75))
    spread = float(high - low) / _NORMAL_QUARTILES or float(np.std(finite))
    return spread if spread > 0 and math.isfinite(spread) else 1.0


class Archive:
    """Grows step by step; mutable.

    excluded   ascending keys of programs that are on record already
    """

    def __init__(self, width: int, size: int, excluded: Keys) -> None:
        self.population = Population.empty(width)
        self.scores: Scores = np.empty(0)
        self._keys: Keys = np.empty(0, np.uint64)
        self._size = size
        self._excluded = excluded

    def add(self, population: Population, scores: Scores) -> bool:
        """Add the programs that are among the best; whether there are any."""
        is_good = np.isfinite(scores)
        if len(self.scores) >= self._size:
            is_good &= scores > self.scores[-1]
        if not is_good.any():
            return False
        good, own = population.take(is_good), scores[is_good]
        keys = good.keys
        _, first = np.unique(keys, return_index=True)
        is_new = np.zeros(len(keys), np.bool_)
        is_new[first] = True
        is_new &= ~np.isin(keys, self._keys) & ~np.isin(keys, self._excluded)
        if not is_new.any():
            return False
        both = Population.joined([self.population, good.take(is_new)])
        joined = np.concatenate([self.scores, own[is_new]])
        order = np.argsort(-joined, kind="stable")[: self._size]
        self.population, self.scores = both.take(order), joined[order]
        self._keys = np.concatenate([self._keys, keys[is_new]])[order]
        return True


def pick_covering(
    tables: SpaceTables,
    population: Population,
    scores: NDArray[np.float64],
    count: int,
    variety: float,
) -> NDArray[np.int64]:
    """The numbers of some candidates with high scores that take many decisions, in order.

    The objective is submodular: the sum of the scores, and for each choice the number of its rows
    that at least one of them takes.  The choice is greedy, which comes within 1 - 1/e of the best.

    variety   the gain of a decision that no other has, in the spread of the scores

    Source:   Chen et al., AutoTVM, NeurIPS 2018, section 4 (its equation for diversity).
    """
    rows = tables.base[population.sketch] + population.genes
    own = tables.slot[population.sketch] < tables.slots - 1
    sizes = np.maximum(own.sum(axis=1), 1)
    spread = float(np.std(scores)) if len(scores) else 0.0
    worth = scores / (spread or 1.0)
    is_covered = np.zeros(int(rows.max(initial=0)) + 1, np.bool_)
    picked: list[int] = []
    for _ in range(min(count, len(scores))):
        fresh = (~is_covered[rows] & own).sum(axis=1) / sizes
        gain = worth + variety * fresh
        gain[picked] = -np.inf
        one = int(np.argmax(gain))
        picked.append(one)
        is_covered[rows[one]] = True
    return np.array(picked, np.int64)


_LEAST = 1e-5  # added to temperatures: nothing is divided by 0

Mask = NDArray[np.bool_]
Judge = Callable[[Population], Scores]
Fresh = Callable[[int, Generator], Population]


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The space of the chains, and their judge.

    allowed   (sketches,): where they may go          judge   the scores of programs
    fresh     draws up to a number of programs to start from
    """

    tables: SpaceTables
    allowed: Mask
    judge: Judge
    fresh: Fresh


def anneal(
    walk: Walk,
    start: Population,
    options: AnnealingOptions,
    temperatures: Temperatures,
    archive: Archive,
    random: Generator,
) -> Population:
    """Walk all chains to their ends; the last programs. The archive has the best of all."""
    points = Population(start.sketch.copy(), start.genes.copy())
    scores = walk.judge(points)
    archive.add(points, scores)
    last_gain, reheats = 0, options.reheats
    for step in range(options.steps if len(points) else 0):
        moved = move(walk, points, options, random.random((options.tries, DRAWS, len(points))))
        new = walk.judge(moved)
        at = temperatures.at(step)
        goes = accepts(scores, new, at, random.random(len(points)))
        points.sketch[goes], points.genes[goes] = moved.sketch[goes], moved.genes[goes]
        scores = np.where(goes, new, scores)
        temperatures.note(step, float(goes.mean()))
        if archive.add(moved, new):
            last_gain = step
        if options.rungs > 1 and step % options.swap_every == options.swap_every - 1:
            order = swapped(scores, at, options.rungs, step // options.swap_every, random)
            points, scores = points.take(order), scores[order]
        if options.idle_steps and step - last_gain >= options.idle_steps:
            if not reheats:
                break
            reheats -= 1
            last_gain = step
            temperatures.reheat(step)
            points, scores = _restarted(walk, points, scores, options, random)
    return points


def move(
    walk: Walk, points: Population, options: AnnealingOptions, drawn: NDArray[np.float64]
) -> Population:
    """A step for each chain; it stays if all tries are beyond the limits.

    Shapes:  drawn (tries, DRAWS, chains) in [0, 1)
    """
    sketch, genes = points.sketch.copy(), points.genes.copy()
    is_open = np.ones(len(points), np.bool_)
    for one in drawn:
        rows = np.flatnonzero(is_open)
        if not len(rows):
            break
        tried = step_from(walk.tables, points.take(rows), one[:, rows], options.leap)
        is_valid = walk.allowed[tried.sketch] & walk.tables.valid(tried)
        good = rows[is_valid]
        sketch[good], genes[good] = tried.sketch[is_valid], tried.genes[is_valid]
        is_open[good] = False
    return Population(sketch, genes)


def accepts(old: Scores, new: Scores, temperatures: Scores, coins: Scores) -> Mask:
    """Which steps are taken; none to a program that cannot be lowered."""
    with np.errstate(invalid="ignore"):
        gain = np.minimum((new - old) / (temperatures + _LEAST), 1.0)
    taken: Mask = (np.exp(gain) > coins) & np.isfinite(new)
    return taken


def swapped(
    scores: Scores, temperatures: Scores, rungs: int, turn: int, random: Generator
) -> NDArray[np.int64]:
    """The chain at each position after a swap: (chains,) numbers of chains.

    Chain n has the rung n % rungs. In even turns the first two rungs swap, and so on in pairs, in
    odd ones the second and third.
    """
    order = np.arange(len(scores))
    first = np.flatnonzero(order % rungs % 2 == turn % 2)
    first = first[(first % rungs < rungs - 1) & (first + 1 < len(order))]
    second = first + 1
    with np.errstate(invalid="ignore", over="ignore"):
        cold = 1.0 / (temperatures + _LEAST)
        gain = (cold[first] - cold[second]) * (scores[second] - scores[first])
        swaps = np.exp(np.minimum(gain, 1.0)) > random.random(len(first))
    order[first[swaps]], order[second[swaps]] = second[swaps], first[swaps]
    return order


def _restarted(
    walk: Walk, points: Population, scores: Scores, options: AnnealingOptions, random: Generator
) -> tuple[Population, Scores]:
    """The chains, of which the worst begin anew."""
    worst = np.argsort(scores, kind="stable")[: round(options.restart_share * len(points))]
    if not len(worst):
        return points, scores
    fresh = walk.fresh(len(worst), random)
    worst = worst[: len(fresh)]
    points.sketch[worst], points.genes[worst] = fresh.sketch, fresh.genes
    scores[worst] = walk.judge(fresh)
    return points, scores


class Chains:
    """An `Explorer`; the chains of the last round stay if the options say so."""

    def __init__(self, options: AnnealingOptions) -> None:
        self.options = options
        self._points: Population | None = None

    def explore(self, ground: Ground, random: Generator, count: int) -> Population:
        """The best programs of the chains, picked by the options, best first."""
        options, tables, allowed = self.options, ground.tables, ground.allowed
        is_allowed = np.zeros(len(tables.family), np.bool_)
        is_allowed[allowed] = True
        walk = Walk(
            tables,
            is_allowed,
            ground.guide.scores,
            lambda many, source: sample(tables, many, source, allowed),
        )
        drawn = sample(tables, options.chains, random, allowed)
        unit = unit_of(options.scale, ground.guide.scores(drawn))
        start = ground.start(options.chains, random, self._points)
        archive = Archive(tables.width, options.spare * count, ground.history.keys)
        temperatures = Temperatures(options, unit, len(start))
        ends = anneal(walk, start, options, temperatures, archive, random)
        self._points = ends if options.is_persistent and len(ends) else None
        if options.pick is Pick.BEST:
            return archive.population
        picked = pick_covering(tables, archive.population, archive.scores, count, options.variety)
        return archive.population.take(picked)
