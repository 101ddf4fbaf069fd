"""A genetic algorithm on measured speeds, without a model: AutoTVM's.

A generation is `population` trials.  Its parents are those of the generation before, and the elite:
the fastest of all before.  They are drawn in proportion to their speed (one that failed: none); a
child takes its first choices from one, the others from the other, then each choice may change at
random.

Source:   GATuner of AutoTVM (Chen et al., NeurIPS 2018; its source).  Added: parents of different
          structures, and limits, both of which templates lack.

Grid search: every schedule of a space in a fixed order, sketch by sketch.

    tile:  columns rows unroll        the last choice changes first; what is beyond the limits of
             1      1     1           its sketch, and what is on record, is passed over
             1      1     2
             1      2     1 ...

The order depends on the space alone, so a search that was killed goes on from its records with what
comes next.  It is for small spaces: the first choice of a large one never changes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tensorwright.base import UsageError
from tensorwright.records import Record
from tensorwright.tuning.population.population import Candidate, Population, find_new
from tensorwright.tuning.population.space_tables import SpaceTables, make_space_tables
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.sources import draw_new, rest_of
from tensorwright.tuning.strategies.strategy import History, Outcome
from tensorwright.tuning.task import Task

_SPARE = 4  # how many times more children than needed: some are known
_RETRIES = 4


@dataclass(frozen=True, slots=True)
class GeneticOptions:
    """The numbers of the search, and a `StrategyFactory`; the defaults are those of AutoTVM.

    population   trials of a generation       elite   of the fastest, parents in every generation
    mutation     the chance of each choice of a child to change to any other row, and that of its
                 structure to change to a sibling
    Raises:      UsageError for numbers that make no sense.
    """

    population: int = 100
    elite: int = 3
    mutation: float = 0.1

    def __post_init__(self) -> None:
        is_sound = self.population > 1 and self.elite >= 0 and 0.0 <= self.mutation <= 1.0
        if not is_sound:
            raise UsageError(
                stage="tune",
                where="genetic options",
                reason=f"{self} makes no sense",
                remedy="population above 1, elite 0 or more, mutation between 0 and 1",
            )

    def __call__(self, task: Task, space: Space, seed: int) -> GeneticSearch:
        """A genetic search by these numbers."""
        return GeneticSearch(task, space, seed, self)


class GeneticSearch:
    """A `Strategy`: what it proposes follows from the seed and the records."""

    def __init__(
        self, task: Task, space: Space, seed: int, options: GeneticOptions | None = None
    ) -> None:
        self.options = options or GeneticOptions()
        self.tables = make_space_tables(space)
        self.history = History(self.tables)
        self._outcomes: dict[str, Outcome | None] = {}  # None: it failed, or is of another space
        self._seeds = (seed, zlib.crc32(task.workload.key.encode()))

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        random = np.random.default_rng((*self._seeds, self.history.seen))
        first = self.tables.starts().take(np.zeros(1, np.int64))
        candidates = self.history.take_new(first, count)
        room = count - len(candidates)
        candidates += self.history.take_new(self._children(_SPARE * room, random), room)
        room = count - len(candidates)
        drawn = draw_new(self.tables, self.history, _SPARE * room, random)
        candidates += self.history.take_new(drawn, room)
        if len(candidates) < count:
            rest = rest_of(self.tables, self.history, random)
            candidates += self.history.take_new(rest, count - len(candidates))
        return tuple(candidates)

    def observe(self, records: Sequence[Record]) -> None:
        """As `Strategy.observe`."""
        for record in records:
            outcome = self.history.observe([record])
            self._outcomes[record.trace] = outcome[0] if outcome else None

    def _children(self, count: int, random: Generator) -> Population:
        """New programs of this generation; none in the first one."""
        parents, speeds = self._parents()
        if len(parents) < 2 or not count:
            return Population.empty(self.tables.width)
        chances = speeds / speeds.sum()
        one = parents.take(random.choice(len(parents), count, p=chances))
        other = parents.take(random.choice(len(parents), count, p=chances))
        crossed = one_point(self.tables, one, other, random)
        children = change(self.tables, crossed, self.options.mutation, random)
        children = children.take(~np.isin(children.sketch, self.history.dropped))
        return find_new(children, self.history.keys)

    def _parents(self) -> tuple[Population, NDArray[np.float64]]:
        """Those of the last whole generation and the elite; their speeds, the fastest has 1."""
        size, outcomes = self.options.population, list(self._outcomes.values())
        begun = len(outcomes) // size * size
        last = [each for each in outcomes[max(begun - size, 0) : begun] if each is not None]
        before = [each for each in outcomes[:begun] if each is not None]
        elite = sorted(before, key=lambda each: each.time_s)[: self.options.elite]
        chosen = [*last, *elite]
        if not chosen:
            return Population.empty(self.tables.width), np.empty(0)
        sketch = np.array([each.sketch for each in chosen], np.int32)
        genes = np.array([each.genes for each in chosen], np.int64)
        times_s = np.array([each.time_s for each in chosen])
        speeds = times_s.min() / times_s
        return Population(sketch, genes.reshape(len(chosen), self.tables.width)), speeds


def one_point(
    tables: SpaceTables, first: Population, second: Population, random: Generator
) -> Population:
    """Children of pairs: choices up to a random one from the first, the others from the second.

    Choices of a sibling count by name; of a parent of another family nothing is taken. A child
    beyond the limits of its sketch is its first parent.
    """
    is_kin = tables.family[first.sketch] == tables.family[second.sketch]
    genes = first.genes.copy()
    given = tables.carried(second.take(is_kin), first.sketch[is_kin])
    point = (random.random(int(is_kin.sum())) * tables.width).astype(np.int64)
    takes = np.arange(tables.width) >= point[:, None]
    genes[is_kin] = np.where(takes, given, genes[is_kin])
    return _within(tables, Population(first.sketch.copy(), genes), first)


def change(
    tables: SpaceTables, children: Population, chance: float, random: Generator
) -> Population:
    """Each choice changes to another of its rows by chance, as does the structure to a sibling.

    A change beyond the limits is drawn again a few times.
    """
    changed = Population(children.sketch.copy(), children.genes.copy())
    open_rows = np.arange(len(children))
    for _ in range(_RETRIES):
        tried = _changed_once(tables, children.take(open_rows), chance, random)
        is_valid = tables.valid(tried)
        good = open_rows[is_valid]
        changed.sketch[good], changed.genes[good] = tried.sketch[is_valid], tried.genes[is_valid]
        open_rows = open_rows[~is_valid]
        if not len(open_rows):
            break
    return changed


def _changed_once(
    tables: SpaceTables, children: Population, chance: float, random: Generator
) -> Population:
    others = tables.siblings[children.sketch]
    ahead = 1 + (random.random(len(children)) * others).astype(np.int64)
    member = (tables.member_index[children.sketch] + ahead) % (others + 1)
    sibling = tables.members[tables.family[children.sketch], member].astype(np.int32)
    moves = (random.random(len(children)) < chance) & (others > 0)
    sketch = np.where(moves, sibling, children.sketch).astype(np.int32)
    moved = tables.carried(children, sketch)
    genes = np.where(moves[:, None], moved, children.genes)
    counts = tables.counts[sketch]
    step = 1 + (random.random(genes.shape) * (counts - 1)).astype(np.int64)
    changes = (random.random(genes.shape) < chance) & (counts > 1)
    return Population(sketch, np.where(changes, (genes + step) % counts, genes))


def _within(tables: SpaceTables, children: Population, parents: Population) -> Population:
    is_valid = tables.valid(children)
    genes = np.where(is_valid[:, None], children.genes, parents.genes)
    return Population(np.where(is_valid, children.sketch, parents.sketch).astype(np.int32), genes)


_BLOCK = 4096


class GridSearch:
    """A `Strategy`; the default schedule comes first, the seed is not asked."""

    def __init__(self, task: Task, space: Space, seed: int) -> None:
        self._tables = make_space_tables(space)
        self._history = History(self._tables)
        self._blocks = grid(self._tables)
        self._open = self._tables.starts().take(np.zeros(1, np.int64))

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        candidates: list[Candidate] = []
        while len(candidates) < count:
            new = self._open.take(~np.isin(self._open.keys, self._history.keys))
            candidates += self._history.take_new(new, count - len(candidates))
            if len(candidates) >= count:
                break
            following = next(self._blocks, None)
            if following is None:
                self._open = Population.empty(self._tables.width)
                break
            self._open = following
        return tuple(candidates)

    def observe(self, records: Sequence[Record]) -> None:
        """Remember what need not be proposed."""
        self._history.observe(records)


def grid(tables: SpaceTables) -> Iterator[Population]:
    """All programs within the limits in order, some at a time."""
    for number, sketch in enumerate(tables.space.sketches):
        counts = [len(choice.values) for choice in sketch.choices]
        for first in range(0, prod(counts), _BLOCK):
            genes = _genes(counts, first, min(_BLOCK, prod(counts) - first), tables.width)
            whole = Population(np.full(len(genes), number, np.int32), genes)
            yield whole.take(tables.valid(whole))


def _genes(counts: Sequence[int], first: int, many: int, width: int) -> NDArray[np.int64]:
    """The digits of `many` numbers from `first` on; numbers may be larger than 64 bits.

    Returns:  (many, width)
    """
    digits = np.zeros((many, width), np.int64)
    carried = np.arange(many)
    for position in reversed(range(len(counts))):
        count = counts[position]
        carried += first % count
        digits[:, position] = carried % count
        carried //= count
        first //= count
    return digits
