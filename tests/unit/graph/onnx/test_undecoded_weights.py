"""Large initialisers are not decoded with the file, and are what they would be if they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tensorwright.base import DType, ModelError
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.reading import set_aside
from tensorwright.runtime import is_kernel_ready

WEIGHTS = np.arange(64 * 48, dtype=np.float32).reshape(64, 48)


def model(*tensors: TensorProto) -> ModelProto:
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 48]),
    ]
    nodes = [helper.make_node("MatMul", ["x", tensors[0].name], ["y"])]
    graph = helper.make_graph(nodes, "product", infos[:1], infos[1:], tensors)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def weights(name: str = "w") -> TensorProto:
    return numpy_helper.from_array(WEIGHTS, name)


def test_only_large_weights_stay_in_the_file() -> None:
    small = numpy_helper.from_array(np.ones(3, np.float32), "small")
    data = model(weights(), small).SerializeToString()
    decoded, found = set_aside(data)
    assert set(found.spans) == {"w"}
    assert len(decoded) < len(data) - WEIGHTS.nbytes + 16
    rest = ModelProto.FromString(decoded)
    (first, second) = rest.graph.initializer
    assert not first.HasField("raw_data")
    assert second == small
    array = found.array(first, DType.F32)
    assert array is not None
    np.testing.assert_array_equal(array, WEIGHTS)
    first.raw_data = WEIGHTS.tobytes()
    assert rest == ModelProto.FromString(data)


@pytest.mark.parametrize("offset", range(4))
def test_a_graph_has_the_same_constants(offset: int, tmp_path: Path) -> None:
    made = model(weights())
    made.producer_name = "p" * offset  # so that weights begin at any address
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    whole = load_onnx(made)
    for source in (path, path.read_bytes()):
        graph = load_onnx(source)
        assert str(graph) == str(whole)
        (name,) = graph.constants
        np.testing.assert_array_equal(graph.constants[name], WEIGHTS)
        assert is_kernel_ready(graph.constants[name])


def test_a_file_may_be_replaced_or_removed_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(weights()), path)
    graph = load_onnx(path)
    path.write_bytes(b"\0" * path.stat().st_size)
    (name,) = graph.constants
    np.testing.assert_array_equal(graph.constants[name], WEIGHTS)


@pytest.mark.parametrize(
    "unusual",
    [
        model(weights(), weights()),  # two of one name, which are compared
        model(helper.make_tensor("w", TensorProto.FLOAT, WEIGHTS.shape, WEIGHTS.reshape(-1))),
    ],
)
def test_what_is_unusual_is_decoded_as_a_whole(unusual: ModelProto) -> None:
    data = unusual.SerializeToString()
    decoded, found = set_aside(data)
    assert decoded == data
    assert not found.spans
    np.testing.assert_array_equal(*load_onnx(data).constants.values(), WEIGHTS)


def test_damaged_bytes_are_left_to_the_decoder() -> None:
    data = model(weights()).SerializeToString()
    for end in (1, 20, len(data) - 1):
        assert set_aside(data[:end])[0] == data[:end]
        with pytest.raises(ModelError, match=r"truncated|no ONNX model"):
            load_onnx(data[:end])
    assert set_aside(b"\xff" * 12)[0] == b"\xff" * 12


def test_weights_that_do_not_fit_their_shape_are_refused() -> None:
    tensor = weights()
    tensor.dims[0] = 65
    made = model(tensor)
    for source in (made, made.SerializeToString()):
        with pytest.raises(ModelError, match=r"initializer w: its data does not fit its shape"):
            load_onnx(source)
