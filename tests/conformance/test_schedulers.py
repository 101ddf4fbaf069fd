"""One suite for every scheduler of tasks: a new one is one more entry in `SCHEDULERS`."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.unit.tuning.helpers import doubled, matmul

from tensorwright.tuning.task import Task
from tensorwright.tuning.task_scheduling import (
    GradientScheduler,
    LatencyRequirement,
    Scheduler,
    TaskState,
)
from tensorwright_lab.strategies import RoundRobinScheduler

SCHEDULERS: dict[str, Scheduler] = {
    "round robin": RoundRobinScheduler(),
    "gradient": GradientScheduler(),
    "gradient, no chance": GradientScheduler(epsilon=0.0),
    "gradient with a requirement": GradientScheduler(LatencyRequirement((("net", 1e-9),)), seed=5),
}


@pytest.fixture(params=list(SCHEDULERS))
def scheduler(request: pytest.FixtureRequest) -> Scheduler:
    chosen: Scheduler = SCHEDULERS[request.param]
    return chosen


def fresh() -> list[TaskState]:
    """As a session begins: the default schedules are measured, and all weigh the same."""
    tasks = (
        Task(doubled("one"), 1.0, "net"),
        Task(matmul(16), 5.0, "net"),
        Task(matmul(32), 2.0, "other"),
        Task(doubled("four"), 0.5, "net"),
    )
    return [
        TaskState(task, 1, default_s=1e-3 / task.weight, best_s=1e-3 / task.weight)
        for task in tasks
    ]


def advance(state: TaskState) -> None:
    """A round that gains a little."""
    state.trials += 16
    state.best_s *= 0.98
    state.history = (*state.history, state.best_s)


def test_there_is_nothing_to_choose_from(scheduler: Scheduler) -> None:
    assert scheduler.choose([]) is None
    states = fresh()
    for state in states:
        state.is_exhausted = True
    assert scheduler.choose(states) is None


def test_every_task_gets_a_first_round(scheduler: Scheduler) -> None:
    states = fresh()
    chosen = set()
    for _ in range(len(states)):
        number = scheduler.choose(states)
        assert number is not None
        chosen.add(number)
        advance(states[number])
    assert chosen == set(range(len(states)))


def test_an_exhausted_task_gets_no_round(scheduler: Scheduler) -> None:
    states = fresh()
    states[1].is_exhausted = True
    for _ in range(20):
        number = scheduler.choose(states)
        assert number in (0, 2, 3)
        advance(states[number])


def test_a_task_that_cannot_be_measured_does_not_stop_the_others(scheduler: Scheduler) -> None:
    states = fresh()
    states[0] = TaskState(states[0].task, 32, history=(math.inf, math.inf), error="crashed")
    chosen = set()
    for _ in range(20):
        number = scheduler.choose(states)
        assert number is not None
        chosen.add(number)
        if number:
            advance(states[number])
        else:
            states[0].history = (*states[0].history, math.inf)
    assert len(chosen) > 1


def test_the_choice_follows_from_the_states_alone(scheduler: Scheduler) -> None:
    states = fresh()
    for _ in range(12):
        before = [replace(state) for state in states]
        number = scheduler.choose(states)
        assert states == before
        assert number == scheduler.choose(states)
        assert number is not None
        advance(states[number])
