"""Schedules that have a trace for each range of named sizes."""

from __future__ import annotations

import pytest

from tensorwright import schedule
from tensorwright.base import ScheduleError, UsageError

ONE = schedule.SizedTrace((schedule.SizeRange("n", 1, 1),), (schedule.Vectorize("y", "j"),))
FEW = schedule.SizedTrace((schedule.SizeRange("m", 1, None), schedule.SizeRange("n", 2, 8)), ())
MANY = schedule.SizedTrace((), (schedule.Split("y", "i", (8,)), schedule.Parallel("y", "i_o")))
SCHEDULE = schedule.OpenSchedule((ONE, FEW, MANY))
TEXT = """for n = 1:
  vectorize(y, j)
for 1 <= m, 2 <= n <= 8:
for all sizes:
  split(y, i, [8])
  parallel(y, i_o)"""


def test_a_schedule_prints_and_parses_back() -> None:
    assert schedule.format_schedule(SCHEDULE) == TEXT
    assert schedule.parse_schedule(TEXT) == SCHEDULE


def test_a_single_trace_is_a_schedule_too() -> None:
    assert (
        schedule.parse_schedule(schedule.format_schedule(MANY.trace))
        == MANY.trace
        == schedule.parse_trace("split(y, i, [8])\nparallel(y, i_o)")
    )
    assert schedule.steps_of(MANY.trace) == MANY.trace
    assert schedule.steps_of(SCHEDULE) == (*ONE.trace, *MANY.trace)


@pytest.mark.parametrize(("n", "chosen"), [(1, ONE), (2, FEW), (8, FEW), (9, MANY)])
def test_the_first_trace_whose_ranges_hold_runs(n: int, chosen: schedule.SizedTrace) -> None:
    assert SCHEDULE.at({"n": n, "m": 3}) == chosen.trace


def test_the_last_trace_must_hold_for_all_sizes() -> None:
    with pytest.raises(ScheduleError, match="its last trace does not hold for all sizes"):
        schedule.OpenSchedule((MANY, ONE))
    with pytest.raises(ScheduleError):
        schedule.OpenSchedule(())


@pytest.mark.parametrize("text", ["for n:", "for 1 < n:", "for n = x:", "for 2 <= n = 3, :"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a range of a size"):
        schedule.parse_schedule(f"{text}\nfor all sizes:")
