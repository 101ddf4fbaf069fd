"""The candidates for the schedule of a workload that was not tuned, priced by the time model.

First every structure with the decisions chosen by rule, and some drawn at random; then children
and neighbours of the best of these.  Candidates of a structure are priced together.

The effort is counted in steps of plans and in candidates, never in seconds: so the choice is the
same on a busy machine.

The chosen schedule of a workload, and its estimate.

Schedules that were chosen, kept on the disk: choosing again would give the same.

The key of an entry has everything that determines a choice: workload, target, machine, the model,
the effort, and this package's own sources.  The entry has the trace and its estimates as JSON; it
appears whole or not at all, and a damaged one is ignored (see `KernelCache`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
from numpy.random import Generator

from tensorwright import base, schedule
from tensorwright.loop import LoopProgram, lower
from tensorwright.machine import Card, Machine
from tensorwright.runtime import KernelCache, named_cache
from tensorwright.tuning.features import Featurizer
from tensorwright.tuning.population import (
    Candidate,
    make_space_tables,
    mutate,
    neighbourhood,
    sample,
)
from tensorwright.tuning.population.population import Population, by_sketch, find_new, pick_diverse
from tensorwright.tuning.space import Sketch, Space
from tensorwright.tuning.time_model import AnyTimeModel, Policy, Prediction, shared_lines_s


@dataclass(frozen=True, slots=True)
class Estimate:
    """The time of a program: a median, and a time that is exceeded once in ten times."""

    seconds: float
    upper_seconds: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """A schedule.

    estimate    None if the program cannot be priced
    by_rule     the estimate of the schedule by rule; None if that cannot be priced
    is_by_rule  whether it is that one
    decisions   in its sketch: sorted pairs (name, value)
    """

    trace: schedule.Trace
    estimate: Estimate | None
    by_rule: Estimate | None
    is_by_rule: bool
    decisions: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Elite:
    """One of the candidates that are expected to be the fastest, and its expected time."""

    candidate: Candidate
    estimate: Estimate


LIMIT_BYTES = 32 << 20
SOURCES = (
    "machine",
    "expr",
    "schedule",
    "loop",
    "tuning/space",
    "tuning/features",
    "tuning/models",
    "tuning/time_model",
    "tuning/population",
    "tuning/selection",
)
"""The folders whose code turns a workload into a choice."""
_KINDS = base.kinds_of(Chosen, Estimate)


def choice_cache() -> KernelCache | None:
    """The cache in the folder of the knob `home`; None if the knob switches it off."""
    return named_cache("choices", LIMIT_BYTES) if base.knobs.KERNEL_CACHE.get() else None


def choice_key(*parts: str) -> str:
    """The key of a choice that comes from these."""
    return hashlib.sha256("\0".join((base.source_digest(*SOURCES), *parts)).encode()).hexdigest()


def pack(chosen: Chosen) -> bytes:
    """A choice as an entry: its trace as text, and the rest."""
    parts = schedule.format_trace(chosen.trace), replace(chosen, trace=())
    return json.dumps(base.to_data(parts)).encode()


def unpack(entry: bytes) -> Chosen | None:
    """The inverse of `pack`; None for anything else."""
    try:
        text, chosen = base.from_data(json.loads(entry), _KINDS)
        whole: Chosen = replace(chosen, trace=schedule.parse_trace(text))
    except (ValueError, TypeError, AttributeError, base.UsageError):
        return None
    return whole


_VARIETY = 0.1  # see `pick_diverse`


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort for one workload.

    plan_steps   of all plans: with so many, no further structure is added
    algorithms   the schedules by rule with another algorithm that are priced
    draws        candidates drawn at random      parents   the number of the best with children
    children     of each parent                  tried     the most of the best that are checked
    """

    plan_steps: int = 2800
    algorithms: int = 3
    draws: int = 256
    parents: int = 12
    children: int = 14
    tried: int = 4


