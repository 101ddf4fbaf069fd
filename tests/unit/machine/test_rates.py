"""The rates of a core: measured once for each target, kept, and told apart by powers of two."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tensorwright.base import CpuTarget, cpu_target, override
from tensorwright.machine import (
    Ceilings,
    Level,
    Machine,
    keep_ceilings,
    kept_ceilings,
    machine_of,
    nominal_rates,
)
from tensorwright.runtime.measuring import this_machine
from tensorwright.runtime.measuring.local_machine import steps_of

ODD = replace(
    cpu_target("aarch64-neon"), vector_bytes=128, vector_registers=8, l2_bytes=0, l3_bytes=0
)


def test_of_rates_only_powers_of_two_count() -> None:
    assert [steps_of(rate, 100.0) for rate in (51, 100, 140, 150, 1e9, 0.0)] == [-1, 0, 0, 1, 4, 0]


@pytest.mark.parametrize("content", ['{"flops_steps": 99}', "[]", "no JSON", '{"flops_steps": 1'])
def test_rates_are_measured_once_and_anew_where_the_file_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    measured: list[CpuTarget] = []

    def peak(target: CpuTarget) -> float:
        measured.append(target)
        return nominal_rates(target).flops_per_s / 2.1

    here = cpu_target("native")
    monkeypatch.setattr("tensorwright.runtime.measuring.local_machine.measure_peak", peak)
    for home in ("one", "two"):
        with override(home=tmp_path / home):
            rates = this_machine(here, 2).rates
        assert rates.flops_per_s == nominal_rates(here).flops_per_s / 2
        (file,) = (tmp_path / home / "machine").iterdir()
        assert json.loads(file.read_text())["flops_steps"] == -1
        (tmp_path / "two" / "machine").mkdir(parents=True, exist_ok=True)
        (tmp_path / "two" / "machine" / file.name).write_text(content)
    assert len(measured) == 2


def test_rates_and_ceilings_are_kept_beside_each_other(tmp_path: Path) -> None:
    here = cpu_target("native")
    ceilings = Ceilings(2, 2e11, (Level("memory", float("inf"), 1e10),), "2026-01-31")
    with override(home=tmp_path):
        keep_ceilings(here, ceilings)
        this_machine(here, 2)
        assert kept_ceilings(here, 2) == ceilings
        (file,) = (tmp_path / "machine").iterdir()
        keep_ceilings(here, ceilings)
    assert set(json.loads(file.read_text())) == {"flops_steps", "bandwidth_steps", "2"}


def test_what_this_machine_cannot_run_has_nominal_rates(tmp_path: Path) -> None:
    with override(home=tmp_path):
        assert this_machine(ODD, 1) == machine_of(ODD, 1)
    assert not list(tmp_path.iterdir())


def test_some_threads_fill_the_memory() -> None:
    target = cpu_target("x86-64-avx2")
    one, two, many = (machine_of(target, threads) for threads in (1, 2, 16))
    assert one.memory_bytes_per_s == two.memory_bytes_per_s == one.rates.bandwidth_bytes_per_s
    assert many.memory_bytes_per_s == 4 * one.memory_bytes_per_s
    assert isinstance(many, Machine)
