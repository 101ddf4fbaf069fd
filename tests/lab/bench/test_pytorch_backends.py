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
    lines = [line.strip("| ").split(" |") for line in capsys.readouterr().out.splitlines()]
    table = {cells[0].strip(): [cell.strip() for cell in cells] for cells in lines}
    titles = table["network"]
    of_onnx, first_of_max = titles.index("ONNX"), titles.index("of max")
    assert table["least"][of_onnx] == "0.50"
    assert table["networks"][of_onnx] == "2"
    assert table["least"][first_of_max] == "10.00"
    assert table["least"][titles.index("Inductor")] == ""
    assert table["least"][titles.index("max")] == ""
