"""What `compile`, `optimize` and `rewrite` say of an argument that is not a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorwright
from tensorwright.base import ModelError, UsageError
from tensorwright.expr import compute, placeholder
from tensorwright.graph import GraphBuilder
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import to_onnx


def small_model() -> onnx.ModelProto:
    builder = GraphBuilder("small")
    return to_onnx(builder.finish([builder.add("relu", builder.input("x", (2, 3)))]))


@pytest.mark.parametrize("form", [str, Path, Path.read_bytes, onnx.load])
def test_all_forms_of_a_model_are_one(form: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "small.onnx"
    onnx.save(small_model(), path)
    assert str(load_onnx(form(path))) == str(load_onnx(small_model()))


@pytest.mark.parametrize("call", [tensorwright.compile, tensorwright.optimize])
def test_a_module_of_pytorch_is_exported_first(call: Callable[[object], object]) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UsageError) as failure:
        call(torch.nn.Sequential(torch.nn.ReLU()))
    assert failure.value.where == "argument of type torch.nn.modules.container.Sequential"
    (line,) = [each for each in failure.value.remedy.splitlines() if "torch.export" in each]
    assert line.strip() == "tensorwright.compile(torch.export.export(module.eval(), (example,)))"


@pytest.mark.parametrize(
    ("argument", "remedy"),
    [
        (np.zeros(3), "give an ONNX file"),
        (None, "give an ONNX file"),
        (onnx.GraphProto(), "onnx.helper.make_model"),
    ],
)
def test_other_types_are_named(argument: Any, remedy: str) -> None:
    with pytest.raises(UsageError, match=r"argument of type .*: it is not a model") as failure:
        tensorwright.compile(argument)
    assert remedy in failure.value.remedy


def test_an_expression_is_tuned_and_not_optimized() -> None:
    x = placeholder("x", (4,))
    expression: Any = compute("y", (4,), lambda i: x[i])
    with pytest.raises(UsageError, match=r"tensorwright\.tune tunes a tensor expression"):
        tensorwright.optimize(expression)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"TWEXEC\r\n", "an executable of tensorwright"),
        (b"SQLite format 3\0", "a record store or another database"),
        (b"PK\x03\x04", "a zip archive, as torch.save"),
        (b"\x93NUMPY\x01\0", "an array of NumPy"),
        (b"\x1c\0\0\0TFL3", "a TFLite model"),
    ],
)
def test_a_file_of_another_kind_is_named(head: bytes, name: str) -> None:
    with pytest.raises(ModelError, match=f"model bytes: it is not an ONNX model, but {name}"):
        load_onnx(head + bytes(100))
