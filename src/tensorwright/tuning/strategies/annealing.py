"""Simulated annealing over arrays of chains.

The best programs that chains have seen, each once.

The choice of programs to measure, so that the programs of a plan take many decisions.

Chains of simulated annealing: arrays, one row a chain, all of a step at once.

    step:    for each chain   neighbour := a random step from its program
                              it goes there if exp((new - old) / temperature) > a random number
             then swaps:      of two chains next to each other in temperature, exchange places if
                              exp((1/t1 - 1/t2) (score2 - score1)) > a random number
    all that was seen goes to an archive of the best

A neighbour beyond the limits of its sketch is drawn again a few times, then the chain stays.

Source:   Kirkpatrick et al., Science 220, 1983; Metropolis; Earl and Deem, PCCP 7, 2005 (swaps).

Simulated annealing by a model's scores: chains walk, and the best programs are measured.

After AutoTVM (Chen et al., NeurIPS 2018, section 4), whose settings are `VANILLA`.  Its temperature
starts at 1 whatever the scores are. If the scores of a model differ by less than that, annealing is
a random walk; if they differ by more, it is a descent. It never starts anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.records import Record
from tensorwright.tuning.population.population import Candidate, Keys, Population
from tensorwright.tuning.population.space_tables import SpaceTables, make_space_tables
from tensorwright.tuning.population.variation import DRAWS, sample, step_from
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.annealing_options import (
    AnnealingOptions,
    Pick,
    Temperatures,
    unit_of,
)
from tensorwright.tuning.strategies.sources import (
    MakeProposer,
    choose_structures,
    draw_new,
    draw_partly,
    least_tried,
    propose_neighbours,
    rest_of,
    starts_of,
    with_predictions,
)
from tensorwright.tuning.strategies.strategy import Guide, History, MakeGuide
from tensorwright.tuning.task import Task

Scores = NDArray[np.float64]


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


_SPARE = 3  # times as many are picked as needed: the traces of some may be on record
_SPARE_DRAWS = 8  # the same for random ones: small structures are drawn as often as large ones


class AnnealingSearch:
    """A `Strategy`.  Each plan has its own generator, seeded by the seed, the workload and the
    number of programs seen.

    With the default options a proposal follows from the records alone. If chains are persistent or
    a plan is for several proposals, a search that was killed makes a new plan.
    """

    def __init__(
        self,
        task: Task,
        space: Space,
        seed: int,
        guide: Guide,
        options: AnnealingOptions | None = None,
        make_proposer: MakeProposer | None = None,
    ) -> None:
        self.options = options or AnnealingOptions()
        self.tables = make_space_tables(space, self.options.weights)
        self.history = History(self.tables)
        self.guide = guide
        self._proposer = make_proposer(task, self.tables) if make_proposer else None
        self._seeds = (seed, zlib.crc32(task.workload.key.encode()))
        self._points = Population.empty(self.tables.width)
        self._plan = Population.empty(self.tables.width)
        self._left = 0  # of the plan, random ones included
        self._guesses = 0  # of these, not random

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        random = np.random.default_rng((*self._seeds, self.history.seen))
        self.guide.refresh()
        proposed = self._by_rule(count)
        if self.history.trials >= self.options.random_first:
            proposed += self._refined(count - len(proposed))
            proposed += self._planned(count - len(proposed), random)
            if self.options.plan and len(proposed) < count:  # the plan has ended: the next one
                proposed += self._planned(count - len(proposed), random)
        proposed += self._drawn(count - len(proposed), random)
        if len(proposed) < count:
            rest = rest_of(self.tables, self.history, random)
            proposed += self.history.take_new(rest, count - len(proposed))
        return with_predictions(proposed, self.history, self.guide)

    def observe(self, records: Sequence[Record]) -> None:
        """As `Strategy.observe`."""
        self.guide.learn(self.history.observe(records))

    # The parts of a proposal

    def _by_rule(self, count: int) -> list[Candidate]:
        starts = self.tables.starts()
        if not self.options.start_share:
            return self.history.take_new(starts.take(np.zeros(1, np.int64)), count)
        proposed = self.history.take_new(starts.take(np.zeros(1, np.int64)), count)
        most = starts_of(self.tables, self.guide, self.options.start_share, count)
        return proposed + self.history.take_new(most[0], min(most[1], count) - len(proposed))

    def _drawn(self, count: int, random: Generator) -> list[Candidate]:
        if count <= 0:
            return []
        drawn = draw_new(self.tables, self.history, _SPARE_DRAWS * count, random)
        return self.history.take_new(drawn, count)

    def _refined(self, room: int) -> list[Candidate]:
        count = round(self.options.refine_share * room)
        if not count:
            return []
        around = propose_neighbours(self.tables, self.history, self.guide, _SPARE * count, 3)
        return self.history.take_new(around, count)

    def _planned(self, count: int, random: Generator) -> list[Candidate]:
        """The rest of the plan, or of a new one; its last are random."""
        if not self._left:
            self._make_plan(count, random)
        planned = self.history.take_new(self._plan, min(count, self._guesses))
        is_used_up = len(planned) < min(count, self._guesses)
        self._left -= len(planned)
        self._guesses = 0 if is_used_up else self._guesses - len(planned)
        if not self._guesses:
            last = self._drawn(min(count - len(planned), self._left), random)
            planned += last
            self._left -= len(last)
            if is_used_up and len(planned) < count:
                self._left = 0
        return planned

    def _make_plan(self, count: int, random: Generator) -> None:
        options = self.options
        self._left = options.plan or count
        self._guesses = self._left - int(np.ceil(options.epsilon * self._left))
        self._plan = self.promising(random, _SPARE * max(self._guesses, 1))

    def promising(self, random: Generator, count: int) -> Population:
        """The best programs of the chains, picked by the options, best first."""
        allowed = self._choose_sketches(random)
        if not len(allowed):
            return Population.empty(self.tables.width)
        options = self.options
        is_allowed = np.zeros(len(self.tables.family), np.bool_)
        is_allowed[allowed] = True
        walk = Walk(
            self.tables,
            is_allowed,
            self.guide.scores,
            lambda many, source: sample(self.tables, many, source, allowed),
        )
        drawn = sample(self.tables, options.chains, random, allowed)
        unit = unit_of(options.scale, self.guide.scores(drawn))
        start = self._start(self._fresh(drawn, random, allowed), is_allowed)
        archive = Archive(self.tables.width, options.spare * count, self.history.keys)
        temperatures = Temperatures(options, unit, len(start))
        self._points = anneal(walk, start, options, temperatures, archive, random)
        if options.pick is Pick.BEST:
            return archive.population
        picked = pick_covering(
            self.tables, archive.population, archive.scores, count, options.variety
        )
        return archive.population.take(picked)

    def _fresh(
        self, drawn: Population, random: Generator, allowed: NDArray[np.int64]
    ) -> Population:
        """The first programs of chains that do not start at a measured program."""
        if self._proposer is None:
            return drawn
        share = self.options.proposed_share
        return draw_partly(self.tables, self._proposer, share, len(drawn), random, allowed)

    @property
    def _is_restart(self) -> bool:
        patience = self.options.patience
        return bool(patience) and self.history.since_gain // patience % 2 == 1

    def _choose_sketches(self, random: Generator) -> NDArray[np.int64]:
        if self._is_restart:
            least = least_tried(self.tables, self.history, self.options.islands)
            if len(least):
                return least
        if not self.options.sketches:
            return self.history.alive
        return choose_structures(self.history, self.options.sketches, random)

    def _start(self, drawn: Population, is_allowed: NDArray[np.bool_]) -> Population:
        """The first programs of chains: their last ones, or the best measured and random ones."""
        options = self.options
        if options.is_persistent and len(self._points):
            kept = self._points.take(~np.isin(self._points.sketch, self.history.dropped))
        elif self._is_restart:
            return drawn
        else:
            kept, _ = self.history.best(round(options.measured_share * options.chains))
            kept = kept.take(is_allowed[kept.sketch])
        both = Population.joined([kept, drawn])
        return both.take(np.arange(min(options.chains, len(both))))


@dataclass(frozen=True, slots=True)
class AnnealingFactory:
    """A `StrategyFactory`: annealing for each task, each with a guide of its own."""

    make_guide: MakeGuide
    options: AnnealingOptions | None = None
    make_proposer: MakeProposer | None = None

    def __call__(self, task: Task, space: Space, seed: int) -> AnnealingSearch:
        """As `StrategyFactory`."""
        guide = self.make_guide(task, space, seed)
        return AnnealingSearch(task, space, seed, guide, self.options, self.make_proposer)
