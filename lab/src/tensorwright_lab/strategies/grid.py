"""Grid search: every schedule of a space in a fixed order, sketch by sketch.

    tile:  columns rows unroll        the last choice changes first; what is beyond the limits of
             1      1     1           its sketch, and what is on record, is passed over
             1      1     2
             1      2     1 ...

The order depends on the space alone, so a search that was killed goes on from its records with what
comes next.  It is for small spaces: the first choice of a large one never changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from tensorwright.records import Record
from tensorwright.tuning.population.population import Candidate, Population
from tensorwright.tuning.population.space_tables import SpaceTables, make_space_tables
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.strategies.strategy import History
from tensorwright.tuning.task import Task

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
