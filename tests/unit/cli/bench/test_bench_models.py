"""`tensorwright bench models`: what is wrong counts nowhere, and rows of other builds are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Invoke
from tests.unit.peers.tampered import wrong_answers

from tensorwright.peers import this_build
from tensorwright.peers.comparison import networks


def test_bench_models_fails_where_ours_is_wrong_and_leaves_a_wrong_peer_out(
    invoke: Invoke, model: Path, wide_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.json"
    words = ("bench", "models", "--untuned", "--rounds", 1, "--threads", 1, "--json", path)
    words = (*words, "--peers", "onnxruntime,pytorch")
    assert invoke(*words, wide_model).exit_code == 0
    monkeypatch.setattr(networks, "PeerProcess", wrong_answers("ours", "pytorch"))
    result = invoke(*words, wide_model, model, "--resume")
    assert result.exit_code == 1
    found = json.loads(path.read_text())
    right, wrong = found["rows"]
    assert (right["model"], right["failure"]) == ("wide", "")
    assert wrong["failure"].startswith("ours answers wrongly: off by ")
    assert wrong["failure"].endswith("; that of onnxruntime counts")
    assert (wrong["ours_ms"], wrong["ratio"], wrong["peak_share"]) == (None, None, None)
    assert [peer["time_ms"] for peer in wrong["peers"]] == [None, None]
    assert wrong["peers"][1]["failure"].startswith("peer pytorch answers wrongly: off by ")
    assert [(mean["rows"], mean["model"]) for mean in found["means"]] == [(1, "wide")]
    for who in ("ours", "peer pytorch"):
        assert f"tiny: {who} answers wrongly: off by" in result.stdout
    assert right["build"] == wrong["build"] == this_build()


def test_rows_of_another_build_are_marked_or_measured_again(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rows.json"
    words = ("bench", "models", model, "--untuned", "--rounds", 0, "--threads", 1, "--json", path)
    assert invoke(*words).exit_code == 0
    content = json.loads(path.read_text())
    content["rows"][0].pop("build")  # as files have it that are older than builds
    path.write_text(json.dumps(content))
    kept = invoke(*words, "--resume")
    assert kept.exit_code == 0, kept.output
    assert kept.stdout.splitlines()[1].endswith(" unknown")
    assert "1 of 1 rows were measured by other builds" in kept.stdout
    again = invoke(*words, "--resume", "--same-build")
    assert again.exit_code == 0, again.output
    assert "unknown" not in again.stdout
    assert json.loads(path.read_text())["rows"][0]["build"] == this_build()
