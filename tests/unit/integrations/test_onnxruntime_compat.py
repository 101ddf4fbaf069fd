"""A program for ONNX Runtime runs with another import, and gives the same."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import tensorwright
from tensorwright import onnxruntime_compat

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def model() -> ModelProto:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", 4]) for n in "xyz"]
    graph = helper.make_graph(nodes, "two_outputs", infos[:1], infos[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def program(library: Any, model: str | bytes) -> list[Any]:
    """What a program for ONNX Runtime does, written once."""
    options = library.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = library.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = library.ExecutionMode.ORT_SEQUENTIAL
    session = library.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    facts = [(each.name, each.shape, each.type) for each in session.get_inputs()]
    facts += [(each.name, each.shape, each.type) for each in session.get_outputs()]
    whole = session.run(None, {session.get_inputs()[0].name: X})
    (second,) = session.run(["z"], {"x": X})
    return [facts, session.get_modelmeta().graph_name, session.get_providers(), whole, second]


@pytest.mark.parametrize("kind", ["bytes", "path", "executable", "executable's bytes"])
def test_a_program_gives_the_same(model: ModelProto, tmp_path: Path, kind: str) -> None:
    data = model.SerializeToString()
    (tmp_path / "model.onnx").write_bytes(data)
    expected = program(onnxruntime, data)
    given: Any = data if kind == "bytes" else str(tmp_path / "model.onnx")
    if kind.startswith("executable"):
        tensorwright.compile(model, threads=1).save(tmp_path / "model.tw")
        given = (
            tmp_path / "model.tw" if kind == "executable" else (tmp_path / "model.tw").read_bytes()
        )
    told = program(onnxruntime_compat, given)
    assert told[:3] == expected[:3]
    for ours, theirs in zip([*told[3], told[4]], [*expected[3], expected[4]], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_it_cannot_do_is_refused(model: ModelProto, tmp_path: Path) -> None:
    session = onnxruntime_compat.InferenceSession(model.SerializeToString())
    with pytest.raises(tensorwright.UsageError, match="output w: the model has no such output"):
        session.run(["w"], {"x": X})
    with pytest.raises(tensorwright.InputError):
        session.run(None, {"q": X})
    with pytest.raises(tensorwright.UsageError, match="runs on the processor alone"):
        onnxruntime_compat.InferenceSession(b"", providers=["CUDAExecutionProvider"])
    with pytest.raises(tensorwright.ModelError, match="there is no such file"):
        onnxruntime_compat.InferenceSession(tmp_path / "missing.onnx")
