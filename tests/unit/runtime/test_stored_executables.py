"""Executables that earlier versions saved still open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import MachineError, cpu_target, detect_target
from tensorwright.runtime import load, read_container
from tensorwright.runtime.container import FORMAT_VERSION

STORED = Path(__file__).parent / "stored"
"""For x86-64-sse2: relu of f32 (4, 16), version 1; the others as `test_a_file_runs` computes it."""
SAVED = STORED / "version-1.tw"


def test_an_earlier_file_is_read() -> None:
    plan = read_container(SAVED).plan
    assert plan.target == cpu_target("x86-64-sse2")
    assert [spec.shape for spec in (*plan.inputs, *plan.outputs)] == [(4, 16), (4, 16)]


def test_an_earlier_file_runs() -> None:
    if cpu_target("x86-64-sse2").missing_on(detect_target()):
        with pytest.raises(MachineError, match="compile the model again on this machine"):
            load(SAVED)
        return
    array = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    np.testing.assert_array_equal(load(SAVED, 1)(array), np.maximum(array, 0))


@pytest.mark.skipif(
    bool(cpu_target("x86-64-sse2").missing_on(detect_target())),
    reason="the files hold code for x86-64",
)
@pytest.mark.parametrize("version", range(2, FORMAT_VERSION + 1))
def test_a_file_runs(version: int) -> None:
    weights = np.arange(256, dtype=np.float32).reshape(16, 16) % 7 - 3
    array = np.arange(64, dtype=np.float32).reshape(4, 16) % 5 - 2
    expected = np.maximum(array @ weights, 0)
    rows, largest = load(STORED / f"version-{version}.tw")(array)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(largest, -np.sort(-expected)[:, :3])
