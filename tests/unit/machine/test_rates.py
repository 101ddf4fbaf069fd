"""The rates of a core: measured once for each target, kept, and told apart by powers of two."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tensorwright import base
from tensorwright.codegen.llvm.parallel import intrinsics_of
from tensorwright.machine import (
    Ceilings,
    Level,
    Machine,
    keep_ceilings,
    kept_ceilings,
    kept_product_steps,
    kept_steps,
    machine_of,
    nominal_rates,
    steps_from,
)
from tensorwright.machine_code.compilation import feature_flags
from tensorwright.runtime.measuring import measure_ceilings, peak, this_machine

ODD = replace(
    base.cpu_target("aarch64-neon"), vector_bytes=128, vector_registers=8, l2_bytes=0, l3_bytes=0
)


def test_of_rates_only_powers_of_two_count() -> None:
    nominal = nominal_rates(ODD)
    shares = (0.51, 1.0, 1.4, 1.5, 1e7, 0.0)
    steps = [
        steps_from(ODD, share * nominal.flops_per_s, nominal.bandwidth_bytes_per_s)
        for share in shares
    ]
    assert steps == [(each, 0) for each in (-1, 0, 0, 1, 4, 0)]


@pytest.mark.parametrize("machine", base.ASSUMED, ids=lambda each: each.name)
def test_an_assumed_machine_is_the_same_everywhere(
    machine: base.AssumedMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak, "measure_peak", None)  # nothing may be measured
    monkeypatch.setattr(peak, "measure_bandwidth", None)
    with base.override(assume=machine.name, home=tmp_path):
        target = base.cpu_target("native")
        assert (target.l2_bytes, target.cores) == (machine.l2_kib * 1024, machine.cores)
        assert set(target.features) == set(base.cpu_target(machine.target).features)
        assert base.knobs.THREADS.get() == machine.cores
        rates = this_machine(target, 1).rates
        assert rates == nominal_rates(target).stepped(*kept_steps(target) or ())
        one, all_cores = (measure_ceilings(target, count) for count in (1, 64))
        assert all_cores.flops_per_s == machine.cores * one.flops_per_s
        assert [level.name for level in one.levels] == ["L2", "L3", "memory"]
        assert [level.bytes_per_s for level in one.levels] == [
            *(machine.l2_bytes_per_s, machine.l3_bytes_per_s, machine.memory_bytes_per_s)
        ]
        keep_ceilings(target, replace(one, flops_per_s=1.0))
        assert kept_ceilings(target, 1) == one
    assert not list(tmp_path.iterdir())


def test_half_units_are_half_as_fast_with_long_vectors_only() -> None:
    long, short = base.cpu_target("x86-64-avx512"), base.cpu_target("x86-64-avx2")
    steps = []
    for name in ("avx512-wide", "avx512-halves"):
        with base.override(assume=name):
            steps += [(kept_steps(target) or ())[0] for target in (long, short)]
    assert steps == [0, 0, -1, 0]


def test_code_that_this_machine_lacks_instructions_for_is_refused_by_name() -> None:
    other = "neon" if base.detect_target().arch == "x86-64" else "avx2"
    with base.override(assume=other):
        target = base.cpu_target("native")
        assert target.arch != base.detect_target().arch
        with pytest.raises(base.MachineError) as caught:
            base.check_runs_here(target, "run")
    assert caught.value.remedy == f"unset TENSORWRIGHT_ASSUME: this machine is no {other}"


def test_code_does_without_instructions_that_this_machine_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base.gpu_targets, "_this_machine", lambda: base.cpu_target("x86-64-sse2"))
    halves = next(each for each in base.ASSUMED if each.name == "avx512-halves")
    assumed = base.gpu_targets._assumed_target.__wrapped__(halves)  # nothing is kept
    assert (assumed.vector_bytes, assumed.has_masks) == (64, True)
    assert assumed.short_products()
    assert assumed.instructions == base.cpu_target("x86-64-sse2").features
    assert not assumed.missing_on(base.cpu_target("x86-64-sse2"))
    assert assumed.key != replace(assumed, emulated=()).key
    assert "avx" not in feature_flags(assumed)
    assert not intrinsics_of(assumed)


@pytest.mark.usefixtures("unassumed")
@pytest.mark.parametrize("content", ['{"flops_steps": 99}', "[]", "no JSON", '{"flops_steps": 1'])
def test_rates_are_measured_once_and_anew_where_the_file_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    measured: list[base.CpuTarget] = []

    def peak(target: base.CpuTarget) -> float:
        measured.append(target)
        return nominal_rates(target).flops_per_s / 2.1

    here = base.cpu_target("native")
    monkeypatch.setattr("tensorwright.runtime.measuring.peak.measure_peak", peak)
    for home in ("one", "two"):
        with base.override(home=tmp_path / home):
            rates = this_machine(here, 2).rates
        assert rates.flops_per_s == nominal_rates(here).flops_per_s / 2
        (file,) = (tmp_path / home / "machine").iterdir()
        assert json.loads(file.read_text())["flops_steps"] == -1
        (tmp_path / "two" / "machine").mkdir(parents=True, exist_ok=True)
        (tmp_path / "two" / "machine" / file.name).write_text(content)
    assert len(measured) == 2


@pytest.mark.usefixtures("unassumed")
def test_rates_and_ceilings_are_kept_beside_each_other(tmp_path: Path) -> None:
    here = base.cpu_target("native")
    ceilings = Ceilings(2, 2e11, (Level("memory", float("inf"), 1e10),), "2026-01-31")
    with base.override(home=tmp_path):
        keep_ceilings(here, ceilings)
        this_machine(here, 2)
        assert kept_ceilings(here, 2) == ceilings
        (file,) = (tmp_path / "machine").iterdir()
        keep_ceilings(here, ceilings)
    names = {"flops_steps", "bandwidth_steps", "2"}
    assert names <= set(json.loads(file.read_text())) <= {*names, "product_steps"}


@pytest.mark.usefixtures("unassumed")
def test_what_this_machine_cannot_run_has_nominal_rates(tmp_path: Path) -> None:
    with base.override(home=tmp_path):
        assert this_machine(ODD, 1) == machine_of(ODD, 1)
    assert not list(tmp_path.iterdir())


def test_some_threads_fill_the_memory() -> None:
    target = base.cpu_target("x86-64-avx2")
    one, two, many = (machine_of(target, threads) for threads in (1, 2, 16))
    assert one.memory_bytes_per_s == two.memory_bytes_per_s == one.rates.bandwidth_bytes_per_s
    assert many.memory_bytes_per_s == 4 * one.memory_bytes_per_s
    assert isinstance(many, Machine)


@pytest.mark.usefixtures("unassumed")
def test_speeds_of_instructions_are_measured_once_and_told_apart_by_powers_of_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = base.cpu_target("x86-64-avx512+avx512vnni+avx512bf16")
    here, rates = replace(named, name="native"), nominal_rates(named)
    measured = {"dot4_u8i8_i32": 4.3, "dot2_i16i16_i32": 2.1, "dot2_bf16": 0.48}
    asked: list[str] = []

    def speed(target: base.CpuTarget, product: base.ShortProduct) -> float:
        asked.append(product.intrinsic)
        return measured[product.intrinsic]

    monkeypatch.setattr(base, "missing_here", lambda target: "")
    monkeypatch.setattr(peak, "measure_peak", lambda target: rates.flops_per_s)
    monkeypatch.setattr(peak, "measure_bandwidth", lambda target: rates.bandwidth_bytes_per_s)
    monkeypatch.setattr(peak, "measure_speed", speed)
    with base.override(home=tmp_path):
        slow = this_machine(here, 1).target
        assert slow.speeds == (("dot2_bf16", 0.5),)
        assert this_machine(replace(here, cores=here.cores), 2).target == slow
        peak._speeds_of.cache_clear()
        assert this_machine(here, 1).target == slow
        assert this_machine(named, 1).target == named  # it stands for other machines
        kept = kept_product_steps(here)
        assert kept == {"dot4_u8i8_i32": 0, "dot2_i16i16_i32": 0, "dot2_bf16": -2}
    assert sorted(asked) == ["dot2_bf16", "dot2_i16i16_i32", "dot4_u8i8_i32"]
    assert (named.is_fast(base.DType.BF16), slow.is_fast(base.DType.BF16)) == (True, False)
    assert {p.intrinsic: p.speed for p in slow.short_products()}["dot2_bf16"] == 0.5
    with base.override(home=tmp_path, assume="avx512-wide"):
        assert this_machine(here, 1).target.speeds == ()


@pytest.mark.usefixtures("unassumed")
def test_an_instruction_takes_its_time() -> None:
    here = base.cpu_target("native")
    usable = [p for p in here.short_products() if p.x86 and {*p.features} <= {*here.instructions}]
    assert all(0.1 < peak.measure_speed(here, each) < 20 for each in usable[:1])
