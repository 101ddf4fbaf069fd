"""Random search: sketches by turns at random, decisions uniformly, nothing twice.

The baseline that every learned strategy must beat.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from tensorwright.records import Record
from tensorwright.tuning.population.candidate import Candidate, candidate_of, default_candidate
from tensorwright.tuning.space.sketch import Sketch, Space
from tensorwright.tuning.task import Task

_DRAWS_PER_CANDIDATE = 30
_LARGEST_LISTED = 20_000


class RandomSearch:
    """Sampling without replacement; the default schedule comes first.

    Resuming needs no saved generator: with the same seed the same candidates are drawn again, and
    those on record are passed over.
    """

    def __init__(self, task: Task, space: Space, seed: int) -> None:
        self._space = space
        self._random = random.Random(f"{seed} {task.workload.key}")
        self._seen: set[str] = set()
        self._drawn: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
        self._is_first = True

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """As `Strategy.propose`."""
        candidates: list[Candidate] = []
        for candidate in self._draw(_DRAWS_PER_CANDIDATE * count):
            if candidate.trace not in self._seen:
                self._seen.add(candidate.trace)
                candidates.append(candidate)
            if len(candidates) >= count:
                return tuple(candidates)
        if self._space.size <= _LARGEST_LISTED:
            candidates += self._rest(count - len(candidates))
        return tuple(candidates)

    def observe(self, records: Sequence[Record]) -> None:
        """Exclude the programs of records."""
        self._seen.update(record.trace for record in records)

    def _draw(self, most: int) -> Iterator[Candidate]:
        """Candidates with decisions not drawn before; gives up after `most` draws."""
        sketches = self._space.sketches
        if not sketches:
            return
        if self._is_first:
            self._is_first = False
            yield default_candidate(self._space)
        for _ in range(most):
            sketch = self._random.choice(sketches)
            decisions = tuple(sorted(sketch.sample(self._random, self._space.cut).items()))
            if (sketch.name, decisions) not in self._drawn:
                self._drawn.add((sketch.name, decisions))
                yield candidate_of(sketch, decisions)

    def _rest(self, count: int) -> list[Candidate]:
        """The programs of a small space that are left, in random order."""
        everything = [pair for sketch in self._space.sketches for pair in _list(sketch)]
        self._random.shuffle(everything)
        candidates: list[Candidate] = []
        for sketch, decisions in everything:
            if len(candidates) >= count:
                break
            candidate = candidate_of(sketch, decisions)
            if candidate.trace not in self._seen:
                self._seen.add(candidate.trace)
                candidates.append(candidate)
        return candidates


def _list(sketch: Sketch) -> Iterator[tuple[Sketch, tuple[tuple[str, int], ...]]]:
    for genes in itertools.product(*(range(len(choice.values)) for choice in sketch.choices)):
        decisions = sketch.decisions_of(genes)
        if sketch.is_valid(decisions):
            yield sketch, tuple(sorted(decisions.items()))
