"""`tensorwright tune --at`: models of any size, tuned for several sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import Result
from onnx import TensorProto, helper, numpy_helper

Invoke = Callable[..., Result]


def open_layers() -> onnx.ModelProto:
    """A product and a softmax of any number of rows."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 16))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = numpy_helper.from_array(np.ones((16, 32), np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Softmax", ["product"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "layers", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "open.onnx"
    onnx.save(open_layers(), path)
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--at", "m=3"), "size m: there is no such size to tune for"),
        (("--at", "n=17"), "size n = 17: it is n in 1..16"),
        (("--at", "n=1,x"), "n=x is not a number"),
        (("--at", "n=1,n=2"), "n is given twice"),
        (("--at", "3"), "'3' is not of the form"),
        (("--at", "n=1", "--input-shapes", "n:4"), "all shapes are numbers"),
    ],
)
def test_sizes_that_cannot_be_tuned_for_are_refused(
    invoke: Invoke, model: Path, options: tuple[str, ...], message: str
) -> None:
    done = invoke("tune", model, "--sizes", "n=1..16", "--trials", 1, *options)
    if "--input-shapes" in options:
        done = invoke("tune", model, "--trials", 1, *options)
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert "Traceback" not in done.output


def test_a_run_has_one_size(invoke: Invoke, model: Path) -> None:
    done = invoke("run", model, "--sizes", "n=1..16", "--input", "random", "--at", "n=1,2")
    assert done.exit_code == 2
    assert "n has several numbers, and a run has one size" in done.output


def test_a_run_says_the_sizes_that_it_takes(invoke: Invoke, model: Path) -> None:
    done = invoke("run", model, "--sizes", "n=1..16", "--input", "random")
    assert "sizes of random inputs: n=1; --at names others" in done.output
    assert "float32(1, " in done.output
    named = invoke("run", model, "--sizes", "n=1..16", "--input", "random", "--at", "n=3")
    assert "sizes of random inputs" not in named.output
    assert "float32(3, " in named.output


def test_an_optimized_model_has_a_line_for_each_size(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    how = ("--sizes", "n=1..16", "--threads", 1, "--trials", 1, "--no-rewrite")
    done = invoke("optimize", model, "-o", tmp_path / "open.tw", *how)
    assert done.exit_code == 0, done.output
    assert "open, the whole network, measured in turns:" in done.output


def test_the_report_has_a_line_for_each_size(invoke: Invoke, model: Path) -> None:
    how = ("--sizes", "n=1..16", "--threads", 1)
    done = invoke("tune", model, *how, "--at", "n=1,16", "--trials", 4)
    assert done.exit_code == 0, done.output
    table = done.output[done.output.index("the whole network") :]
    rows = {line.split()[0] for line in table.splitlines()}
    assert {"size", "n=1", "n=16", "n=4"} <= rows
    shown = invoke("inspect", model, *how, "--what", "schedule")
    assert shown.exit_code == 0, shown.output
    assert "--- schedule: " in shown.output
