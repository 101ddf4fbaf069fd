"""The expected times of programs on a machine, and the schedules expected to be the fastest."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from math import sqrt
from pathlib import Path
from typing import TypeVar

import numpy as np

from tensorwright import base, schedule
from tensorwright.expr import Tensor, topological_order
from tensorwright.machine import NOMINAL, Card, Machine, card_of
from tensorwright.runtime import KernelCache
from tensorwright.runtime.measuring import this_machine
from tensorwright.tuning import time_model
from tensorwright.tuning.selection.candidates import (
    Candidates,
    Chosen,
    Effort,
    Elite,
    Estimate,
    Ranked,
    choice_cache,
    choice_key,
    pack,
    unpack,
)
from tensorwright.tuning.space import Sketch, algorithm_sketches, sketches_of

_MOST_REMEMBERED = 4096
_RACE_STEPS = 12_000  # of plans, if candidates are measured: other algorithms come last
_CARD_EFFORT = Effort(plan_steps=2 * _RACE_STEPS, draws=4096, parents=32, children=32)
"""Plans for cards are longer because of lanes; there are few structures, with many tiles."""
_SHORT_S = 20e-6  # starting threads takes 1 or 2 us: longer programs need them

K = TypeVar("K")
V = TypeVar("V")


class Predictor:
    """Predicts for one machine: a target, a number of threads, and where constants lie.

    Equal workloads get equal answers in every process: nothing depends on time or on the order of
    calls.  `counts` counts the answers: remembered, cached, chosen, estimated.
    Threads:  any number may ask at once.
    """

    def __init__(
        self, model: time_model.AnyTimeModel, machine: Machine | Card, effort: Effort | None = None
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._model = model
        self._machine = machine
        self._effort = effort or Effort()
        self._digest = model.digest
        self._lock = threading.Lock()
        self._chosen: OrderedDict[str, Chosen] = OrderedDict()
        self._estimates: OrderedDict[tuple[str, str], Estimate | None] = OrderedDict()

    def best(self, workload: schedule.Workload) -> Chosen:
        """The schedule of a workload that was not tuned, and its estimate."""
        with self._lock:
            if workload.key in self._chosen:
                self.counts["remembered"] += 1
                return self._chosen[workload.key]
        chosen = self._cached(workload)
        with self._lock:
            _remember(self._chosen, workload.key, chosen)
        return chosen

    def estimate(
        self, workload: schedule.Workload, trace: schedule.Trace | None = None
    ) -> Estimate | None:
        """The estimate of a workload with a schedule; None: with the best one.

        None for a program without features: it cannot be lowered, or computes nothing.
        """
        if trace is None:
            return self.best(workload).estimate
        key = workload.key, schedule.format_trace(trace)
        with self._lock:
            if key in self._estimates:
                return self._estimates[key]
        self.counts["estimated"] += 1
        if _computes_nothing(workload):
            return None
        prices = self._candidates(schedule.state_of(workload)).price_exactly(trace)
        estimate = None
        if prices is not None and np.isfinite(prices.median[0]):
            estimate = _estimate(prices, 0)
        with self._lock:
            _remember(self._estimates, key, estimate)
        return estimate

    def price(self, workload: schedule.Workload) -> float | None:
        """Seconds of a workload that was not tuned, as a step of a network.

        Between the median and the upper estimate: of two equal medians, the certain one is better.
        None for a program that cannot be priced or scheduled.
        """
        try:
            estimate = self.best(workload).estimate
        except base.TensorwrightError:
            return None
        if estimate is None:
            return None
        return sqrt(estimate.seconds * estimate.upper_seconds) + NOMINAL.call_s

    @property
    def cost_model(self) -> time_model.PredictedTime:
        """The same predictions for a search, which ranks candidates by them."""
        return time_model.PredictedTime(self._model, self._machine)

    def top(self, workload: schedule.Workload, count: int) -> tuple[Elite, ...]:
        """Up to `count` schedules that are expected to be fast, each sound, the best first.

        They are unlike each other: if the best disappoints, so do those that are like it.
        """
        state = schedule.state_of(workload)
        effort = replace(self._effort, plan_steps=max(_RACE_STEPS, self._effort.plan_steps))
        candidates = self._candidates(state, effort)
        sketches = sketches_of(state, self._machine.target, algorithms=effort.algorithms > 0)
        with base.without_collection():
            ranked = self._ranked(workload, next(sketches), sketches, candidates)
        elites: dict[str, Elite] = {}
        if ranked is None:
            return ()
        for number in ranked.unlike(2 * count):
            if len(elites) == count:
                break
            trace = ranked.trace(number)
            if candidates.is_sound(trace):
                estimate = _estimate(ranked.price(number), 0)
                candidate = ranked.candidate(number, trace)
                candidate = replace(candidate, predicted_s=estimate.seconds)
                elites.setdefault(candidate.trace, Elite(candidate, estimate))
        return tuple(elites.values())

    def top_question(self, workload: schedule.Workload, count: int) -> TopQuestion:
        """A call of `top`, for another process."""
        tensors = topological_order(*workload.outputs)
        file = base.knobs.TIME_MODEL.get()
        return TopQuestion(tensors, workload, self._machine, self._effort, file, count)

    def _cached(self, workload: schedule.Workload) -> Chosen:
        cache = choice_cache()
        if cache is None:
            return self._choose(workload)
        chosen = self._kept(workload, cache)
        if chosen is not None:
            self.counts["cached"] += 1
            return chosen
        chosen = self._choose(workload)
        cache.put(self._key(workload), pack(chosen))
        return chosen

    def has_chosen(self, workload: schedule.Workload) -> bool:
        """Whether the schedule of a workload was chosen before, and is in memory or cached."""
        cache = choice_cache()
        with self._lock:
            is_remembered = workload.key in self._chosen
        return is_remembered or (cache is not None and self._kept(workload, cache) is not None)

    def _kept(self, workload: schedule.Workload, cache: KernelCache) -> Chosen | None:
        entry = cache.get(self._key(workload))
        return unpack(entry) if entry is not None else None

    def _key(self, workload: schedule.Workload) -> str:
        """The key of a choice in the cache."""
        parts = (self._machine.target.key, repr(self._machine), repr(self._effort), self._digest)
        return choice_key(workload.key, *parts)

    def _choose(self, workload: schedule.Workload) -> Chosen:
        """The best candidate, if it is better than the rule's by the margin of the model."""
        self.counts["chosen"] += 1
        with base.without_collection():
            return self._without_idle_threads(workload, self._best(workload))

    def _without_idle_threads(self, workload: schedule.Workload, chosen: Chosen) -> Chosen:
        """The same on one thread, if more threads are expected to cost more than they save."""
        alone = tuple(step for step in chosen.trace if not isinstance(step, schedule.Parallel))
        is_short = chosen.estimate is not None and chosen.estimate.seconds <= _SHORT_S
        if self._machine.threads == 1 or not is_short or alone == chosen.trace:
            return chosen
        exact = self._gain(self._candidates(schedule.state_of(workload)), chosen.trace, alone)
        if exact is None:
            return chosen
        return replace(chosen, trace=alone, estimate=_estimate(exact, 1), is_by_rule=False)

    def _gain(
        self, candidates: Candidates, kept: schedule.Trace, other: schedule.Trace
    ) -> time_model.Prediction | None:
        """The exact prices of two schedules; None if the other is not better by the margin."""
        exact = candidates.price_exactly(kept, other)
        if exact is None:
            return None
        of_kept, of_other = exact.scores(self._model.policy.caution).tolist()
        return exact if of_other < of_kept - self._model.policy.margin else None

    def _best(self, workload: schedule.Workload) -> Chosen:
        state = schedule.state_of(workload)
        is_card = isinstance(self._machine, Card)
        sketches = sketches_of(
            state, self._machine.target, algorithms=is_card and self._effort.algorithms > 0
        )
        by_rule = next(sketches)
        rule = by_rule.bound(by_rule.defaults)
        unpriced = Chosen(
            rule, None, None, is_by_rule=True, decisions=tuple(sorted(by_rule.defaults.items()))
        )
        candidates = self._candidates(state)
        if any(isinstance(step, schedule.Tensorize) and not step.is_of_floats for step in rule):
            exact = candidates.price_exactly(rule)  # the model was not trained on integers
            estimate = None if exact is None else _estimate(exact, 0)
            return replace(unpriced, estimate=estimate, by_rule=estimate)
        # on cards sizes decide about algorithms, too: all are candidates of one search
        other = None if is_card else self._by_algorithm(workload, rule, candidates)
        if other is not None:
            return other
        ranked = self._ranked(workload, by_rule, sketches, candidates)
        if ranked is None:
            return unpriced
        for number in islice(ranked.better_than_rule(self._model.policy), self._effort.tried):
            trace = ranked.trace(number)
            exact = self._gain(candidates, rule, trace)
            if exact is not None:
                return Chosen(
                    trace,
                    _estimate(exact, 1),
                    _estimate(exact, 0),
                    is_by_rule=False,
                    decisions=ranked.decisions(number),
                )
        usual = _estimate(ranked.price(0), 0)
        return replace(unpriced, estimate=usual, by_rule=usual)

    def _by_algorithm(
        self, workload: schedule.Workload, rule: schedule.Trace, candidates: Candidates
    ) -> Chosen | None:
        """The best schedule by rule with another algorithm; None if the direct one is as fast."""
        if _computes_nothing(workload):
            return None
        others = algorithm_sketches(candidates.state, self._machine.target)
        sketches = tuple(islice(others, self._effort.algorithms))
        traces = [sketch.bound(sketch.defaults) for sketch in sketches]
        if not traces:
            return None
        prices = candidates.price_exactly(rule, *traces)
        if prices is None:
            return None
        policy = self._model.policy
        scores = prices.scores(policy.caution)
        best = int(np.argmin(scores[1:])) + 1
        if not scores[best] < scores[0] - policy.algorithm_margin:
            return None
        estimate, by_rule = _estimate(prices, best), _estimate(prices, 0)
        decisions = tuple(sorted(sketches[best - 1].defaults.items()))
        return Chosen(traces[best - 1], estimate, by_rule, is_by_rule=False, decisions=decisions)

    def _ranked(
        self,
        workload: schedule.Workload,
        by_rule: Sketch,
        others: Iterable[Sketch],
        candidates: Candidates,
    ) -> Ranked | None:
        """The candidates of a workload; None if the schedule by rule cannot be priced."""
        if _computes_nothing(workload):
            return None
        open_sketches = candidates.structures(chain((by_rule,), others))
        if not open_sketches or open_sketches[0] is not by_rule:
            return None
        seed = hashlib.sha256(workload.key.encode()).digest()[:8]
        random = np.random.default_rng(int.from_bytes(seed, "little"))
        return candidates.search(open_sketches, random)

    def _candidates(
        self, state: schedule.ScheduleState, effort: Effort | None = None
    ) -> Candidates:
        return Candidates(state, self._model, self._machine, effort or self._effort)


