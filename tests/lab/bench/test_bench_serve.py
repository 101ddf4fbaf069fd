"""`tensorwright bench serve` on a small network."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from tests.command_line import Invoke


def small_model(path: Path) -> Path:
    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (8, 64)) for n in "xy")
    graph = helper.make_graph([node], "small", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_callers_are_counted_in_turns(invoke: Invoke, tmp_path: Path) -> None:
    path, model = tmp_path / "serve.json", small_model(tmp_path / "small.onnx")
    few = ("--callers", "1,3", "--seconds", 0.05, "--rounds", 1, "--threads", 2, "--json", path)
    result = invoke("bench", "serve", model, *few, "--neighbours", 1)
    assert result.exit_code == 0, result.output
    content = json.loads(path.read_text())
    assert (content["neighbours"], content["threads"]) == (1, 2)
    names = ["tensorwright", "one thread a call", "one call at a time", "onnxruntime"]
    rows = content["rows"]
    assert [(row["callers"], row["runtime"]) for row in rows] == [
        (callers, name) for callers in (1, 3) for name in names
    ]
    for row in rows:
        assert not row["failure"]
        assert row["calls_per_s"] > 0
        assert 0 < row["p50_s"] <= row["p90_s"] <= row["p95_s"] <= row["longest_s"]
    assert "p95 ms" in result.stdout


def test_all_fixed_splits_of_the_threads_take_part(invoke: Invoke, tmp_path: Path) -> None:
    path, model = tmp_path / "serve.json", small_model(tmp_path / "small.onnx")
    few = ("--callers", "1", "--seconds", 0.05, "--rounds", 1, "--threads", 4, "--json", path)
    assert invoke("bench", "serve", model, *few, "--peers", "openvino").exit_code == 0
    names = [row["runtime"] for row in json.loads(path.read_text())["rows"]]
    assert names[1:4] == ["one thread a call", "2 calls of 2 threads", "one call at a time"]


def test_what_is_no_number_of_callers_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("bench", "serve", small_model(tmp_path / "small.onnx"), "--callers", "0,x")
    assert result.exit_code == 2
    assert "give numbers from 1 on" in result.stderr


def test_a_peer_that_serves_no_callers_fails_in_its_rows(invoke: Invoke, tmp_path: Path) -> None:
    path, model = tmp_path / "serve.json", small_model(tmp_path / "small.onnx")
    few = ("--callers", "1", "--seconds", 0.05, "--rounds", 1, "--threads", 1, "--json", path)
    assert invoke("bench", "serve", model, *few, "--peers", "openvino").exit_code == 0
    ours, theirs = json.loads(path.read_text())["rows"]
    assert not ours["failure"]
    assert theirs["failure"]
