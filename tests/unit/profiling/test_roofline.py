"""What a machine can do at most, with made-up numbers."""

from __future__ import annotations

import pytest

from tensorwright.base import MachineError, cpu_target, detect_target
from tensorwright.machine import Ceilings, Level
from tensorwright.profiling import Bottleneck, Bounds, Operand, bottleneck_of, bounds_of
from tensorwright.runtime.measuring import measure_ceilings

MACHINE = Ceilings(
    2,
    100e9,
    (Level("L2", 1e6, 200e9), Level("L3", 32e6, 50e9), Level("memory", float("inf"), 10e9)),
)
ONE = Ceilings(1, 50e9, MACHINE.levels)


def test_operands_come_from_the_nearest_level_that_holds_them() -> None:
    names = [MACHINE.level_at(distance).name for distance in (100, 10**6, 10**7)]
    assert names == ["L2", "L2", "L3"]
    assert MACHINE.level_at(10**9).name == "memory"


def test_the_least_time_is_that_of_arithmetic_or_of_all_operands() -> None:
    near, middle, far = Operand(200_000, 10**5), Operand(500_000, 10**7), Operand(10_000, 10**9)
    bounds = bounds_of(MACHINE, 400_000, (near, middle, far), 3e-6)
    assert bounds.arithmetic_s == pytest.approx(4e-6)
    assert bounds.cache_s == pytest.approx(1e-6 + 10e-6)
    assert bounds.memory_s == pytest.approx(1e-6)
    assert bounds.moving_s == pytest.approx(12e-6)
    assert bounds.roofline_s == pytest.approx(12e-6)
    assert bounds.calls_s == 3e-6
    assert bounds_of(MACHINE, 4_000_000, (near,)).roofline_s == pytest.approx(40e-6)


@pytest.mark.parametrize(
    ("time_s", "bounds", "expected"),
    [
        (10e-6, Bounds(arithmetic_s=9e-6, memory_s=5e-6), Bottleneck.ARITHMETIC),
        (10e-6, Bounds(arithmetic_s=1e-6, memory_s=5e-6, cache_s=1e-6), Bottleneck.MEMORY),
        (10e-6, Bounds(arithmetic_s=1e-6, memory_s=1e-6, cache_s=5e-6), Bottleneck.CACHE),
        (10e-6, Bounds(arithmetic_s=1e-6, cache_s=1e-6, calls_s=5e-6), Bottleneck.CALLS),
        (10e-6, Bounds(arithmetic_s=2e-6, memory_s=2e-6), Bottleneck.CODE),
        (0.0, Bounds(), Bottleneck.ARITHMETIC),
    ],
)
def test_what_explains_half_of_the_time_is_the_bottleneck(
    time_s: float, bounds: Bounds, expected: Bottleneck
) -> None:
    assert bottleneck_of(time_s, bounds) is expected


def test_a_kernel_that_leaves_threads_idle_is_limited_by_that() -> None:
    time_s, flops = 10e-6, 400_000
    together, alone = bounds_of(MACHINE, flops, ()), bounds_of(ONE, flops, ())
    assert bottleneck_of(time_s, together) is Bottleneck.CODE
    assert bottleneck_of(time_s, together, alone) is Bottleneck.ONE_THREAD
    assert bottleneck_of(10 * time_s, together, alone) is Bottleneck.CODE


def test_bounds_add_up() -> None:
    one = Bounds(1.0, 2.0, 3.0, 4.0)
    assert one + one == Bounds(2.0, 4.0, 6.0, 8.0)


def test_the_ceilings_of_this_machine_are_in_order() -> None:
    ceilings = measure_ceilings(detect_target(), 1)
    assert ceilings.flops_per_s > 1e8
    assert ceilings.levels[-1].name == "memory"
    sizes = [level.size_bytes for level in ceilings.levels]
    rates = [level.bytes_per_s for level in ceilings.levels]
    assert sizes == sorted(sizes)
    assert rates == sorted(rates, reverse=True)


@pytest.mark.usefixtures("unassumed")
def test_a_target_that_cannot_run_here_has_no_ceilings() -> None:
    other = cpu_target("aarch64-neon" if detect_target().arch == "x86-64" else "x86-64-avx2")
    with pytest.raises(MachineError, match="this machine cannot run its code"):
        measure_ceilings(other, 1)
