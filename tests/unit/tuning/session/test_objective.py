"""What makes a session's networks fast: objectives and their slopes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorwright.tuning.task_scheduling import (
    LatencyRequirement,
    MeanSpeedUp,
    NetworkTimes,
    Objective,
    TotalLatency,
    gradient,
    networks_of,
)

USES = ((("a", 2.0),), (("a", 1.0), ("b", 3.0)), (("b", 1.0),))
TIMES_S = (0.001, 0.002, 0.004)  # a: 0.004, b: 0.010


def value(objective: Objective) -> float:
    return objective(networks_of(USES, TIMES_S))


def test_networks_are_weighted_sums() -> None:
    networks = networks_of(USES, TIMES_S)
    assert [each.name for each in networks] == ["a", "b"]
    assert [each.latency_s for each in networks] == pytest.approx([0.004, 0.010])
    assert [each.weights for each in networks] == [(2.0, 1.0), (3.0, 1.0)]


def test_total_latency() -> None:
    assert value(TotalLatency()) == pytest.approx(0.014)
    assert gradient(TotalLatency(), USES, TIMES_S) == pytest.approx((2.0, 4.0, 1.0))
    weighted = TotalLatency((("b", 0.5),))
    assert value(weighted) == pytest.approx(0.009)
    assert gradient(weighted, USES, TIMES_S) == pytest.approx((2.0, 2.5, 0.5))


def test_a_network_that_is_fast_enough_gains_nothing() -> None:
    required = LatencyRequirement((("a", 0.005), ("b", 0.005)))
    assert value(required) == pytest.approx(0.015)
    assert gradient(required, USES, TIMES_S) == pytest.approx((0.0, 3.0, 1.0))
    just = LatencyRequirement((("a", 0.004), ("b", 0.010)))
    assert gradient(just, USES, TIMES_S) == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)


def test_the_mean_speed_up_weighs_networks_alike() -> None:
    """f3 = -sqrt(Ra/La * Rb/Lb), so df3/dLa = -f3 / (2 La)."""
    mean = MeanSpeedUp((("a", 0.008), ("b", 0.005)))
    assert value(mean) == pytest.approx(-math.sqrt(2.0 * 0.5))
    slope_a, slope_b = 1 / (2 * 0.004), 1 / (2 * 0.010)
    expected = (2 * slope_a, slope_a + 3 * slope_b, slope_b)
    assert gradient(mean, USES, TIMES_S) == pytest.approx(expected, rel=1e-3)


def test_a_function_of_ones_own() -> None:
    slopes = gradient(lambda networks: max(n.latency_s for n in networks) ** 2, USES, TIMES_S)
    assert slopes == pytest.approx((0.0, 2 * 0.010 * 3, 2 * 0.010), rel=1e-3)


def test_workloads_without_a_time_do_not_count() -> None:
    times_s = (0.001, math.inf, 0.004)
    assert networks_of(USES, times_s)[1] == NetworkTimes("b", (1.0,), (0.004,))
    assert gradient(TotalLatency(), USES, times_s) == pytest.approx((2.0, 0.0, 1.0))


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.floats(1e-7, 1e-1), st.sampled_from("abc"), st.integers(1, 60)),
        min_size=1,
        max_size=60,
    )
)
def test_the_slope_of_the_total_is_the_weight(parts: list[tuple[float, str, int]]) -> None:
    uses = [((network, float(weight)),) for _, network, weight in parts]
    found = gradient(TotalLatency(), uses, [time_s for time_s, _, _ in parts])
    assert found == pytest.approx([weight for _, _, weight in parts], rel=1e-3)
