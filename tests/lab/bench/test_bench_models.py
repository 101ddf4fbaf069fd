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

from tensorwright.cli.arguments.check_model import quantised_steps
from tensorwright.peers.process import describe_error, max_rel_error, max_steps
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


def test_shapes_are_given_to_a_model_whose_scores_are_compared_too(
    invoke: Invoke, tmp_path: Path
) -> None:
    """A softmax ends it: the model with a further output has all shapes already."""
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
    words = ("bench", "models", path, "--rounds", 0, "--threads", 1, "--check")
    without = invoke(*words)
    assert without.exit_code == 4, without.output
    assert "its tensors have named sizes (batch)" in without.stderr
    result = invoke(*words, "--input-shapes", "batch:2")
    assert result.exit_code == 0, result.output


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
