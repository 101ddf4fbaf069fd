"""How much time a candidate gets: none after it is clear that it is not the best."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from tensorwright.records import Status
from tensorwright.tuning.measuring import Measurement, MeasureOptions
from tensorwright.tuning.measuring.timing import _race

OPTIONS = MeasureOptions(repeats=5)


@dataclass
class FakeRun:
    """A kernel that takes these times, then the last of them for ever."""

    cold_s: float
    times_s: tuple[float, ...]
    samples: list[float] = field(default_factory=list)

    def calls_for(self, min_sample_s: float) -> int:
        return 1

    def sample(self, count: int) -> float:
        self.samples.append(self.times_s[min(len(self.samples), len(self.times_s) - 1)])
        return self.samples[-1]


def race(run: Any, best_s: float = math.inf) -> Measurement:
    return _race(run, best_s, OPTIONS)


@pytest.mark.parametrize(
    ("time_s", "status", "samples"),
    [
        (0.9e-3, Status.OK, 5),
        (1.0e-3, Status.OK, 5),
        (1.05e-3, Status.OK, 3),
        (1.2e-3, Status.OK, 2),
        (1.6e-3, Status.CENSORED, 2),
    ],
)
def test_the_slower_the_fewer_samples(time_s: float, status: Status, samples: int) -> None:
    run = FakeRun(2e-3, (time_s,))
    assert race(run, 1e-3) == Measurement(status, (time_s,) * samples)
    assert len(run.samples) == samples


def test_one_good_sample_of_the_first_is_enough_to_go_on() -> None:
    run = FakeRun(2e-3, (5e-3, 1e-3))
    assert race(run, 1e-3) == Measurement(Status.OK, (*[1e-3] * 4, 5e-3))


def test_a_program_with_one_sample_that_is_not_clearly_slower_is_no_lower_bound() -> None:
    """Other load only adds time: the least of the samples says how fast it is."""
    run = FakeRun(2e-3, (9e-3, 1.2e-3))
    assert race(run, 1e-3) == Measurement(Status.OK, (1.2e-3, 9e-3))


def test_the_first_of_a_workload_gets_all_samples() -> None:
    assert len(race(FakeRun(2e-3, (1e-3,))).times_s) == 5


@pytest.mark.parametrize(
    ("cold_s", "best_s", "status", "times_s", "samples"),
    [
        (0.3, math.inf, Status.OK, (0.25,), 1),
        (0.2, math.inf, Status.OK, (0.2,), 1),
        (0.3, 0.2, Status.OK, (0.25,), 1),
        (0.3, 0.1, Status.CENSORED, (0.25,), 1),
        (0.7, math.inf, Status.OK, (0.7,), 0),
        (0.7, 0.1, Status.CENSORED, (0.7,), 0),
    ],
)
def test_a_long_program_is_called_once_or_twice(
    cold_s: float, best_s: float, status: Status, times_s: tuple[float, ...], samples: int
) -> None:
    run = FakeRun(cold_s, (0.25,))
    assert race(run, best_s) == Measurement(status, times_s)
    assert len(run.samples) == samples
