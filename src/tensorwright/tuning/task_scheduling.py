"""Which workload gets the next round, and the objective of a session.

The objective of a session over several workloads: a function of the times of networks.

An objective is any function of `NetworkTimes`, smaller being better; the ones here are those of
Ansor.  A scheduler asks `gradient` how much the objective gains for each second that a workload
loses.

Source:  Zheng et al., Ansor, OSDI 2020, table 2 (f1 to f3; f4, the early stopping of a workload,
         is `GradientScheduler.patience`).

Which workloads are alike: the same kinds of stages in the same order, and about as much work.

Source:  the tags of Ansor's released code, which round the logarithm of the work to base 1.618.

Give rounds where the objective is expected to fall most: gradient descent over workloads.

The gain of one more round of workload i is estimated as

    df/dg_i * ( alpha * (g_i(t) - g_i(t - window)) / window             what the last rounds gave
                + (1 - alpha) * ( min( g_i - g_i / t,                   an optimist: it goes on like
                                       beta * C_i / max_k V_k ) - g_i ) )     that; or as its likes

where g_i is its best time, t its rounds, C_i its operations, V_k the operations per second that a
workload of the same structure reaches.  Everything is computed from the tasks' histories, so a
resumed session continues as the uninterrupted one would have.

Before its first round a workload is ordered by what a model, trained before, predicts of the best
schedule that it knows: far below what was measured of its default, much can be gained; more
certainly where even the upper estimate is.  One of which nothing was measured counts with its
predicted time.

The second term alone lets a costly workload that gains nothing keep rounds for ever, so that trust
in it falls by the factor gamma with every `window` rounds without a gain.

Source:  Zheng et al., Ansor, OSDI 2020, section 6; alpha, beta, the window, epsilon and the rule
         for leaving a group are those of the released code, the falling trust is ours.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, TypeAlias

from tensorwright import expr
from tensorwright.ops import work
from tensorwright.tuning.task import Task


@dataclass(slots=True)
class TaskState:
    """The state of the search of one task: the session writes it, schedulers and displays read it.

    trials        candidates on record, counted over all runs of the session
    default_s     median seconds of the default schedule; infinite if not measured
    best_s        of the best; infinite if there is none
    history       `best_s` after each round
    is_exhausted  its strategy has nothing left to propose
    error         why nothing could be measured, the last of such texts; "" if something was
    predicted_s   of the default by a trained model; infinite without one
    upper_s       the same, exceeded once in ten times
    hoped_s       of the best schedule by the model; infinite if it was not asked
    hoped_upper_s  the same, exceeded once in ten times
    """

    task: Task
    trials: int = 0
    default_s: float = math.inf
    best_s: float = math.inf
    history: tuple[float, ...] = ()
    is_exhausted: bool = False
    error: str = ""
    predicted_s: float = math.inf
    upper_s: float = math.inf
    hoped_s: float = math.inf
    hoped_upper_s: float = math.inf

    @property
    def expected_s(self) -> float:
        """The best time, or the predicted one as long as nothing was tried."""
        return self.best_s if self.trials else min(self.best_s, self.predicted_s)

    @property
    def is_predicted(self) -> bool:
        """Whether a model has a price for it."""
        return math.isfinite(self.predicted_s)

    @property
    def cost_s(self) -> float:
        """The time of the task in the whole; infinite if unknown."""
        return self.task.weight * self.best_s

    @property
    def run_s(self) -> float:
        """Its part of the time of one run of each network; 0 without a measurement."""
        return self.task.call_count * self.best_s if math.isfinite(self.best_s) else 0.0


class Scheduler(Protocol):
    """Chooses tasks. Holds no state of its own that a resumed session would lack."""

    def choose(self, states: Sequence[TaskState]) -> int | None:
        """The position of the task that gets the next round; None if all are exhausted."""


_STEP = 1e-4  # of a workload's time, for derivatives


@dataclass(frozen=True, slots=True)
class NetworkTimes:
    """One network: how often it runs each of its workloads, and their best times in seconds."""

    name: str
    weights: tuple[float, ...]
    times_s: tuple[float, ...]

    @property
    def latency_s(self) -> float:
        """Its time as far as kernels go: the weighted sum."""
        return math.fsum(w * t for w, t in zip(self.weights, self.times_s, strict=True))


Objective: TypeAlias = Callable[[Sequence[NetworkTimes]], float]


@dataclass(frozen=True, slots=True)
class TotalLatency:
    """f1: the sum of the latencies; `weights` are sorted pairs (network, weight), 1 if missing."""

    weights: tuple[tuple[str, float], ...] = ()

    def __call__(self, networks: Sequence[NetworkTimes]) -> float:
        """The value; smaller is better."""
        weights = dict(self.weights)
        return math.fsum(weights.get(each.name, 1.0) * each.latency_s for each in networks)


@dataclass(frozen=True, slots=True)
class LatencyRequirement:
    """f2: as f1, but a network gains nothing by being faster than it must be.

    limits_s   pairs (network, seconds); a network without one gains without end
    """

    limits_s: tuple[tuple[str, float], ...]

    def __call__(self, networks: Sequence[NetworkTimes]) -> float:
        """The value; smaller is better."""
        limits_s = dict(self.limits_s)
        return math.fsum(max(each.latency_s, limits_s.get(each.name, 0.0)) for each in networks)


@dataclass(frozen=True, slots=True)
class MeanSpeedUp:
    """f3: minus the geometric mean of the speed-ups against a reference.

    reference_s   pairs (network, seconds); networks without one do not count
    """

    reference_s: tuple[tuple[str, float], ...]

    def __call__(self, networks: Sequence[NetworkTimes]) -> float:
        """The value; smaller is better."""
        references_s = dict(self.reference_s)
        logs = [
            math.log(references_s[each.name] / each.latency_s)
            for each in networks
            if each.name in references_s and each.latency_s > 0
        ]
        return -math.exp(math.fsum(logs) / len(logs)) if logs else 0.0


def networks_of(
    uses: Sequence[Sequence[tuple[str, float]]], times_s: Sequence[float]
) -> tuple[NetworkTimes, ...]:
    """The networks by name; workloads without a finite time are left out.

    uses   for each workload, pairs (network, weight)       times_s   its best time
    """
    by_network: dict[str, dict[int, float]] = {}
    for number, own in enumerate(uses):
        for network, weight in own:
            members = by_network.setdefault(network, {})
            if math.isfinite(times_s[number]):
                members[number] = members.get(number, 0.0) + weight
    return tuple(
        NetworkTimes(name, tuple(members.values()), tuple(times_s[n] for n in members))
        for name, members in sorted(by_network.items())
    )


def gradient(
    objective: Objective, uses: Sequence[Sequence[tuple[str, float]]], times_s: Sequence[float]
) -> tuple[float, ...]:
    """The derivative of the objective by the time of each workload, numerically, from below.

    From below, because times only fall: at the edge of a requirement nothing is gained. Zero for
    a workload without a finite time.
    """
    now = objective(networks_of(uses, times_s))
    slopes = []
    for number, time_s in enumerate(times_s):
        if not math.isfinite(time_s) or time_s <= 0:
            slopes.append(0.0)
            continue
        step_s = _STEP * time_s
        faster_s = (*times_s[:number], time_s - step_s, *times_s[number + 1 :])
        slopes.append((now - objective(networks_of(uses, faster_s))) / step_s)
    return tuple(slopes)


_WORK_BASE = 1.618


@lru_cache(maxsize=4096)
def structure_of(outputs: tuple[expr.Compute, ...]) -> str:
    """The sequence of a program's stages as text (axes, reduction, operations), and its work.

    Programs of equal structure reach about the same operations per second.
    """
    stages = expr.topological_order(*outputs)
    parts = [_stage_text(stage) for stage in stages if isinstance(stage, expr.Compute)]
    size = int(math.log(operations_of(outputs) + 1, _WORK_BASE))
    return "; ".join([*parts, str(size)])


@lru_cache(maxsize=4096)
def operations_of(outputs: tuple[expr.Compute, ...]) -> int:
    """The operations of one call; 0 for a program that only moves data."""
    return work(outputs)


def _stage_text(stage: expr.Compute) -> str:
    reduction = stage.reduction.combiner.name if stage.reduction is not None else "-"
    operations = " ".join(_operations(stage.body))
    return f"{len(stage.axes)} {len(stage.reduce_axes)} {reduction} {operations}"


def _operations(value: expr.Value) -> Iterator[str]:
    if isinstance(value, expr.Apply):
        yield value.fn.name
    else:
        yield type(value).__name__
    for child in expr.children(value):
        yield from _operations(child)


_LEAVE_ROUNDS = 5  # a slow member leaves its group after so many rounds more than any other
_LEAST_GAIN = 1e-3  # share of its time that a workload must lose to count as gaining
_LEAST_PROMISE = 0.1  # of a first round, where the default is as fast as was predicted
_UNKNOWN_EVERY = 4  # the period of rounds for workloads without a good measurement


@dataclass(frozen=True, slots=True)
class GradientScheduler:
    """As above. `choose` is a function of the states alone.

    objective      what is made small; the weighted sum of all latencies
    alpha, beta    trust in the past against the future; how far likes may differ in speed
    gamma          factor of the optimist's trust for each `window` idle rounds; 1 as in the paper
    window         rounds that a past gain is taken over
    epsilon        share of rounds that go anywhere, drawn from `seed` and the number of rounds
    warm_up_share  at first each workload gets a round, the costliest first, but those whose hope
                   is below this share of the largest wait for their turn by gain
    race_share     the same for workloads with a prediction: their first round is a short race
    patience       rounds without a gain after which a workload gets none any more; never if 0
    """

    objective: Objective = field(default_factory=TotalLatency)
    alpha: float = 0.2
    beta: float = 2.0
    gamma: float = 0.5
    window: int = 3
    epsilon: float = 0.05
    warm_up_share: float = 0.3
    race_share: float = 0.1
    patience: int = 0
    seed: int = 0

    def choose(self, states: Sequence[TaskState]) -> int | None:
        """As `Scheduler.choose`."""
        open_tasks = [n for n, state in enumerate(states) if not self.is_done(state)]
        if not open_tasks:
            return None
        rounds = sum(len(state.history) for state in states)
        timed = [n for n in open_tasks if math.isfinite(states[n].expected_s)]
        untimed = [n for n in open_tasks if n not in timed]
        if untimed and (not timed or rounds % _UNKNOWN_EVERY == 0):
            return min(untimed, key=lambda n: (len(states[n].history), n))
        gains = self.gains(states)
        most = max(gains[n] for n in timed)
        waiting: list[int] = []
        for n in (n for n in timed if not states[n].history):
            share = self.race_share if states[n].is_predicted else self.warm_up_share
            waiting += [n] if gains[n] >= share * most else []
        if waiting:
            promises = predicted_promises(states)
            return max(waiting, key=lambda n: (promises[n] * gains[n], -n))
        drawn = random.Random(f"{self.seed} {rounds}")
        if drawn.random() < self.epsilon:
            return drawn.choice(timed)
        return max(timed, key=lambda n: (gains[n], -n))

    def is_done(self, state: TaskState) -> bool:
        """Whether a workload gets no more rounds: exhausted, or out of patience."""
        return state.is_exhausted or 0 < self.patience <= rounds_without_gain(state.history)

    def gains(self, states: Sequence[TaskState]) -> tuple[float, ...]:
        """The expected decrease of the objective by one more round of each task.

        0 for a task without a finite time.
        """
        uses = [state.task.uses for state in states]
        slopes = gradient(self.objective, uses, [state.expected_s for state in states])
        speeds = self._group_speeds(states)
        return tuple(
            max(0.0, slope * self._expected_s(state, speed)) if slope else 0.0
            for state, slope, speed in zip(states, slopes, speeds, strict=True)
        )

    def _expected_s(self, state: TaskState, group_speed: float) -> float:
        """Seconds that a task is expected to lose in its next round."""
        history, best_s = state.history, state.expected_s
        backward_s = 0.0
        if len(history) > self.window and math.isfinite(history[-1 - self.window]):
            backward_s = max(0.0, history[-1 - self.window] - history[-1]) / self.window
        hoped_s = best_s - best_s / max(1, len(history))
        if group_speed:
            hoped_s = min(
                hoped_s, self.beta * operations_of(state.task.workload.outputs) / group_speed
            )
        trust: float = self.gamma ** (rounds_without_gain(history) / self.window)
        return self.alpha * backward_s + (1 - self.alpha) * trust * (best_s - hoped_s)

    def _group_speeds(self, states: Sequence[TaskState]) -> tuple[float, ...]:
        """For each task the best operations per second of its group; 0 if it is alone."""
        speeds = [_speed(state) for state in states]
        groups: dict[str, list[int]] = {}
        for number, state in enumerate(states):
            if speeds[number]:
                groups.setdefault(structure_of(state.task.workload.outputs), []).append(number)
        group_speeds = [0.0] * len(states)
        for members in groups.values():
            staying = self._staying(members, states, speeds)
            if len(staying) > 1:
                best = max(speeds[n] for n in staying)
                for number in staying:
                    group_speeds[number] = best
        return tuple(group_speeds)

    def _staying(
        self, members: Sequence[int], states: Sequence[TaskState], speeds: Sequence[float]
    ) -> list[int]:
        """The members of a group without those that turned out to be different."""
        best = max(speeds[n] for n in members)
        rounds = {n: len(states[n].history) for n in members}
        return [
            n
            for n in members
            if speeds[n] >= best / self.beta
            or rounds[n] <= _LEAVE_ROUNDS + max(rounds[k] for k in members if k != n)
        ]


def predicted_promises(states: Sequence[TaskState]) -> tuple[float, ...]:
    """The share of its time that each workload is expected to lose in its first round.

    Predictions are compared after what was measured of the defaults: a machine on which all of them
    take half as long again promises nothing.  1 for a workload without a prediction.
    """
    ratios = [
        state.default_s / state.predicted_s
        for state in states
        if state.is_predicted and state.predicted_s > 0 and math.isfinite(state.default_s)
    ]
    factor = statistics.median(ratios) if ratios else 1.0
    return tuple(_promise(state, factor) for state in states)


def _promise(state: TaskState, factor: float) -> float:
    if not state.is_predicted:
        return 1.0
    if not math.isfinite(state.default_s) or state.default_s <= 0:
        return _LEAST_PROMISE
    expected_s = state.predicted_s, state.upper_s  # median, and exceeded once in ten times
    if state.hoped_s < state.predicted_s:
        expected_s = state.hoped_s, state.hoped_upper_s
    gains = [max(0.0, 1.0 - factor * time_s / state.default_s) for time_s in expected_s]
    return max(_LEAST_PROMISE, sum(gains) / len(gains))


def rounds_without_gain(history: Sequence[float]) -> int:
    """The number of rounds at the end of a history without a significant gain."""
    count, reference_s = 0, math.inf
    for time_s in history:
        if time_s < (1 - _LEAST_GAIN) * reference_s:
            count, reference_s = 0, time_s
        else:
            count += 1
    return count


def _speed(state: TaskState) -> float:
    if not math.isfinite(state.best_s) or state.best_s <= 0:
        return 0.0
    return operations_of(state.task.workload.outputs) / state.best_s
