"""What others did meanwhile, from a made-up account of the machine's time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.correctness import rotation_self_test as foreign_load
from benchmarks.correctness.rotation_self_test import watch_foreign_load


def test_a_share_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    ticks = os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr(foreign_load, "_STAT", stat)
    monkeypatch.setattr(foreign_load, "_read_own_s", iter([1.0, 3.0]).__next__)
    monkeypatch.setattr(foreign_load.time, "monotonic", iter([100.0, 110.0]).__next__)
    monkeypatch.setattr(foreign_load.os, "cpu_count", lambda: 2)
    stat.write_text("cpu 0 0 0 50 0 0 0 0 0 0\ncpu0 1\n")
    with watch_foreign_load() as load:
        stat.write_text(f"cpu {6 * ticks} 0 {ticks} {9 * ticks} 99 0 0 0 0 0\ncpu0 1\n")
    assert load.share == pytest.approx((7 - 2) / (10 * 2))


def test_a_system_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_load, "_STAT", tmp_path / "none")
    with watch_foreign_load() as load:
        pass
    assert load.share is None
