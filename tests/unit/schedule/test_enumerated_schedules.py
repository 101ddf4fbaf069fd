"""A part of the enumeration of schedules that `benchmarks/correctness` goes through whole."""

from __future__ import annotations

from random import Random

import pytest
from tests.unit.schedule import groups
from tests.unit.schedule.enumerated import Steps, Tally, enumerate_after, enumerate_schedules, walk
from tests.unit.schedule.small_expressions import SMALL

from tensorwright.schedule import PRIMITIVES

_STEPS = ("longer", "output_that_is_read", "matmul_of_a_row", "window_larger_than_the_image")
_ONE_BEFORE = ("shorter", "of_no_axes")


@pytest.mark.parametrize("name", _STEPS)
def test_each_accepted_step_keeps_the_meaning(name: str) -> None:
    tally = Tally()
    enumerate_schedules(name, SMALL[name], tally, each=0, most=1)
    assert tally.faults == []
    assert tally.accepted.total() > tally.programs > 0


@pytest.mark.parametrize("name", _ONE_BEFORE)
def test_each_accepted_step_after_another_keeps_the_meaning(name: str) -> None:
    tally = Tally()
    enumerate_schedules(name, SMALL[name], tally, each=1, most=1)
    assert tally.faults == []


def test_each_accepted_step_in_a_group_keeps_the_meaning() -> None:
    tally = Tally()
    for name in ("set_scope", "shared_without_asking"):
        enumerate_after(name, *groups.TRACES[name], tally, most=1)
    assert tally.faults == []


def test_walks_of_such_steps_keep_the_meaning() -> None:
    tally, source = Tally(), Random(0)
    for name in source.sample(sorted(SMALL), 40):
        walk(name, SMALL[name], PRIMITIVES, source, tally)
    assert tally.faults == []


def test_all_primitives_are_enumerated() -> None:
    state = SMALL["conv"].state
    assert {type(step) for step in Steps(state).all()} == set(PRIMITIVES)
