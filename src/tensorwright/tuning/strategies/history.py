"""What is known of a workload: which programs were measured, how fast they are, what fails."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.records import Record, Status
from tensorwright.schedule import format_trace
from tensorwright.tuning.population.candidate import Candidate
from tensorwright.tuning.population.population import Genes, Keys, Population, candidate_at
from tensorwright.tuning.population.space_tables import SpaceTables
from tensorwright.tuning.space.sketch import Space

_GAIN = 0.99  # a time below this share of the best so far is a gain, and not noise
_FAILURES = 4  # a sketch that failed so often and never ran is not tried again

Place = tuple[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a program of the space: seconds, a lower bound of them if censored."""

    sketch: int
    genes: Genes
    time_s: float
    is_censored: bool


class History:
    """Grows with the records; a function of their order and of nothing else."""

    def __init__(self, tables: SpaceTables) -> None:
        self._tables = tables
        self._places: dict[str, Place | None] = {}
        self._times: dict[str, float] = {}
        self._fails: dict[int, int] = {}
        self._runs: set[int] = set()
        self._keys: set[int] = set()
        self.best_s = math.inf
        self.since_gain = 0

    @property
    def trials(self) -> int:
        """How many programs are known."""
        return len(self._times)

    @property
    def known(self) -> int:
        """How many programs are on record or were proposed."""
        return len(self._places)

    @property
    def keys(self) -> Keys:
        """The keys of known programs of the space, ascending."""
        return np.array(sorted(self._keys), np.uint64)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many programs of each sketch are on record."""
        found = np.zeros(len(self._tables.family), np.int64)
        for trace in self._times:
            place = self._places.get(trace)
            if place is not None:
                found[place[0]] += 1
        return found

    @property
    def dropped(self) -> NDArray[np.int64]:
        """The sketches of which nothing runs."""
        failing = [s for s, n in self._fails.items() if n >= _FAILURES and s not in self._runs]
        return np.array(sorted(failing), np.int64)

    @property
    def alive(self) -> NDArray[np.int64]:
        """All other sketches."""
        return np.setdiff1d(np.arange(len(self._tables.family)), self.dropped)

    def take_new(self, programs: Population, count: int) -> list[Candidate]:
        """The first of some programs whose traces are new, as candidates that are known now."""
        found: list[Candidate] = []
        for sketch, genes in zip(programs.sketch, programs.genes, strict=True):
            if len(found) >= count:
                break
            candidate = candidate_at(self._tables.space, int(sketch), genes)
            if not self.knows(candidate.trace):
                self.note(candidate.trace, int(sketch), genes)
                found.append(candidate)
        return found

    def programs_of(self, candidates: Sequence[Candidate]) -> Population:
        """Candidates that `take_new` has given, as a population."""
        programs = [pair for each in candidates if (pair := self._places[each.trace])]
        sketches = np.array([sketch for sketch, _ in programs], np.int32)
        return Population(sketches, np.array([genes for _, genes in programs], np.int64))

    def knows(self, trace: str) -> bool:
        """Whether the program is on record, or was proposed."""
        return trace in self._times or trace in self._places

    def note(self, trace: str, sketch: int, genes: Genes) -> None:
        """Remember what is being proposed."""
        self._places[trace] = (sketch, tuple(int(gene) for gene in genes))
        self._keys.add(int(Population(np.array([sketch], np.int32), genes[None]).keys[0]))

    def observe(self, records: Sequence[Record]) -> tuple[Outcome, ...]:
        """Take in records; what they say of programs of the space comes back, in order.

        A program stands by its newest record.
        """
        return tuple(found for record in records if (found := self._observe(record)) is not None)

    def best(self, count: int) -> tuple[Population, NDArray[np.float64]]:
        """The fastest programs of the space, and their seconds; programs that failed are none.

        Shapes:  (up to count, width), (up to count,)
        """
        known = [
            (time_s, place)
            for trace, time_s in self._times.items()
            if math.isfinite(time_s) and (place := self._places.get(trace)) is not None
        ]
        known.sort(key=lambda pair: pair[0])
        found = known[:count]
        if not found:
            return Population.empty(self._tables.width), np.empty(0)
        sketch = np.array([place[0] for _, place in found], np.int32)
        genes = np.array([place[1] for _, place in found], np.int64)
        return Population(sketch, genes), np.array([time_s for time_s, _ in found])

    def _observe(self, record: Record) -> Outcome | None:
        is_new = record.trace not in self._times
        time_s = record.median_s if record.status.is_timed else math.inf
        is_ok = record.status is Status.OK
        if is_new:
            is_gain = is_ok and time_s < _GAIN * self.best_s
            self.since_gain = 0 if is_gain else self.since_gain + 1
        if is_ok:
            self.best_s = min(self.best_s, time_s)
        self._times[record.trace] = time_s if is_ok else math.inf
        place = self._locate(record)
        if place is None:
            return None
        sketch, genes = place[0], np.array(place[1], np.int64)
        if not record.status.is_timed:
            self._fails[sketch] = self._fails.get(sketch, 0) + 1
            return None
        self._runs.add(sketch)
        return Outcome(sketch, genes, time_s, not is_ok)

    def _locate(self, record: Record) -> Place | None:
        """Where a program stands in the space; None where it is not of it."""
        if record.trace not in self._places:
            place = locate(self._tables.space, record.trace, dict(record.decisions))
            if place is None:
                self._places[record.trace] = None
            else:
                padded = np.zeros(self._tables.width, np.int64)
                padded[: len(place[1])] = place[1]
                self.note(record.trace, place[0], padded)
        return self._places[record.trace]


def locate(space: Space, trace: str, decisions: Mapping[str, int]) -> Place | None:
    """The sketch and the rows that give a trace; None where no sketch does."""
    for number, sketch in enumerate(space.sketches):
        rows = sketch.genes_of(decisions)
        if rows is not None and format_trace(sketch.bound(decisions)) == trace:
            return number, rows
    return None
