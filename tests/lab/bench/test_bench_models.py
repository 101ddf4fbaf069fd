"""`tensorwright bench models`: what is wrong counts nowhere, and rows of other builds are told."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.command_line import Invoke
from tests.unit.peers.tampered import wrong_answers

from tensorwright.cli.arguments.models import quantised_steps
from tensorwright.peers.process import describe_error, max_rel_error, max_steps
from tensorwright_lab.bench import network_runs
from tensorwright_lab.comparison import networks, this_build

MakeOnnx = Callable[..., Path]


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
    assert {(mean["rows"], mean["model"]) for mean in found["means"]} == {(1, "wide")}
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


def test_a_bench_without_a_measured_model_fails(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    result = invoke("bench", "models", broken, "--rounds", 1)
    assert result.exit_code == 3, result.output  # at once: none can be read
    assert result.stderr.startswith(f"ModelError: file {broken}: it is not an ONNX model")
    both = invoke("bench", "models", broken, model, "--rounds", 0, "--threads", 1)
    assert both.exit_code == 0, both.output


@pytest.fixture
def open_model(tmp_path: Path) -> Path:
    """Rows of four numbers, their number is open; a softmax ends it."""
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 4])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["r"]),
        onnx.helper.make_node("Softmax", ["r"], ["y"]),
    ]
    graph = onnx.helper.make_graph(nodes, "open", [x], [y])
    opsets = [onnx.helper.make_opsetid("", 17)]
    path = tmp_path / "open.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_shapes_are_given_to_a_model_whose_scores_are_compared_too(
    invoke: Invoke, open_model: Path
) -> None:
    words = ("bench", "models", open_model, "--rounds", 0, "--threads", 1, "--check")
    result = invoke(*words, "--input-shapes", "batch:2")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].split()[:2] == ["model", "error"]  # all are numbers


def test_a_model_of_any_size_is_compiled_once_and_has_a_row_for_each_point(
    invoke: Invoke, open_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []
    build = network_runs.prepare
    monkeypatch.setattr(
        network_runs, "prepare", lambda *given, **how: compiled.append(1) or build(*given, **how)
    )
    path = tmp_path / "rows.json"
    words = ("bench", "models", open_model, "--rounds", 1, "--threads", 1, "--json", path)
    words = (*words, "--check", "--sizes", "batch=1..16")
    assert invoke(*words, "--at", "batch=1,3").exit_code == 0
    assert len(compiled) == 2  # as it is, and with what its softmax reads
    more = invoke(*words, "--at", "batch=1,3,16", "--resume")
    assert more.exit_code == 0, more.output
    assert more.stderr.count("error") == 1
    assert "open at batch=16: error" in more.stderr
    rows = json.loads(path.read_text())["rows"]
    assert [(row["model"], row["at"]) for row in rows] == [
        ("open", "batch=1"),
        ("open", "batch=3"),
        ("open", "batch=16"),
    ]
    assert all(row["ours_ms"] and row["peer_ms"] and row["max_rel_error"] < 1e-5 for row in rows)
    assert [line.split()[1] for line in more.stdout.splitlines()[:4]] == ["at"] + [
        row["at"] for row in rows
    ]
    other = invoke(*words, "--resume", "--sizes", "batch=1..8", "--at", "batch=2")
    assert other.exit_code == 2
    assert "its rows have sizes {'batch': '1..16'}, this run has {'batch': '1..8'}" in other.stderr


def test_points_are_suggested_and_a_failure_has_its_own(
    invoke: Invoke, open_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bench", "models", open_model, "--rounds", 0, "--threads", 1, "--sizes", "batch=1..2")
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    assert [line.split()[1] for line in result.stdout.splitlines()[:2]] == ["at", "batch=1"]
    monkeypatch.setattr(networks, "PeerProcess", wrong_answers("ours"))
    wrong = invoke(*words, "--at", "batch=2")
    assert wrong.exit_code == 1
    assert "open at batch=2: ours answers wrongly: off by" in wrong.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--at", "sequence=2"), "size sequence: there is no such size"),
        (("--sizes", "batch=1..8", "--at", "batch=9"), "size batch = 9: it is batch in 1..8"),
        (("--at", "batch"), "'batch' is not of the form"),
        (("--input-shapes", "batch:2", "--at", "batch=2"), "all shapes are numbers"),
        (("--sizes", "rows=1..8"), "rows"),
        (("--sizes", "batch=8..1"), "batch"),
    ],
)
def test_sizes_that_a_model_does_not_have_are_refused_at_once(
    invoke: Invoke, open_model: Path, words: tuple[str, ...], reason: str
) -> None:
    result = invoke("bench", "models", open_model, "--rounds", 0, *words)
    assert result.exit_code == 2, result.output
    assert reason in result.stderr
    assert not result.stdout


def test_at_needs_a_model_with_open_sizes(invoke: Invoke, model: Path, open_model: Path) -> None:
    words = ("--at", "batch=2", "--rounds", 0, "--threads", 1)
    refused = invoke("bench", "models", model, *words)
    assert refused.exit_code == 2
    assert "option --at: it does not apply here: all shapes are numbers" in refused.stderr
    both = invoke("bench", "models", model, open_model, *words)
    assert both.exit_code == 0, both.output
    assert [line.split()[:2] for line in both.stdout.splitlines()[1:3]] == [
        ["tiny", "-"],
        ["open", "batch=2"],
    ]


def test_pytorch_alone_is_asked_before_the_work(invoke: Invoke, make_onnx: MakeOnnx) -> None:
    pytest.importorskip("torch")
    path = make_onnx("Softsign", [2, 3])
    result = invoke("bench", "models", path, "--rounds", 0, "--threads", 1, "--peers", "pytorch")
    assert result.exit_code == 1, result.output
    assert "operator Softsign has no counterpart in this peer" in result.stdout
    assert "workloads tuned" not in result.stderr


def test_the_error_of_a_quantised_output_is_in_steps(
    invoke: Invoke, quantised: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bench", "models", quantised, "--rounds", 0, "--threads", 1, "--check")
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    assert "error 0 steps" in result.stderr
    checked = invoke(
        "run", quantised, "--input", "random", "--check-against", "onnxruntime", "--threads", 1
    )
    assert "largest error 0 steps, passes (at most 1 step)" in checked.stdout


@pytest.fixture
def quantised(tmp_path: Path) -> Path:
    """x to codes and back, in steps of a quarter; x of shape (3, 4)."""
    make = onnx.helper.make_node
    nodes = [
        make("QuantizeLinear", ["x", "s", "z"], ["q"]),
        make("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.array(0.25, np.float32), "s"),
        onnx.numpy_helper.from_array(np.array(128, np.uint8), "z"),
    ]
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 4])
    types = {"y": onnx.TensorProto.FLOAT, "q": onnx.TensorProto.UINT8}
    outputs = [onnx.helper.make_tensor_value_info(n, kind, [3, 4]) for n, kind in types.items()]
    graph = onnx.helper.make_graph(nodes, "codes", [x], outputs, constants)
    opsets = [onnx.helper.make_opsetid("", 17)]
    path = tmp_path / "codes.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_the_steps_of_quantised_outputs(quantised: Path) -> None:
    steps = quantised_steps(onnx.load(quantised))
    assert steps == {"y": 0.25, "q": 1.0}
    theirs = {"y": np.array([0.5, -0.25]), "q": np.array([130, 127], np.uint8)}
    ours = {"y": np.array([0.5, 0.25]), "q": np.array([131, 127], np.uint8)}
    assert max_steps(ours, theirs, steps) == 2
    assert max_rel_error(ours, theirs, steps) == 0
    assert max_steps(ours, theirs, {}) is None
    assert max_steps({"y": np.zeros(3)}, theirs, steps) == math.inf
    assert describe_error(0.0, 2.0) == "2 steps"
    assert describe_error(1e-6, 1.0) == "1.0e-06, 1 step"
    assert describe_error(2e-7, None) == "2.0e-07"