class Candidates:
    """The candidates of one workload and their prices; grows while it searches."""

    def __init__(
        self,
        state: schedule.ScheduleState,
        model: AnyTimeModel,
        machine: Machine | Card,
        effort: Effort,
    ) -> None:
        self.state = state
        self._features = Featurizer(state, machine.target)
        self._model = model
        self._machine = machine
        self._effort = effort

    def structures(self, sketches: Iterable[Sketch]) -> tuple[Sketch, ...]:
        """The first sketches that can be priced, as many as the effort allows.

        No further sketch is made.
        """
        priced: list[Sketch] = []
        steps = 0
        for sketch in sketches:
            try:
                plan = self._features.plan(sketch)
            except base.TensorwrightError:
                continue
            if plan.statements:
                priced.append(sketch)
                steps += len(plan)
            if steps >= self._effort.plan_steps:
                break
        return tuple(priced)

    def search(self, sketches: tuple[Sketch, ...], random: Generator) -> Ranked:
        """Price candidates of sketches, children of the best, and all neighbours of the very best.

        The first candidate is the first sketch as chosen by rule.
        """
        space = Space(sketches)
        tables = make_space_tables(space)
        first = [tables.starts(), sample(tables, self._effort.draws, random)]
        tried = Population.joined(first)
        tried = tried.take(tried.first_of_each())
        prices = self._price(space, tried)
        order = np.argsort(prices.scores(self._model.policy.caution), kind="stable")
        parents = np.repeat(order[: self._effort.parents], self._effort.children)
        children = mutate(tables, tried.take(parents), random)
        best = int(order[0])
        near = neighbourhood(tables, int(tried.sketch[best]), tried.genes[best])
        more = find_new(Population.joined([children, near]), tried.keys)
        both = Population.joined([tried, more])
        added = self._price(space, more)
        prices = _joined([prices, added])
        return Ranked(space, both, prices, self._model.policy.caution, self._waiting_s)

    def _price(self, space: Space, population: Population) -> Prediction:
        median, upper, roofline = (np.full(len(population), np.inf) for _ in range(3))
        for number, rows in by_sketch(population.sketch):
            sketch = space.sketches[number]
            genes = population.genes[rows, : len(sketch.choices)]
            features = self._features.of_sketch(sketch, genes)
            prediction = self._model.predict(features, self._machine)
            median[rows], upper[rows] = prediction.median, prediction.upper
            roofline[rows] = prediction.roofline
        return Prediction(median, upper, roofline)

    def price_exactly(self, *traces: schedule.Trace) -> Prediction | None:
        """The prices of traces without open decisions.

        None if one does not replay, every step checked, or does not lower. For a candidate of a
        sketch some numbers are bounds: how many blocks a tile touches depends on its position.
        """
        machine = self._machine
        try:
            programs = [self._outline(trace) for trace in traces]
            features = [self._features.of_program(program) for program in programs]
        except base.TensorwrightError:
            return None
        return _joined(
            [
                self._model.predict(each, machine).later(shared_lines_s(program, machine))
                for each, program in zip(features, programs, strict=True)
            ]
        )

    def _outline(self, trace: schedule.Trace) -> LoopProgram:
        """The outline of a trace, from which features are computed, if it lowers."""
        state = schedule.replay(self.state, trace)
        program = lower(state)
        return lower(state, is_outline=True) if isinstance(self._machine, Card) else program

    def _waiting_s(self, sketch: Sketch, decisions: Mapping[str, int]) -> float:
        """Seconds that the threads of a candidate wait for lines of each other."""
        return shared_lines_s(self._features.plan(sketch).program, self._machine, decisions)

    def is_sound(self, trace: schedule.Trace) -> bool:
        """Whether a trace replays, every step checked, and lowers."""
        try:
            lower(schedule.replay(self.state, trace))
        except base.TensorwrightError:
            return False
        return True


def _joined(parts: Sequence[Prediction]) -> Prediction:
    return Prediction(
        np.concatenate([one.median for one in parts]),
        np.concatenate([one.upper for one in parts]),
        np.concatenate([one.roofline for one in parts]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Candidates and their prices; candidate 0 is the first sketch as chosen by rule.

    prices      by features alone
    waiting_s   the seconds that threads wait for lines of each other, in a sketch with some
                decisions; it is computed for few candidates
    """

    space: Space
    population: Population
    prices: Prediction
    caution: float
    waiting_s: Callable[[Sketch, Mapping[str, int]], float]

    @property
    def scores(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The scores by features alone; lower is better (candidates,)."""
        scores: np.ndarray[tuple[int], np.dtype[np.float64]] = self.prices.scores(self.caution)
        return scores

    def price(self, number: int) -> Prediction:
        """The price of one candidate."""
        waiting_s = self.waiting_s(self._sketch(number), dict(self.decisions(number)))
        return self.prices.of(number).later(waiting_s)

    def best_first(self, numbers: Iterable[int]) -> Iterator[tuple[float, int]]:
        """The scores and numbers of some candidates; of equals, the one that was tried first.

        Waiting raises scores: a candidate is final when the next by features is not better.
        """
        alone = self.scores
        priced: list[tuple[float, int]] = []
        for number in sorted(numbers, key=lambda number: (alone[number], number)):
            while priced and priced[0][0] <= alone[number]:
                yield heappop(priced)
            heappush(priced, (float(self.price(number).scores(self.caution)[0]), number))
        while priced:
            yield heappop(priced)

    def better_than_rule(self, policy: Policy) -> Iterator[int]:
        """The numbers of the candidates that beat the rule's score by more than a margin.

        Their roofline must not be much higher, because the trees correct only that model.
        """
        most = self.price(0).scores(self.caution)[0] - policy.margin
        roofline = self.prices.roofline
        is_likely = (self.scores < most) & (roofline <= roofline[0] + policy.roofline_margin)
        likely = self.best_first(np.flatnonzero(is_likely).tolist())
        yield from (number for score, number in likely if score < most)

    def unlike(self, count: int) -> Iterator[int]:
        """Some of the best that are unlike each other, the best of all first."""
        scores = self.scores
        for number in pick_diverse(self.population, -scores, count, _VARIETY).tolist():
            if np.isfinite(scores[number]):
                yield number

    def trace(self, number: int) -> schedule.Trace:
        """The schedule of a candidate."""
        return self._sketch(number).bound(dict(self.decisions(number)))

    def decisions(self, number: int) -> tuple[tuple[str, int], ...]:
        """The decisions of a candidate in its sketch: sorted pairs (name, value)."""
        sketch = self._sketch(number)
        genes = self.population.genes[number, : len(sketch.choices)]
        return tuple(sorted(sketch.decisions_of(tuple(genes.tolist())).items()))

    def candidate(self, number: int, trace: schedule.Trace) -> Candidate:
        """A candidate with its trace, as it is proposed to be measured."""
        return Candidate(
            schedule.format_trace(trace), self._sketch(number).name, self.decisions(number)
        )

    def _sketch(self, number: int) -> Sketch:
        return self.space.sketches[int(self.population.sketch[number])]
