"""Schedules that have a trace for each range of named sizes."""

from __future__ import annotations

import pytest

from tensorwright.base import ScheduleError, UsageError
from tensorwright.schedule import (
    OpenSchedule,
    Parallel,
    SizedTrace,
    SizeRange,
    Split,
    Vectorize,
    format_schedule,
    parse_schedule,
    parse_trace,
    steps_of,
)

ONE = SizedTrace((SizeRange("n", 1, 1),), (Vectorize("y", "j"),))
FEW = SizedTrace((SizeRange("m", 1, None), SizeRange("n", 2, 8)), ())
MANY = SizedTrace((), (Split("y", "i", (8,)), Parallel("y", "i_o")))
SCHEDULE = OpenSchedule((ONE, FEW, MANY))
TEXT = """for n = 1:
  vectorize(y, j)
for 1 <= m, 2 <= n <= 8:
for all sizes:
  split(y, i, [8])
  parallel(y, i_o)"""


def test_a_schedule_prints_and_parses_back() -> None:
    assert format_schedule(SCHEDULE) == TEXT
    assert parse_schedule(TEXT) == SCHEDULE


def test_a_single_trace_is_a_schedule_too() -> None:
    assert (
        parse_schedule(format_schedule(MANY.trace))
        == MANY.trace
        == parse_trace("split(y, i, [8])\nparallel(y, i_o)")
    )
    assert steps_of(MANY.trace) == MANY.trace
    assert steps_of(SCHEDULE) == (*ONE.trace, *MANY.trace)


@pytest.mark.parametrize(("n", "chosen"), [(1, ONE), (2, FEW), (8, FEW), (9, MANY)])
def test_the_first_trace_whose_ranges_hold_runs(n: int, chosen: SizedTrace) -> None:
    assert SCHEDULE.at({"n": n, "m": 3}) == chosen.trace


def test_the_last_trace_must_hold_for_all_sizes() -> None:
    with pytest.raises(ScheduleError, match="its last trace does not hold for all sizes"):
        OpenSchedule((MANY, ONE))
    with pytest.raises(ScheduleError):
        OpenSchedule(())


@pytest.mark.parametrize("text", ["for n:", "for 1 < n:", "for n = x:", "for 2 <= n = 3, :"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a range of a size"):
        parse_schedule(f"{text}\nfor all sizes:")
