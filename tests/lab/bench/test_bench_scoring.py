"""`tensorwright bench scoring` on few candidates."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import Invoke


def test_candidates_are_scored_and_the_numbers_kept(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "scoring.json"
    arguments = ("--workload", "max pool 3x3/2 64 112x112", "--candidates", 96, "--seed", 1)
    result = invoke("bench", "scoring", *arguments, "--json", path)
    assert result.exit_code == 0, result.output
    assert "candidates per second" in result.output
    found = json.loads(path.read_text())
    assert found["candidates"] == found["scored"] == 96
    assert 1 <= found["structures"] <= found["structures_of_the_space"]
    assert found["trained"]
    seconds = found["seconds"]
    parts = sum(value for name, value in seconds.items() if name != "total")
    assert abs(parts - seconds["total"]) < 1e-9
    assert abs(found["candidates_per_s"] * seconds["total"] - 96) < 1e-6
    assert "fixed NumPy workload" in result.output
    per_reference = found["candidates_per_s"] * found["reference_s"]
    assert abs(found["candidates_per_reference"] - per_reference) < 1e-6


def test_an_unknown_workload_is_refused_with_those_there_are(invoke: Invoke) -> None:
    result = invoke("bench", "scoring", "--workload", "conv")
    assert result.exit_code != 0
    assert "no such workload" in result.output
    assert "matmul 512x512x512" in result.output
