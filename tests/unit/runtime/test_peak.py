"""The measured ceiling: plausible, quick, refused where the code cannot run."""

import math
import time
from dataclasses import astuple, replace

import pytest

from tensorwright.base import DType, MachineError, cpu_target, detect_target
from tensorwright.machine_code.compilation import assembly
from tensorwright.runtime.measuring import measure_bandwidth, measure_call_costs, measure_peak
from tensorwright.runtime.measuring.peak import _fma_loop

NATIVE = detect_target()


def test_the_peak_is_plausible_and_quick() -> None:
    start = time.perf_counter()
    peak = measure_peak(NATIVE)
    assert time.perf_counter() - start < 5.0  # measured: 0.03 s on a free core
    lanes = NATIVE.lanes(DType.F32)
    assert 0.1e9 * lanes < peak < 100e9 * lanes


def test_several_threads_are_measured_together() -> None:
    # How much they reach together depends on who else uses the cores, so only that they ran.
    assert measure_peak(NATIVE, threads=2) > 1e8


def test_the_loop_stays_in_registers() -> None:
    for name, register, chains in (("avx2", "%ymm", 12), ("avx512", "%zmm", 24)):
        target = cpu_target(f"x86-64-{name}")
        text = assembly(_fma_loop(target.lanes(DType.F32), chains, DType.F32).module.text(), target)
        loop = text.partition("_1:")[2].partition("jl")[0] or text
        assert loop.count("vfm") == chains
        assert register in loop
        assert "(%rsp" not in loop


def test_f64_and_bandwidth_are_positive() -> None:
    assert measure_peak(NATIVE, dtype=DType.F64) > 1e8
    assert measure_bandwidth(NATIVE, size_bytes=1 << 20) > 1e8


def test_a_target_that_cannot_run_here_is_refused() -> None:
    other = cpu_target("aarch64-neon" if NATIVE.arch == "x86-64" else "x86-64-avx2")
    with pytest.raises(MachineError, match="this machine cannot run its code"):
        measure_peak(other)
    beyond = replace(NATIVE, name="future", features=(*NATIVE.features, "avx4096"))
    with pytest.raises(MachineError, match="it has no avx4096"):
        measure_bandwidth(beyond)


def test_what_a_call_a_clock_and_threads_cost() -> None:
    one, two = measure_call_costs(1), measure_call_costs(2)
    assert one.threads_s == 0.0
    for costs in (one, two):
        assert all(each >= 0.0 and math.isfinite(each) for each in astuple(costs))
