"""Give rounds where the objective is expected to fall most: gradient descent over workloads.

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
from collections.abc import Sequence
from dataclasses import dataclass, field

from tensorwright.tuning.task_scheduling.objective import Objective, TotalLatency, gradient
from tensorwright.tuning.task_scheduling.scheduler import TaskState
from tensorwright.tuning.task_scheduling.similarity import operations_of, structure_of

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
        waiting = [
            n
            for n in timed
            if not states[n].history and gains[n] >= self._first_share(states[n]) * most
        ]
        if waiting:
            promises = predicted_promises(states)
            return max(waiting, key=lambda n: (promises[n] * gains[n], -n))
        drawn = random.Random(f"{self.seed} {rounds}")
        if drawn.random() < self.epsilon:
            return drawn.choice(timed)
        return max(timed, key=lambda n: (gains[n], -n))

    def _first_share(self, state: TaskState) -> float:
        """A first round waits while its gain is below this share of the largest."""
        return self.race_share if state.is_predicted else self.warm_up_share

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
    gains = [max(0.0, 1.0 - factor * time_s / state.default_s) for time_s in _hopes(state)]
    return max(_LEAST_PROMISE, sum(gains) / len(gains))


def _hopes(state: TaskState) -> tuple[float, float]:
    """The expected time after the first round, as a median, and as exceeded once in ten times."""
    if state.hoped_s < state.predicted_s:
        return state.hoped_s, state.hoped_upper_s
    return state.predicted_s, state.upper_s


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
