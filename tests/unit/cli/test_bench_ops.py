"""`tensorwright bench ops` on its smallest cases, with a few trials."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Invoke
from tests.unit.peers.operator_cases import small_case

from tensorwright.zoo import OperatorCase


@pytest.fixture(autouse=True)
def small_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases GMM.1 and NRM.1, cut down."""

    def find(names: tuple[str, ...], batch: int) -> tuple[OperatorCase, ...]:
        return tuple(small_case(name, batch) for name in names)

    module = importlib.import_module("tensorwright.cli.bench.ops")  # the name is the command's, too
    monkeypatch.setattr(module, "find_cases", find)
    monkeypatch.setattr(module, "choose_copies", lambda *_: 2)


def test_two_cases_are_tuned_compared_and_kept(invoke: Invoke, tmp_path: Path) -> None:
    path, records = tmp_path / "ops.json", tmp_path / "records.jsonl"
    arguments = ("bench", "ops", "--trials", 4, "--peers", "onnxruntime", "--rounds", 1)
    arguments = (*arguments, "--threads", 1, "--json", path, "--records", records)
    result = invoke(*arguments, "--cases", "GMM.1")
    assert result.exit_code == 0, result.output
    content = json.loads(path.read_text())
    (row,) = content["rows"]
    assert (row["case"], row["failure"], row["is_tuned"]) == ("GMM.1", "", True)
    assert 1 <= row["trials"] <= 4
    assert row["ratio"] > 0
    assert content["peak_gflops"] > 0
    assert content["versions"]["onnxruntime"]

    result = invoke(*arguments, "--cases", "GMM.1,NRM.1", "--resume")
    assert result.exit_code == 0, result.output
    first, second = json.loads(path.read_text())["rows"]
    assert first["times"] == row["times"]
    assert second["case"] == "NRM.1"
    assert "GMM.1 batch 1" not in result.stderr
    assert "NRM.1 batch 1" in result.stderr
    assert "geometric mean" in result.stdout


def test_trials_on_record_count(invoke: Invoke, tmp_path: Path) -> None:
    path, records = tmp_path / "ops.json", tmp_path / "records.jsonl"
    arguments = ("bench", "ops", "--trials", 3, "--peers", "onnxruntime", "--rounds", 1)
    arguments = (*arguments, "--threads", 1, "--json", path, "--records", records)
    for _ in range(2):
        result = invoke(*arguments, "--cases", "GMM.1")
        assert result.exit_code == 0, result.output
    (row,) = json.loads(path.read_text())["rows"]
    assert row["tune_s"] == 0.0
    assert row["trials"] >= 3


def test_without_tuning_nothing_is_recorded(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "ops.json"
    arguments = ("bench", "ops", "--no-tune", "--peers", "onnxruntime", "--rounds", 1)
    result = invoke(*arguments, "--threads", 1, "--json", path, "--cases", "NRM.1")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(path.read_text())["rows"]
    assert (row["trials"], row["is_tuned"]) == (0, False)


def test_resuming_needs_a_file(invoke: Invoke) -> None:
    result = invoke("bench", "ops", "--resume", "--cases", "NRM.1")
    assert result.exit_code == 2
    assert "name it with --json" in result.output


def test_an_unknown_peer_is_refused(invoke: Invoke) -> None:
    result = invoke("bench", "ops", "--cases", "NRM.1", "--peers", "nobody")
    assert result.exit_code == 2
    assert "no such kind of competitor" in result.output
