"""Executables that earlier versions saved still open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorwright.base import MachineError, cpu_target, detect_target
from tensorwright.runtime import load, read_container

SAVED = Path(__file__).parent / "stored" / "version-1.tw"
"""relu of f32 (4, 16), for x86-64-sse2 and one thread."""


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
