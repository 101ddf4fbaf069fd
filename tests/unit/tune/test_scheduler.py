"""Where the next round goes."""

from __future__ import annotations

import math

import pytest
from tests.unit.tune.helpers import doubled

from tensorwright.tune import GreedyScheduler, Task, TaskState
from tensorwright.tune.scheduler import potential


def state(*history: float, weight: float = 1.0, is_exhausted: bool = False) -> TaskState:
    best_s = history[-1] if history else math.inf
    task = Task(doubled(), weight)
    return TaskState(task, best_s=best_s, history=history, is_exhausted=is_exhausted)


def test_the_costliest_of_equal_promise() -> None:
    assert GreedyScheduler().choose([state(1.0), state(3.0), state(2.0)]) == 1
    assert GreedyScheduler().choose([state(1.0, weight=4.0), state(3.0), state(2.0)]) == 0


def test_one_that_still_gains_goes_before_one_that_does_not() -> None:
    stuck, gaining = state(3.0, 3.0, 3.0, 3.0), state(4.0, 3.5, 3.0, 2.5)
    assert GreedyScheduler().choose([stuck, gaining]) == 1


def test_hope_falls_with_every_round() -> None:
    tried = state(*[2.0] * 9)
    assert GreedyScheduler().choose([tried, state(1.0)]) == 1
    assert potential(state()) > potential(state(1.0)) > potential(tried) > 0


def test_tasks_without_a_time_take_turns_with_the_others() -> None:
    known = state(1.0)
    assert GreedyScheduler().choose([known, state(), state()]) == 0
    known.history = (1.0, 1.0)
    assert GreedyScheduler().choose([known, state(), state()]) == 1
    failing = state(math.inf, math.inf)
    assert GreedyScheduler().choose([known, failing, state()]) == 2


@pytest.mark.parametrize("history", [(), (1.0,)])
def test_exhausted_tasks_get_nothing(history: tuple[float, ...]) -> None:
    assert GreedyScheduler().choose([state(*history, is_exhausted=True)]) is None
    assert GreedyScheduler().choose([state(9.0, is_exhausted=True), state(1.0)]) == 1
    assert GreedyScheduler().choose([]) is None
