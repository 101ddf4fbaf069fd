"""Chains of simulated annealing: arrays, one row a chain, all of a step at once.

    step:    for each chain   neighbour := a random step from its program
                              it goes there if exp((new - old) / temperature) > a random number
             then swaps:      of two chains next to each other in temperature, exchange places if
                              exp((1/t1 - 1/t2) (score2 - score1)) > a random number
    all that was seen goes to an archive of the best

A neighbour beyond the limits of its sketch is drawn again a few times, then the chain stays.

Source:   Kirkpatrick et al., Science 220, 1983; Metropolis; Earl and Deem, PCCP 7, 2005 (swaps).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.tuning.population.population import Population
from tensorwright.tuning.population.space_tables import SpaceTables
from tensorwright.tuning.population.variation import DRAWS, step_from
from tensorwright.tuning.strategies.annealing.archive import Archive
from tensorwright.tuning.strategies.annealing.options import AnnealingOptions
from tensorwright.tuning.strategies.annealing.temperature import Temperatures

_LEAST = 1e-5  # added to temperatures: nothing is divided by 0

Scores = NDArray[np.float64]
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
