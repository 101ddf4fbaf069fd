"""A chosen schedule against random ones: made-up times, then a real workload."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from tests.targets import native_target
from tests.unit.tuning.helpers import matmul, time_of

from tensorwright.artifacts import BuildRequest, Kernel
from tensorwright.codegen import Signature
from tensorwright.processes import never
from tensorwright.records import Status
from tensorwright.schedule import Workload, format_trace, state_of
from tensorwright.tuning import measuring
from tensorwright.tuning.space import default_trace
from tensorwright_lab.judging import Bench, compare_with_random, distribution_of

WORKLOAD = matmul()
CHOSEN = format_trace(default_trace(state_of(WORKLOAD), native_target()))


class _Builder:
    """The object code is the trace; the first `failing` different ones after two do not build."""

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing
        self.traces: list[str] = []

    def build(
        self, requests: Sequence[BuildRequest], should_stop: Callable[[], bool] = never
    ) -> list[measuring.BuildResult]:
        return [self._one(request.trace) for request in requests]

    def _one(self, trace: str) -> measuring.BuildResult:
        self.traces.append(trace)
        if 2 < len(self.traces) <= 2 + self.failing:
            return measuring.BuildFailed(Status.BUILD_ERROR, "it does not build")
        return Kernel(trace.encode(), Signature("kernel", ()), 0.0, native_target())

    def close(self) -> None: ...


class _Runner(measuring.Runner):
    """Times from a function of the trace and of whether it takes turns; some answers are wrong."""

    def __init__(
        self,
        time_s: Callable[[str, bool], float],
        wrong: Callable[[str], bool] = lambda trace: False,
    ) -> None:
        self.time_s = time_s
        self.wrong = wrong
        self.turns = 0
        self.taken: Counter[str] = Counter()

    def measure(
        self,
        workload: Workload,
        kernels: Sequence[Kernel],
        threads: int,
        best_s: float,
        should_stop: Callable[[], bool] = never,
    ) -> list[measuring.Measurement] | None:
        traces = [kernel.object_code.decode() for kernel in kernels]
        self.turns += len(traces) > 1
        self.taken.update(traces)
        return [self._one(trace, best_s, len(traces) > 1) for trace in traces]

    def _one(self, trace: str, best_s: float, takes_turns: bool) -> measuring.Measurement:
        if self.wrong(trace):
            return measuring.Measurement(Status.WRONG_ANSWER, error="off by 1")
        time_s = self.time_s(trace, takes_turns)
        return measuring.Measurement(
            Status.CENSORED if time_s > 1.5 * best_s else Status.OK, (time_s,)
        )

    def close(self) -> None: ...


def _random_time(trace: str) -> float:
    return time_of("matmul", trace)


def test_the_chosen_schedule_is_compared_with_the_fastest_random_one() -> None:
    builder = _Builder()
    runner = _Runner(lambda trace, _: 0.004 if trace == CHOSEN else _random_time(trace))
    found = compare_with_random(WORKLOAD, CHOSEN, Bench(builder, runner, native_target(), 2), 20, 7)
    others = set(builder.traces) - {CHOSEN}
    assert found.measured == found.tried == len(others) == 20
    assert found.best_s == min(map(_random_time, others))
    assert _random_time(found.best) == found.best_s
    assert found.chosen_s == found.rule_s == 0.004
    assert not found.wrong
    assert not found.failure
    assert runner.turns == 4  # the fastest once, then those that are compared three times


def test_equal_seeds_draw_equal_schedules() -> None:
    drawn = []
    for seed in (1, 1, 2):
        builder = _Builder()
        bench = Bench(builder, _Runner(lambda trace, _: 0.001), native_target(), 2)
        compare_with_random(WORKLOAD, CHOSEN, bench, 10, seed)
        drawn.append(builder.traces)
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_slow_moment_in_the_race_does_not_decide() -> None:
    runner = _Runner(lambda trace, turns: 0.001 if turns else 0.01 if trace == CHOSEN else 0.002)
    bench = Bench(_Builder(), runner, native_target(), 2)
    found = compare_with_random(WORKLOAD, CHOSEN, bench, 10, 0)
    assert found.chosen_s == found.best_s == 0.001


@pytest.mark.parametrize("chosen_s", [0.0005, 0.0011, 0.01])
def test_whoever_looks_bad_is_measured_as_often_as_the_others(chosen_s: float) -> None:
    runner = _Runner(lambda trace, _: chosen_s if trace == CHOSEN else _random_time(trace))
    bench = Bench(_Builder(), runner, native_target(), 2)
    found = compare_with_random(WORKLOAD, CHOSEN, bench, 10, 0)
    assert runner.turns == 4
    assert found.chosen_s == chosen_s
    assert runner.taken[CHOSEN] == runner.taken[found.best] == 5


def test_the_times_are_those_of_the_last_race_alone() -> None:
    """A random schedule that was lucky once is not taken at its luckiest."""
    seen: Counter[str] = Counter()

    def time_s(trace: str, takes_turns: bool) -> float:
        seen[trace] += takes_turns
        return 0.003 if seen[trace] > 1 else 0.002 if trace == CHOSEN else 0.001

    bench = Bench(_Builder(), _Runner(time_s), native_target(), 2)
    found = compare_with_random(WORKLOAD, CHOSEN, bench, 10, 0)
    assert found.chosen_s == found.best_s == 0.003


def test_what_fails_in_the_last_race_has_no_time() -> None:
    asked: Counter[str] = Counter()

    def wrong(trace: str) -> bool:
        asked[trace] += 1
        return trace == CHOSEN and asked[trace] > 3

    bench = Bench(_Builder(), _Runner(lambda trace, _: 0.001, wrong), native_target(), 2)
    found = compare_with_random(WORKLOAD, CHOSEN, bench, 10, 0)
    assert (found.chosen_s, found.failure) == (None, "wrong_answer: off by 1")
    assert found.wrong == ((CHOSEN, "off by 1"),)


def test_schedules_that_do_not_build_are_replaced() -> None:
    builder = _Builder(failing=5)
    bench = Bench(builder, _Runner(lambda trace, _: _random_time(trace)), native_target(), 2)
    found = compare_with_random(WORKLOAD, CHOSEN, bench, 12, 0)
    assert (found.measured, found.tried) == (12, 17)


def test_wrong_answers_are_kept_and_have_no_times() -> None:
    runner = _Runner(lambda trace, _: 0.001, lambda trace: trace == CHOSEN)
    bench = Bench(_Builder(), runner, native_target(), 2)
    found = compare_with_random(WORKLOAD, CHOSEN, bench, 3, 0)
    assert found.wrong == ((CHOSEN, "off by 1"),)
    assert found.chosen_s is None
    assert found.failure == "wrong_answer: off by 1"


@pytest.mark.target
def test_a_real_workload() -> None:
    options = measuring.MeasureOptions(repeats=2, min_sample_s=0.0005)
    with measuring.PoolBuilder(1) as builder, measuring.ChildRunner(options) as runner:
        bench = Bench(builder, runner, native_target(), 1)
        found = compare_with_random(WORKLOAD, CHOSEN, bench, 4, 0)
    assert found.measured == 4
    assert not found.wrong
    assert (found.chosen_s or 0.0) > 0.0
    assert (found.best_s or 0.0) > 0.0


def test_the_distribution_of_ratios() -> None:
    found = distribution_of([1.0] * 98 + [4.0, 2.0])
    assert (found.count, found.above) == (100, 1)
    assert math.isclose(found.mean, 8.0 ** (1 / 100))
    assert found.half == found.p90 == 1.0
    assert math.isclose(found.p99, 2.02)
    assert found.most == 4.0
    nothing = distribution_of([])
    assert nothing.count == nothing.above == 0
    assert nothing.to_data()["mean"] is None