@dataclass(frozen=True, slots=True)
class TopQuestion:
    """The arguments of `Predictor.top` for another process; they can be pickled.

    tensors   the workload's, inputs first: pickling them in this order needs no deep stack
    file      the knob `time_model`
    """

    tensors: tuple[Tensor, ...]
    workload: schedule.Workload
    machine: Machine | Card
    effort: Effort
    file: Path | None
    count: int

    def answer(self) -> tuple[Elite, ...]:
        """As `Predictor.top`; none if the model cannot be loaded."""
        with base.override(time_model=self.file):
            model = time_model.time_model_of(self.machine.target)
        if model is None:
            return ()
        predictor = Predictor(model, self.machine, self.effort)
        return predictor.top(self.workload, self.count)


def open_predictor(target: base.Target, threads: int, *, is_cold: bool = False) -> Predictor | None:
    """The predictor of the time model of a target; None if there is none, or it is switched off.

    The knob `default_schedule` switches it off.

    is_cold   constants come from memory in each call, as in a network
    """
    if base.knobs.DEFAULT_SCHEDULE.get() == "rule":
        return None
    model = time_model.time_model_of(target)
    if model is None:
        return None
    effort = _CARD_EFFORT if isinstance(target, base.GpuTarget) else Effort()
    if not base.knobs.WINOGRAD.get():
        effort = replace(effort, algorithms=0)
    settings = base.knobs.HOME.get(), base.knobs.ASSUME.get(), base.knobs.DEVICE_GRAPHS.get()
    return _predictor(model, target, threads, is_cold, effort, settings)


@lru_cache(maxsize=16)
def _predictor(
    model: time_model.AnyTimeModel,
    target: base.Target,
    threads: int,
    is_cold: bool,
    effort: Effort,
    _settings: tuple[Path, str, bool],
) -> Predictor:
    machine: Machine | Card
    if isinstance(target, base.GpuTarget):
        machine = card_of(target)
    else:
        machine = this_machine(target, threads, is_cold=is_cold)
    return Predictor(model, machine, effort)


def _estimate(prices: time_model.Prediction, number: int) -> Estimate:
    return Estimate(float(2.0 ** prices.median[number]), float(2.0 ** prices.upper[number]))


def _computes_nothing(workload: schedule.Workload) -> bool:
    """Whether a tensor has an extent of 0: there is nothing to choose."""
    tensors = topological_order(*workload.outputs)
    return any(0 in tensor.shape for tensor in tensors)


def _remember(table: OrderedDict[K, V], key: K, value: V) -> None:
    """Keep an answer, and forget the oldest if there are too many."""
    table[key] = value
    if len(table) > _MOST_REMEMBERED:
        table.popitem(last=False)
