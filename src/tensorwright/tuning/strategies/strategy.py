"""The protocol of a search strategy: it proposes candidates and learns from their records.

A strategy has no clock and measures nothing, so the same seed and the same records give the same
proposals.

The history of a workload: the measured programs, their times, and their failures.

The guide of a search: it scores programs that were not measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tensorwright.records import Record, Status
from tensorwright.tuning.population import Candidate
from tensorwright.tuning.population.population import Genes, Keys, Population, candidate_at
from tensorwright.tuning.population.space_tables import SpaceTables
from tensorwright.tuning.space.sketch import Space
from tensorwright.tuning.task import Task


class Strategy(Protocol):
    """The search of one workload. Calls come in turn: propose, observe, propose, ..."""

    def propose(self, count: int) -> tuple[Candidate, ...]:
        """Up to `count` new candidates, the most promising first; fewer if the space ends.

        None is proposed twice, and none whose record `observe` has seen.
        """

    def observe(self, records: Sequence[Record]) -> None:
        """Learn from records of candidates, of this search or of others."""


class StrategyFactory(Protocol):
    """Makes the strategy of a task: what `tune` takes, so that each workload has its own."""

    def __call__(self, task: Task, space: Space, seed: int) -> Strategy:
        """A fresh strategy. Equal arguments give equal strategies."""


_GAIN = 0.99  # a time below this share of the best so far is a gain, and not noise
_FAILURES = 4  # a sketch that failed so often and never ran is not tried again

Program = tuple[int, tuple[int, ...]]  # sketch, genes


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a program of the space: seconds, a lower bound of them if censored."""

    sketch: int
    genes: Genes
    time_s: float
    is_censored: bool


class History:
    """Grows with the records; a function of nothing but their order."""

    def __init__(self, tables: SpaceTables) -> None:
        self._tables = tables
        self._programs: dict[str, Program | None] = {}
        self._times: dict[str, float] = {}
        self._fails: dict[int, int] = {}
        self._runs: set[int] = set()
        self._keys: set[int] = set()
        self.best_s = math.inf
        self.since_gain = 0

    @property
    def trials(self) -> int:
        """The number of programs on record."""
        return len(self._times)

    @property
    def seen(self) -> int:
        """The number of programs that are on record or were proposed."""
        return len(self._programs)

    @property
    def keys(self) -> Keys:
        """The keys of the programs of the space that were seen, ascending."""
        return np.array(sorted(self._keys), np.uint64)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of programs on record of each sketch."""
        counts = np.zeros(len(self._tables.family), np.int64)
        for trace in self._times:
            program = self._programs.get(trace)
            if program is not None:
                counts[program[0]] += 1
        return counts

    @property
    def dropped(self) -> NDArray[np.int64]:
        """The sketches without a program that runs."""
        failing = [s for s, n in self._fails.items() if n >= _FAILURES and s not in self._runs]
        return np.array(sorted(failing), np.int64)

    @property
    def alive(self) -> NDArray[np.int64]:
        """All other sketches."""
        return np.setdiff1d(np.arange(len(self._tables.family)), self.dropped)

    def take_new(self, programs: Population, count: int) -> list[Candidate]:
        """The first of some programs with new traces, as candidates; they are seen from now on."""
        taken: list[Candidate] = []
        for sketch, genes in zip(programs.sketch, programs.genes, strict=True):
            if len(taken) >= count:
                break
            candidate = candidate_at(self._tables.space, int(sketch), genes)
            if not self.knows(candidate.trace):
                self.note(candidate.trace, int(sketch), genes)
                taken.append(candidate)
        return taken

    def programs_of(self, candidates: Sequence[Candidate]) -> Population:
        """Candidates of `take_new`, as a population."""
        programs = [pair for each in candidates if (pair := self._programs[each.trace])]
        sketches = np.array([sketch for sketch, _ in programs], np.int32)
        return Population(sketches, np.array([genes for _, genes in programs], np.int64))

    def knows(self, trace: str) -> bool:
        """Whether the program is on record, or was proposed."""
        return trace in self._times or trace in self._programs

    def note(self, trace: str, sketch: int, genes: Genes) -> None:
        """Remember a program that is proposed."""
        self._programs[trace] = (sketch, tuple(int(gene) for gene in genes))
        self._keys.add(int(Population(np.array([sketch], np.int32), genes[None]).keys[0]))

    def observe(self, records: Sequence[Record]) -> tuple[Outcome, ...]:
        """Take in records; the outcomes of programs of the space, in order.

        The newest record of a program counts.
        """
        return tuple(
            outcome for record in records if (outcome := self._observe(record)) is not None
        )

    def best(self, count: int) -> tuple[Population, NDArray[np.float64]]:
        """The fastest programs of the space, and their seconds; failed ones do not count.

        Shapes:  (up to count, width), (up to count,)
        """
        finite = [
            (time_s, program)
            for trace, time_s in self._times.items()
            if math.isfinite(time_s) and (program := self._programs.get(trace)) is not None
        ]
        finite.sort(key=lambda pair: pair[0])
        fastest = finite[:count]
        if not fastest:
            return Population.empty(self._tables.width), np.empty(0)
        sketch = np.array([program[0] for _, program in fastest], np.int32)
        genes = np.array([program[1] for _, program in fastest], np.int64)
        return Population(sketch, genes), np.array([time_s for time_s, _ in fastest])

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
        program = self._locate(record)
        if program is None:
            return None
        sketch, genes = program[0], np.array(program[1], np.int64)
        if not record.status.is_timed:
            self._fails[sketch] = self._fails.get(sketch, 0) + 1
            return None
        self._runs.add(sketch)
        return Outcome(sketch, genes, time_s, not is_ok)

    def _locate(self, record: Record) -> Program | None:
        """The program of a record in the space; None if it is not of it."""
        if record.trace not in self._programs:
            program = self._tables.space.locate(record.trace, dict(record.decisions))
            if program is None:
                self._programs[record.trace] = None
            else:
                padded = np.zeros(self._tables.width, np.int64)
                padded[: len(program[1])] = program[1]
                self.note(record.trace, program[0], padded)
        return self._programs[record.trace]


Scores = NDArray[np.float64]


class Guide(Protocol):
    """Scores programs of one space, and learns from those that were measured."""

    def refresh(self) -> None:
        """Begin a round: score by all that was learned."""

    def scores(self, population: Population) -> Scores:
        """One number a program, higher is better; minus infinity for one that cannot be lowered."""

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Take in what was measured."""


MakeGuide = Callable[[Task, Space, int], Guide]
"""The guide of a task's search, from its space and seed."""
