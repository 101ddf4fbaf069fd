"""The table of benchmarks/pytorch_backends.py."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from benchmarks.pytorch_backends import ONNX, OURS, TUNED, ratio, report


def entry(time_s: float | None, processor_s: float, failure: str = "") -> dict[str, Any]:
    first = {"time_s": 1.0, "processor_s": processor_s, "fallbacks": {}}
    return {
        "first": first,
        "error": 1e-6,
        "time_s": time_s,
        "spread": 0.1,
        "failure": failure,
    }


def test_ratios_are_above_one_where_ours_is_faster(capsys: pytest.CaptureFixture[str]) -> None:
    row = {OURS: entry(2.0, 3.0), ONNX: entry(1.0, 4.0), TUNED: entry(None, 30.0, "it crashed")}
    assert ratio(row, ONNX, "time_s") == 0.5
    assert ratio(row, TUNED, "time_s") is None
    assert ratio(row, TUNED, "processor_s") == 10.0
    assert ratio(row, "inductor", "time_s") is None
    report({"small": row, "again": row})
    told = capsys.readouterr().out
    assert "of onnx          geometric mean 0.50, least 0.50, of 2" in told
    assert "of inductor" in told
    assert "of max           geometric" not in told
