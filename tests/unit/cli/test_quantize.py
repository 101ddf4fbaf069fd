"""`tensorwright quantize`: what is written, what is said, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result

from tensorwright.graph import GraphBuilder
from tensorwright.graph.onnx_export import save_onnx

Invoke = Callable[..., Result]


@pytest.fixture
def model(tmp_path: Path, home: Path) -> Path:
    """Two products with a relu between them."""
    source = np.random.default_rng(0)
    b = GraphBuilder("two")
    x = b.input("x", (4, 256))
    for name in ("wide", "narrow"):
        weights = source.standard_normal((256, 256)) / 16
        x = b.add("matmul", x, b.constant(weights.astype(np.float32)), output=name)
        x = b.add("relu", x, output=f"{name}_relu")
    path = tmp_path / "two.onnx"
    save_onnx(b.finish((x,)), path)
    return path


def test_weights_become_an_eighth(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.onnx"
    result = invoke("quantize", model, "-o", small, "--weights", "int4", "--block", 32)
    assert result.exit_code == 0, result.output
    assert "small.onnx: 82." in result.stdout
    assert "kB, 524." in result.stdout
    assert small.stat().st_size < model.stat().st_size / 6
    names = {node.op_type for node in onnx.load(small).graph.node}
    assert names == {"MatMulNBits", "Relu"}
    assert "narrow_relu" in result.stdout
    assert invoke("run", small, "--input", "random").exit_code == 0


def test_nodes_are_kept_for_an_error(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.onnx"
    command = ("quantize", model, "-o", small, "--weights", "int4", "--target-error", 0.1)
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    assert "1 of 2 nodes kept: error 0.0" in result.stderr
    assert "kept as floats: " in result.stdout


def test_a_file_calibrates(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    data, codes = tmp_path / "samples.npz", tmp_path / "codes.onnx"
    drawn = np.random.default_rng(1).standard_normal((8, 4, 256)).astype(np.float32)
    np.savez(data, x=drawn)
    result = invoke("quantize", model, "-o", codes, "--calibrate", data)
    assert result.exit_code == 0, result.output
    assert "QuantizeLinear" in {node.op_type for node in onnx.load(codes).graph.node}
    checked = ("run", codes, "--input", "random", "--check-against", "onnxruntime")
    assert invoke(*checked).exit_code in (0, 1)  # whose sums saturate on some processors


def test_what_is_refused(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.onnx"
    without = invoke("quantize", model, "-o", small)
    assert without.exit_code != 0
    assert "--calibrate" in without.output
    same = invoke("quantize", model, "-o", model, "--weights", "int4")
    assert same.exit_code != 0
    assert "would be lost" in same.output
    missing = invoke("quantize", tmp_path / "none.onnx", "-o", small, "--weights", "int4")
    assert "there is no such file" in missing.output
    assert not small.exists()


def test_products_in_bf16_are_checked(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    program = tmp_path / "two.tw"
    options = ("--precision", "bf16", "--check")
    result = invoke("compile", model, "-o", program, *options)
    assert result.exit_code == 0, result.output
    assert "relative error" in result.stdout
    assert "narrow    MatMul" in result.stdout
    assert program.stat().st_size < 0.6 * model.stat().st_size
    refused = invoke("compile", model, "-o", program, "--check")
    assert "all is computed in f32 (--precision bf16)" in refused.output
    refused = invoke("run", program, "--precision", "bf16")
    assert "already compiled" in refused.output
    refused = invoke("compile", model, "-o", program, *options, "--keep", "wid")
    assert "no product has this name" in refused.output
    assert "did you mean wide?" in refused.output
