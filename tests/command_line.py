"""Tiny models as files, and the command line called inside this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from tests.conftest import share_home

from tensorwright.cli.group import program
from tensorwright.graph import GraphBuilder
from tensorwright.graph.onnx_export import save_onnx
from tensorwright.machine import Load, LoadWatch

Invoke = Callable[..., Result]


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of each test's own: no record of another one.

    No command says that a test of another worker uses a core.
    Networks are cut by rule: how many workloads the tiny ones have is no matter of a model.
    """
    folder = tmp_path / "home"
    share_home(folder, request.config)
    monkeypatch.setenv("TENSORWRIGHT_HOME", str(folder))
    monkeypatch.setenv("TENSORWRIGHT_DEFAULT_SCHEDULE", "rule")
    monkeypatch.setattr(LoadWatch, "load", lambda _: Load(0.0, 0.0, 2, ""))
    return folder


@pytest.fixture
def invoke() -> Invoke:
    def call(*arguments: object) -> Result:
        return CliRunner().invoke(program, [str(each) for each in arguments])

    return call


@pytest.fixture
def child(home: Path) -> Callable[..., dict[str, Any]]:
    """The arguments with which `subprocess` starts the command line."""

    def prepare(*arguments: object) -> dict[str, Any]:
        source = str(Path(sys.modules["tensorwright"].__file__ or "").parents[1])
        environment = os.environ | {"PYTHONPATH": source, "TENSORWRIGHT_HOME": str(home)}
        return {
            "args": [sys.executable, "-m", "tensorwright", *map(str, arguments)],
            "env": environment,
            "text": True,
        }

    return prepare


def _tiny(extent: int) -> tuple[GraphBuilder, str]:
    builder = GraphBuilder("tiny")
    x = builder.input("x", (4, extent))
    weights = np.random.default_rng(0).standard_normal((extent, extent)).astype(np.float32)
    return builder, builder.add("matmul", x, builder.constant(weights, "w"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """softmax(relu(x @ w)), x of shape (4, 8)."""
    builder, y = _tiny(8)
    z = builder.add("softmax", builder.add("relu", y), axis=1)
    path = tmp_path / "tiny.onnx"
    save_onnx(builder.finish([z]), path)
    return path


@pytest.fixture
def wide_model(tmp_path: Path) -> Path:
    """x @ w with a megabyte of weights: x of shape (4, 512)."""
    builder, y = _tiny(512)
    path = tmp_path / "wide.onnx"
    save_onnx(builder.finish([y]), path)
    return path


@pytest.fixture
def make_onnx(tmp_path: Path) -> Callable[..., Path]:
    """A file with one node, from an input `x` to an output `y`."""

    def make(operator: str, shape: list[object], dtype: int = onnx.TensorProto.FLOAT) -> Path:
        node = onnx.helper.make_node(operator, ["x"], ["y"])
        x = onnx.helper.make_tensor_value_info("x", dtype, shape)
        y = onnx.helper.make_tensor_value_info("y", dtype, None)
        graph = onnx.helper.make_graph([node], "made", [x], [y])
        opsets = [onnx.helper.make_opsetid("", 17)]
        path = tmp_path / f"{operator}.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        return path

    return make


MODULE = """
import tensorwright
from tensorwright.expr import compute, placeholder, reduce_axis, sum_over

x, w, k = placeholder("x", (8, 24)), placeholder("w", (24, 24)), reduce_axis("k", 24)
y = compute("y", (8, 24), lambda i, j: sum_over(x[i, k] * w[k, j], k))
both = (y, compute("z", (8, 24), lambda i, j: y[i, j] * 2.0))
layer = tensorwright.program(y, constants=("w",), name="layer")
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A Python file with expressions of products: `both`, and `layer`, whose `w` is constant."""
    path = tmp_path / "own.py"
    path.write_text(MODULE)
    return path
