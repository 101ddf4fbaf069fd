"""`tensorwright doctor`: what is here, what is missing and what it is for, and what is kept."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tensorwright.base import SHORT_PRODUCTS, detect_target
from tensorwright.machine import Ceilings, Level, Load, LoadWatch, keep_ceilings, kept_ceilings
from tensorwright.runtime import HOST
from tensorwright.runtime.measuring.call_costs import measure_rates

Invoke = Callable[..., Result]
doctor = importlib.import_module("tensorwright.cli.doctor")
device_findings = doctor

LISTED = (
    *("llvmlite", "target", "caches", "fingerprint", "threads", "record store"),
    *("LightGBM", "ONNX Runtime", "OpenVINO", "PyTorch", "tokenizers", "Z3", "Dask"),
    *("C compiler", "gcc", "clang", "Graphviz", "PoCL"),
)


def test_this_machine_is_found_in_order(invoke: Invoke) -> None:
    result = invoke("doctor", "--no-measure")
    assert result.exit_code == 0, result.output
    for text in LISTED:
        assert f"\n{text}" in result.stdout
    assert result.stdout.endswith("everything that is needed is here\n")


def test_an_assumed_machine_is_said(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORWRIGHT_ASSUME", "avx512-halves")
    told = invoke("doctor", "--no-measure").stdout
    assert "\nassumed         avx512-halves, for which all choices are made (knob assume)\n" in told
    assert "peak, 1 thread  112 GFLOP/s; L2 100, L3 60, memory 30 GB/s" in told


def test_a_setting_that_means_nothing_is_no_fine_machine(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_LOG", "loud")
    monkeypatch.setenv("TENSORWRIGHT_THREDS", "1")
    result = invoke("doctor", "--no-measure")
    assert result.exit_code == 9
    told = " ".join(result.stdout.split())
    assert "TENSORWRIGHT_LOG: 'loud' is not a log level needed; try: give one of quiet" in told
    assert "TENSORWRIGHT_THREDS sets nothing needed; try: did you mean TENSORWRIGHT_THREADS" in told
    assert "everything that is needed is here" not in told


def ceilings(threads: int, rate: float, when: str) -> Ceilings:
    return Ceilings(threads, rate, (Level("memory", math.inf, rate / 10),), when)


@pytest.mark.usefixtures("unassumed")
def test_what_it_measures_is_kept_with_its_date(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORWRIGHT_THREADS", "1")
    measured = [ceilings(1, 2e11, "2026-01-31T"), ceilings(1, 1e11, "2026-02-01T")]
    loads = iter([Load(), Load(), Load(0.9, 0.0, 2, "python 812")])
    for others in ("programs", "devices"):
        monkeypatch.setattr(doctor, others, list)
    monkeypatch.setattr(doctor, "measure_ceilings", lambda *_: measured[0])
    monkeypatch.setattr(LoadWatch, "load", lambda _: next(loads))
    assert "200 GFLOP/s; memory 20 GB/s\n" in invoke("doctor").stdout
    assert kept_ceilings(detect_target(), 1) == measured[0]
    monkeypatch.setattr(doctor, "measure_ceilings", lambda *_: measured[1])
    told = invoke("doctor").stdout  # the machine is idle, and slower now
    for product in SHORT_PRODUCTS:
        if set(product.features) <= set(detect_target().features):
            assert re.search(
                rf"{product.data} x {product.weights} +\d+ Gop/s, products of 512", told
            )
    assert re.search(r"one core +\d+ GFLOP/s; memory \d+ GB/s, in estimates of time\n", told)
    assert "kept: 200 GFLOP/s; memory 20 GB/s, of 2026-01-31" in told
    assert kept_ceilings(detect_target(), 1) == measured[1]
    keep_ceilings(detect_target(), measured[0])
    told = invoke("doctor").stdout  # it is busy: what was higher stays
    assert "others use 0.9 of 2 cores (most: python 812)" in told
    assert "the rates are too low: measure again when the machine is idle" in told
    assert kept_ceilings(detect_target(), 1) == measured[0]
    assert "200 GFLOP/s; memory 20 GB/s, of 2026-01-31" in invoke("doctor", "--no-measure").stdout


def test_what_is_missing_is_optional_and_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = [*doctor.packages(), *doctor.programs(), *doctor.portable_opencl()]
    assert {each.name for each in found} == set(LISTED[6:])
    for each in found:
        assert "for " in each.text
        assert each.remedy
        assert not each.is_needed


def test_a_program_tells_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gcc", "clang", "dot", "cc"):
        path = tmp_path / name
        stream = ">&2" if name == "dot" else ""
        path.write_text(f'#!/bin/sh\necho "{name} version 12.2"{stream}\necho more\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = {each.name: each for each in doctor.programs()}
    assert found["clang"].text.splitlines()[0] == "clang version 12.2"
    assert found["C compiler"].text.startswith("cc version 12.2\n")
    assert all(not each.remedy for each in found.values())
    (tmp_path / "clang").write_text("#!/bin/sh\nexit 3\n")
    broken = {each.name: each for each in doctor.programs()}["clang"]
    assert broken.text.splitlines()[0] == str(tmp_path / "clang")


@pytest.mark.parametrize(
    ("printed", "text", "is_here"),
    [
        ("Portable Computing Language\tOpenCL 3.0 PoCL 6.0\n", "OpenCL 3.0 PoCL 6.0", True),
        ("Another Platform\tOpenCL 2.0\n", "no platform of this name, but Another", False),
        ("", "no platform of this name (for", False),
    ],
)
def test_pocl_is_a_platform_of_opencl(
    monkeypatch: pytest.MonkeyPatch, printed: str, text: str, is_here: bool
) -> None:
    def run(command: object, **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 0, printed, "")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(subprocess, "run", run)
    (found,) = doctor.portable_opencl()
    assert text in found.text
    assert bool(found.remedy) != is_here


def test_devices_are_listed_with_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {
        "name": "Card",
        "platform": "Maker",
        "version": "OpenCL 3.0",
        "compute_units": 8,
        "memory_bytes": 4 << 30,
        "shared_bytes": 48 << 10,
        "threads_per_block": 256,
    }
    rates = {"to_device": 1e10, "on_device": 2e11, "from_device": 9e9, "round_trip_s": 2e-5}
    speed = {"flops_per_s": 5e12, "bytes_per_s": 4e11, "launch_s": 3e-6}
    printed = json.dumps([{"facts": facts, "rates": rates, "speed": speed}])
    monkeypatch.setattr(device_findings, "version_of", lambda name: "2026.1")
    monkeypatch.setattr(device_findings, "output_of", lambda command: printed)
    found, cuda, nvrtc = device_findings.devices()
    assert found.text == (
        "Card (Maker, OpenCL 3.0): 8 units, 4.0 GiB, 48 KiB shared, 256 threads a block\n"
        "copies: 10.0 GB/s to it, 200.0 on it, 9.0 from it; a short one takes 20 us\n"
        "kernels: 5000 GFLOP/s of f32, memory 400 GB/s; a launch takes 3.0 us"
    )
    assert (cuda.name, nvrtc.name) == ("CUDA", "NVRTC")
    monkeypatch.setattr(device_findings, "output_of", lambda command: "")
    assert device_findings.devices()[0].text == "no device (for --target opencl)"
    monkeypatch.setattr(device_findings, "version_of", lambda name: "")
    assert "tensorwright[opencl]" in device_findings.devices()[0].remedy


def test_rates_of_a_device_are_measured() -> None:
    rates = measure_rates(HOST)
    assert min(rates.to_device, rates.from_device, rates.round_trip_s) > 0
