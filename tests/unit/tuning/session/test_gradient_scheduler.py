"""Where rounds go: gradients worked out by hand, and simulated searches."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

import pytest
from tests.unit.tuning.helpers import SIZE, doubled, matmul, workload_of

from tensorwright.expr import compute, placeholder
from tensorwright.graph import Workload
from tensorwright.tuning.session.session import merge
from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import (
    GradientScheduler,
    LatencyRequirement,
    Scheduler,
    TaskState,
    operations_of,
    rounds_without_gain,
    structure_of,
)
from tensorwright_lab.strategies import RoundRobinScheduler


def structure(workload: Workload) -> str:
    return structure_of(workload.outputs)


def doubled_twice() -> Workload:
    x = placeholder("x", (SIZE // 2,))
    return workload_of(compute("y", (SIZE // 2,), lambda i: x[i] * 2.0 * 2.0))


def copied() -> Workload:
    """No operation at all: of no group."""
    x = placeholder("x", (SIZE,))
    return workload_of(compute("y", (SIZE,), lambda i: x[i]))


PLAIN = GradientScheduler(epsilon=0.0)
TRUSTING = GradientScheduler(epsilon=0.0, gamma=1.0)


def state(
    *history: float, weight: float = 1.0, best_s: float | None = None, size: int = 0, net: str = ""
) -> TaskState:
    """A task of no group where `size` is 0, else a matmul of that size."""
    workload = matmul(size) if size else copied()
    known_s = best_s if best_s is not None else (history[-1] if history else math.inf)
    return TaskState(Task(workload, weight, net), best_s=known_s, history=history)


def test_the_gradient_of_one_task_by_hand() -> None:
    """Backward (0.7 - 0.4) / 3 = 0.1; forward 0.4 / 5 = 0.08; by weight 3 and alpha 0.2."""
    lonely = state(0.8, 0.7, 0.6, 0.5, 0.4, weight=3.0)
    assert PLAIN.gains([lonely]) == pytest.approx([3 * (0.2 * 0.1 + 0.8 * 0.08)])


def test_trust_falls_while_nothing_is_gained() -> None:
    """Three idle rounds after the first: half of 0.8 * 0.4 / 4."""
    idle = state(0.4, 0.4, 0.4, 0.4)
    assert PLAIN.gains([idle]) == pytest.approx([0.5 * 0.8 * 0.1])
    assert TRUSTING.gains([idle]) == pytest.approx([0.8 * 0.1])


def test_a_short_history_has_no_past() -> None:
    assert PLAIN.gains([state(0.8, 0.7, 0.6)]) == pytest.approx([0.8 * 0.6 / 3])
    assert PLAIN.gains([state(best_s=0.6)]) == pytest.approx([0.8 * 0.6])


def test_a_slow_task_may_become_as_fast_as_its_like() -> None:
    """Equal work, 0.1 s against 0.4 s: half the speed of the like, 0.2 s, is hoped for."""
    fast, slow = state(0.1, 0.1, 0.1, size=32), state(0.4, 0.4, 0.4, size=32)
    fast_gain, slow_gain = TRUSTING.gains([fast, slow])
    assert slow_gain == pytest.approx(0.8 * (0.4 - 0.2))
    assert fast_gain == pytest.approx(0.8 * 0.1 / 3)


def test_a_task_that_stays_slow_leaves_its_group() -> None:
    """After more than 5 rounds beyond any other of the group, it is held to be different."""
    fast = state(0.1, size=32)
    staying = state(*[0.4] * 6, size=32)
    leaving = state(*[0.4] * 7, size=32)
    assert TRUSTING.gains([fast, staying])[1] == pytest.approx(0.8 * 0.2)
    assert TRUSTING.gains([fast, leaving])[1] == pytest.approx(0.8 * 0.4 / 7)


def test_groups_go_by_structure_and_about_equal_work() -> None:
    assert structure(matmul(32)) == structure(matmul(33)) != structure(matmul(64))
    assert structure(doubled()) != structure(doubled_twice())
    assert operations_of(matmul(64).outputs) == 2 * 64**3 + 64**2


def test_the_first_rounds_go_round_the_costliest_first() -> None:
    states = [state(best_s=1.0), state(best_s=3.0), state(best_s=2.0)]
    order = []
    for _ in states:
        chosen = PLAIN.choose(states)
        assert chosen is not None
        order.append(chosen)
        states[chosen].history = (states[chosen].best_s,)
    assert order == [1, 2, 0]


def test_a_task_of_no_weight_waits_for_the_others() -> None:
    states = [state(1.0), state(best_s=0.001)]
    assert PLAIN.choose(states) == 0
    assert GradientScheduler(epsilon=0.0, warm_up_share=0.0).choose(states) == 1


def test_unknown_tasks_take_turns_and_do_not_starve_the_others() -> None:
    states = [state(1.0), state(), state()]
    chosen = []
    for _ in range(9):
        place = PLAIN.choose(states)
        assert place is not None
        chosen.append(place)
        states[place].history = (*states[place].history, states[place].best_s)
    assert chosen.count(0) >= 6
    assert {1, 2} <= set(chosen)


def test_tasks_out_of_patience_get_nothing() -> None:
    patient = GradientScheduler(epsilon=0.0, patience=2)
    stuck, moving = state(9.0, 9.0, 9.0), state(0.2, 0.1)
    assert PLAIN.choose([stuck, moving]) == 0
    assert patient.choose([stuck, moving]) == 1
    assert patient.choose([stuck]) is None
    assert rounds_without_gain((3.0, 2.0, 2.0, 1.9999, 1.0)) == 0
    assert rounds_without_gain((math.inf, 2.0, 2.0, 1.9999)) == 2


def test_nothing_left() -> None:
    spent = state(1.0)
    spent.is_exhausted = True
    assert PLAIN.choose([spent]) is None
    assert PLAIN.choose([]) is None


def test_a_network_that_is_fast_enough_gets_nothing() -> None:
    required = GradientScheduler(LatencyRequirement((("a", 2.0),)), epsilon=0.0)
    states = [state(*[1.0] * 3, net="a"), state(*[0.1] * 3, net="b")]
    assert PLAIN.choose(states) == 0
    assert required.choose(states) == 1


def test_a_workload_of_two_networks_counts_in_both() -> None:
    (task,) = merge([Task(doubled(), 2.0, "a"), Task(doubled(), 3.0, "b")])
    assert (task.weight, task.uses) == (5.0, (("a", 2.0), ("b", 3.0)))
    (again,) = merge([task, Task(doubled(), 1.0, "a")])
    assert again.uses == (("a", 3.0), ("b", 3.0))


def test_choices_follow_from_the_states_alone() -> None:
    def make(count: int) -> list[TaskState]:
        return [state(*[1.0 / n for n in range(1, 2 + k % 3)]) for k in range(count)]

    eager = GradientScheduler(epsilon=0.5, seed=3)
    assert eager.choose(make(20)) == eager.choose(make(20))
    drawn = {GradientScheduler(epsilon=1.0, seed=n).choose(make(20)) for n in range(20)}
    assert len(drawn) > 5


# Simulated searches: the best time of a task after so many rounds.

Curve = Callable[[int], float]


def falling(start_s: float, floor_s: float, rate: float) -> Curve:
    return lambda rounds: floor_s + (start_s - floor_s) * math.exp(-rate * rounds)


def stairs(start_s: float, drop: float, every: int) -> Curve:
    return lambda rounds: start_s * drop ** (rounds // every)


def simulate(
    scheduler: Scheduler, curves: Sequence[Curve], weights: Sequence[float], rounds: int
) -> tuple[float, list[int]]:
    """The weighted time at the end, and how many rounds each task got."""
    states = [state(best_s=curve(0), weight=w) for curve, w in zip(curves, weights, strict=True)]
    counts = [0] * len(states)
    for _ in range(rounds):
        place = scheduler.choose(states)
        assert place is not None
        counts[place] += 1
        one = states[place]
        one.best_s = curves[place](counts[place])
        one.history = (*one.history, one.best_s)
    return sum(one.task.weight * one.best_s for one in states), counts


def test_rounds_go_to_those_that_gain() -> None:
    curves = [falling(1.0, 0.3, 0.05), lambda rounds: 1.0]
    _, (gaining, dead) = simulate(PLAIN, curves, [1, 1], 60)
    assert gaining + dead == 60
    assert gaining > 3 * dead
    stopping = GradientScheduler(epsilon=0.0, patience=6)
    _, (gaining, dead) = simulate(stopping, curves, [1, 1], 40)
    assert dead <= 7
    assert gaining >= 33


def network(random_source: random.Random) -> tuple[list[Curve], list[float]]:
    """Tasks that fall to a floor, fall by steps, or do not fall at all."""
    curves, weights = [], []
    for _ in range(random_source.randint(3, 20)):
        start_s = 10 ** random_source.uniform(-2, 0.5)
        kind = random_source.choice([falling, falling, stairs, falling])
        if kind is falling:
            floor_s = start_s * random_source.choice([1.0, random_source.uniform(0.2, 0.95)])
            curves.append(falling(start_s, floor_s, random_source.uniform(0.1, 1)))
        else:
            drop = random_source.uniform(0.7, 0.95)
            curves.append(stairs(start_s, drop, random_source.randint(2, 6)))
        weights.append(float(random_source.choice([1, 1, 1, 2, 3, 6])))
    return curves, weights


class CostliestFirst:
    """Greedy in the plain sense: always the task that takes most of the time."""

    def choose(self, states: Sequence[TaskState]) -> int | None:
        return max(range(len(states)), key=lambda n: states[n].cost_s)


class Hopeful:
    """The largest weight x best time x potential: recent gains, and a hope that falls.

    Tasks without a time take turns, at most every second round of all.
    """

    def choose(self, states: Sequence[TaskState]) -> int | None:
        open_tasks = [n for n, state in enumerate(states) if not state.is_exhausted]
        if not open_tasks:
            return None
        known = [n for n in open_tasks if math.isfinite(states[n].cost_s)]
        unknown = [n for n in open_tasks if n not in known]
        rounds = sum(len(state.history) for state in states)
        if unknown and (not known or rounds % 2 == 0):
            return min(unknown, key=lambda n: (len(states[n].history), n))
        return max(known, key=lambda n: (states[n].cost_s * _potential(states[n]), -n))


def _potential(state: TaskState) -> float:
    """The share of its time that a task may lose in the next round."""
    history = state.history
    hope = 0.5 / (1 + len(history))
    recent = history[-1 - 3 :]
    if len(recent) < 2 or not math.isfinite(recent[0]):
        return hope
    gain = (recent[0] - recent[-1]) / recent[0] / (len(recent) - 1)
    return max(gain, 0.0) + hope


@pytest.mark.parametrize("rounds_per_task", [1.5, 3, 8])
def test_it_beats_taking_turns_and_greed(rounds_per_task: float) -> None:
    def mean(scheduler: Scheduler) -> float:
        logs = []
        for seed in range(12):
            curves, weights = network(random.Random(seed))
            rounds = int(rounds_per_task * len(curves))
            logs.append(math.log(simulate(scheduler, curves, weights, rounds)[0]))
        return math.exp(statistics.mean(logs))

    ours = mean(GradientScheduler())
    assert ours < mean(RoundRobinScheduler())
    assert ours < mean(CostliestFirst())
    assert ours < 1.03 * mean(Hopeful())
