"""Every encoding of tensors, and the dangers of external data."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import SparseTensorProto, TensorProto, external_data_helper, helper, numpy_helper
from tests.unit.graph.onnx.onnx_models import model_of

from tensorwright.base import DType, ModelError, UnsupportedError
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.imports.refusals import INVALID
from tensorwright.graph.imports.tensors import to_array

VALUES = (0, 1, 2, 3, 5, 7)
TYPES = [
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.UINT16,
    TensorProto.UINT32,
    TensorProto.UINT64,
    TensorProto.BOOL,
]


def constant_model(tensor: TensorProto) -> onnx.ModelProto:
    node = helper.make_node("Identity", ["w"], ["y"])
    model = model_of([node], {}, ["y"])
    model.graph.initializer.append(tensor)
    return model


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("raw", [False, True])
def test_encodings(data_type: int, raw: bool) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    expected = np.array(VALUES).astype(dtype).reshape(2, 3)
    values = expected.tobytes() if raw else expected.reshape(-1).tolist()
    tensor = helper.make_tensor("w", data_type, (2, 3), values, raw=raw)
    graph = load_onnx(constant_model(tensor))
    assert graph.outputs == ("y",)
    found = graph.constants["y"]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("data_type", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("is_external", [False, True])
def test_codes_of_four_bits(data_type: int, is_external: bool, tmp_path: Path) -> None:
    is_signed = data_type == TensorProto.INT4
    values = [-8, -1, 7, 3, 0] if is_signed else [15, 0, 7, 8, 1]
    tensor = helper.make_tensor("w", data_type, (5,), values)
    if is_external:
        tensor.raw_data = packed(values).tobytes()
        (tmp_path / "w").write_bytes(tensor.raw_data)
        tensor.ClearField("int32_data")
        external_data_helper.set_external_data(tensor, "w")
        tensor.ClearField("raw_data")
    found = to_array(tensor, tmp_path, "w")
    assert found.dtype == (np.int8 if is_signed else np.uint8)
    assert found.tolist() == values


def packed(values: list[int]) -> NDArray[np.uint8]:
    codes = np.array([*values, 0], np.int32) & 15
    return np.asarray(codes[::2] | codes[1::2] << 4, np.uint8)


def test_types_below_eight_bits() -> None:
    tensor = helper.make_tensor("w", TensorProto.FLOAT4E2M1, (2,), [1, 2])
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(constant_model(tensor))
    assert str(caught.value).startswith(
        "operator tensor: initializer w: elements of type FLOAT4E2M1 are not supported"
    )


@pytest.mark.parametrize("coordinates", [False, True])
def test_sparse_tensors_become_dense(coordinates: bool) -> None:
    expected = np.zeros((3, 4), np.float32)
    expected[[0, 2], [1, 3]] = [5, 7]
    indices = [[0, 1], [2, 3]] if coordinates else [1, 11]
    sparse = SparseTensorProto(dims=(3, 4))
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([5, 7], np.float32), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64)))
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], {}, ["y"])
    model.graph.sparse_initializer.append(sparse)
    np.testing.assert_array_equal(load_onnx(model).constants["y"], expected)
    sparse.dims[:] = (3, 3)
    del model.graph.sparse_initializer[:]
    model.graph.sparse_initializer.append(sparse)
    with pytest.raises(ModelError) as caught:
        load_onnx(model)
    assert str(caught.value) == (
        "sparse initializer w: its indices do not fit its shape (3, 3) and 2 values"
        f"\n  try: {INVALID}"
    )


def external(folder: Path, location: str, **more: str) -> Path:
    """A model whose only weights, six f32, lie in another file."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(6,))
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(constant_model(tensor).SerializeToString())
    return path


def test_external_data(tmp_path: Path) -> None:
    expected = np.array(VALUES, np.float32)
    (tmp_path / "weights.bin").write_bytes(b"head" + expected.tobytes() + b"tail")
    path = external(tmp_path, "weights.bin", offset="4", length="24")
    np.testing.assert_array_equal(load_onnx(path).constants["y"], expected)
    with pytest.raises(ModelError) as caught:
        load_onnx(path.read_bytes())
    assert str(caught.value) == (
        "initializer w: its data lies in another file, and a model in memory has no folder"
        "\n  try: give the path of the model"
    )


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("/etc/passwd", "its external data '/etc/passwd' is an absolute path"),
        ("C:\\x.bin", "its external data 'C:\\\\x.bin' is an absolute path"),
        ("\\\\host\\x", "its external data '\\\\\\\\host\\\\x' is an absolute path"),
        ("../out.bin", "its external data '../out.bin' leads out of the model's folder"),
        ("a/../../out.bin", "its external data 'a/../../out.bin' leads out of the model's folder"),
        (
            "a\\..\\out.bin",
            "its external data 'a\\\\..\\\\out.bin' leads out of the model's folder",
        ),
        ("link.bin", "its external data 'link.bin' leads out of the model's folder"),
        ("folder/out.bin", "its external data 'folder/out.bin' leads out of the model's folder"),
        ("", "its external data has no location"),
        ("a\0b", "its external data has no location"),
    ],
)
def test_external_data_stays_in_the_folder(tmp_path: Path, location: str, reason: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "out.bin").write_bytes(bytes(24))
    (inside / "link.bin").symlink_to(tmp_path / "out.bin")
    (inside / "folder").symlink_to(tmp_path)
    with pytest.raises(ModelError) as caught:
        load_onnx(external(inside, location))
    assert str(caught.value) == f"initializer w: {reason}\n  try: {INVALID}"


def test_external_data_that_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"its external data .w\.bin. is not a file"):
        load_onnx(external(tmp_path, "w.bin"))
    (tmp_path / "w.bin").write_bytes(bytes(20))
    with pytest.raises(ModelError, match=r"bytes 0 to 24 are not in w\.bin, which has 20"):
        load_onnx(external(tmp_path, "w.bin"))
    with pytest.raises(ModelError, match="it needs 24 bytes, its external data says 20"):
        load_onnx(external(tmp_path, "w.bin", length="20"))
    with pytest.raises(ModelError, match="is not a number"):
        load_onnx(external(tmp_path, "w.bin", offset="x"))


def test_bf16_survives() -> None:
    array = np.array([1.5, -3.0], ml_dtypes.bfloat16)
    graph = load_onnx(constant_model(numpy_helper.from_array(array, "w")))
    assert graph.types["y"].dtype is DType.BF16
    np.testing.assert_array_equal(graph.constants["y"], array)
