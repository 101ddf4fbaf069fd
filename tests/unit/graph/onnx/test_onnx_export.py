"""Exported models check, run in ONNX Runtime, and come back as the same function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from tests.unit.graph.onnx.onnx_models import assert_same_values, by_onnxruntime, random_inputs
from tests.unit.graph.onnx.test_onnx_import import CASES
from tests.unit.graph.random_graphs import graphs

from tensorwright.base import DType, OutputError, UnsupportedError
from tensorwright.graph import Graph, GraphBuilder, interpret
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import exporter, save_onnx, to_onnx
from tensorwright.ops import OPERATORS

NOT_IN_ONNX = {"atan2", "matmul_blocks", *(each.name for each in OPERATORS if each.decides)}


@given(graphs())
@settings(max_examples=30)
def test_random_graphs_come_back(graph: Graph) -> None:
    assert_same_values(graph, load_onnx(to_onnx(graph)))


@pytest.mark.parametrize("name", CASES)
def test_imported_models_come_back(name: str) -> None:
    graph = load_onnx(CASES[name])
    model = to_onnx(graph)
    assert_same_values(graph, load_onnx(model))
    if name in ("reshape keeping zeros", "identity of an input"):
        return
    inputs = random_inputs(graph)
    for left, right in zip(
        by_onnxruntime(model, inputs), interpret(graph, inputs).values(), strict=True
    ):
        np.testing.assert_allclose(left, right, 1e-5, 1e-5)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero", [None, np.int8, np.float32])
def test_codes_in_words(bits: int, zero: Any) -> None:
    chance = np.random.default_rng(5)
    b = GraphBuilder()
    words = b.input("words", (8, 3), DType.I32)
    others = [np.ones((2, 3), np.float32)]
    if zero is not None:
        others.append(chance.integers(-4, 4, (2, 3)).astype(zero))
    codes = b.add("dequantize_blocks", words, *map(b.constant, others), bits=bits)
    graph = b.finish([codes])
    inputs = {"words": chance.integers(-(1 << 31), 1 << 31, (8, 3)).astype(np.int32)}
    (made,), (wanted,) = by_onnxruntime(to_onnx(graph), inputs), interpret(graph, inputs).values()
    np.testing.assert_array_equal(made, wanted)


def test_every_operator_has_a_rule() -> None:
    assert {each.name for each in OPERATORS} - exporter.RULES.keys() == NOT_IN_ONNX


def test_the_oldest_operator_set_that_has_all_operators() -> None:
    b = GraphBuilder()
    x = b.input("x", (2, 3))
    assert to_onnx(b.finish([b.add("relu", x)])).opset_import[0].version == 18
    assert to_onnx(b.finish([b.add("gelu", x)])).opset_import[0].version == 20
    weights = b.constant(np.ones(3, np.float32))
    assert to_onnx(b.finish([b.add("rms_norm", x, weights)])).opset_import[0].version == 23


def test_what_onnx_does_not_have() -> None:
    b = GraphBuilder()
    x = b.input("x", (2,))
    with pytest.raises(UnsupportedError) as caught:
        to_onnx(b.finish([b.add("atan2", x, x)]))
    assert str(caught.value) == (
        "operator atan2: node atan2_0 (atan2): ONNX has no such operator"
        "\n  try: compile the graph itself; tensorwright.compile takes a Graph"
    )


def weighted() -> Graph:
    b = GraphBuilder("weighted")
    x = b.input("x", (1, 64))
    w = b.constant(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32), "w")
    return b.finish([b.add("matmul", x, w, output="y")])


def test_files(tmp_path: Path) -> None:
    graph = weighted()
    save_onnx(graph, tmp_path / "model.onnx")
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    assert_same_values(graph, load_onnx(tmp_path / "model.onnx"))
    with pytest.raises(OutputError, match="the folder does not exist"):
        save_onnx(graph, tmp_path / "missing" / "model.onnx")


def test_large_weights_go_to_a_file_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "_EXTERNAL_FROM_BYTES", 1 << 13)
    graph = weighted()
    for _ in range(2):
        save_onnx(graph, tmp_path / "model.onnx")
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == ["model.onnx", "model.onnx.data"]
        assert (tmp_path / "model.onnx.data").stat().st_size == 64 * 64 * 4
    assert_same_values(graph, load_onnx(tmp_path / "model.onnx"))
