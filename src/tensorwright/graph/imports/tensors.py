"""ONNX tensors as arrays: every encoding, external data with its dangers refused, sparse tensors
made dense.
"""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from tensorwright.base import DType
from tensorwright.graph.imports.reading import NO_WEIGHTS, Undecoded
from tensorwright.graph.imports.refusals import model_error, unsupported
from tensorwright.ops import Array

DTYPES: dict[int, DType] = {helper.np_dtype_to_tensor_dtype(each.numpy): each for each in DType}
NIBBLES: dict[int, DType] = {TensorProto.INT4: DType.I8, TensorProto.UINT4: DType.U8}
"""Types of constants, two elements in a byte, and those that their elements become."""


def onnx_type_name(data_type: int) -> str:
    """The name of an element type, as FLOAT8E4M3FN; the number where onnx has none."""
    names: dict[int, str] = {number: name for name, number in TensorProto.DataType.items()}
    return names.get(data_type, str(data_type))


def dtype_of(data_type: int, where: str, operator: str = "tensor") -> DType:
    """Our element type for ONNX's number."""
    dtype = DTYPES.get(data_type)
    if dtype is None:
        reason = f"elements of type {onnx_type_name(data_type)} are not supported"
        remedy = f"use one of {', '.join(map(str, DTYPES.values()))}"
        raise unsupported(where, operator, reason, remedy)
    return dtype


def _external_file(location: str, folder: Path | None, where: str) -> Path:
    """The file with external data: inside the model's folder whatever the model says.

    Refused: absolute paths (of any system), `..`, symbolic links that lead out of the folder, what
             is not a plain file.
    """
    if folder is None:
        raise model_error(
            where,
            "its data lies in another file, and a model in memory has no folder",
            "give the path of the model",
        )
    windows, posix = PureWindowsPath(location), PurePosixPath(location)
    if not location or "\0" in location:
        raise model_error(where, "its external data has no location")
    if posix.is_absolute() or windows.is_absolute() or windows.drive or windows.root:
        raise model_error(where, f"its external data {location!r} is an absolute path")
    if ".." in posix.parts or ".." in windows.parts:
        raise model_error(where, f"its external data {location!r} leads out of the model's folder")
    real_folder = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(real_folder / location))
    if not path.is_relative_to(real_folder):
        raise model_error(where, f"its external data {location!r} leads out of the model's folder")
    if not path.is_file():
        raise model_error(
            where, f"its external data {location!r} is not a file", "copy it next to the model"
        )
    return path


def _external_array(tensor: TensorProto, dtype: DType, folder: Path | None, where: str) -> Array:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _external_file(entries.get("location", ""), folder, where)
    shape = tuple(tensor.dims)
    needed = math.prod(shape) * dtype.size_bytes
    if tensor.data_type in NIBBLES:
        needed = -(-needed // 2)
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries.get("length", str(needed)))
    except ValueError:
        raise model_error(where, "offset or length of its external data is not a number") from None
    size = path.stat().st_size
    if length != needed:
        raise model_error(where, f"it needs {needed} bytes, its external data says {length}")
    if offset < 0 or offset + needed > size:
        reason = f"bytes {offset} to {offset + needed} are not in {path.name}, which has {size}"
        raise model_error(where, reason, "copy the whole file next to the model")
    count = math.prod(shape)
    if tensor.data_type in NIBBLES:
        packed = np.fromfile(path, np.uint8, needed, offset=offset)
        low, high = packed << 4, packed & 0xF0
        elements = np.stack([low, high], axis=1).reshape(-1)[:count].view(dtype.numpy)
        return (elements >> 4).reshape(shape)
    flat = np.fromfile(path, dtype.numpy.newbyteorder("<"), count, offset=offset)
    return flat.astype(dtype.numpy, copy=False).reshape(shape)


def to_array(
    tensor: TensorProto, folder: Path | None, where: str, weights: Undecoded = NO_WEIGHTS
) -> Array:
    """The array that a tensor holds.

    weights   those that were not decoded, where it may be one of them
    Raises:  UnsupportedError for its element type, ModelError for data that does not fit its shape.
    """
    dtype = NIBBLES.get(tensor.data_type) or dtype_of(tensor.data_type, where)
    if any(extent < 0 for extent in tensor.dims):
        raise model_error(where, f"its shape {tuple(tensor.dims)} has a negative extent")
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external_array(tensor, dtype, folder, where)
    undecoded = None if tensor.data_type in NIBBLES else weights.array(tensor, dtype)
    if undecoded is not None:
        return undecoded
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise model_error(
            where, f"its data does not fit its shape {tuple(tensor.dims)}: {error}"
        ) from None
    if array.shape != tuple(tensor.dims):
        raise model_error(where, f"its data does not fit its shape {tuple(tensor.dims)}")
    return array.astype(dtype.numpy, copy=False)


def dense(sparse: SparseTensorProto, folder: Path | None, where: str) -> Array:
    """A sparse tensor with its zeros written out; indices are linear, or one row of coordinates per
    value.

    Raises:  ModelError if an index lies outside the shape.
    """
    shape = tuple(sparse.dims)
    values = to_array(sparse.values, folder, where)
    indices = to_array(sparse.indices, folder, where).astype(np.int64)
    if indices.ndim == 2 and indices.shape[1] == len(shape):
        inside = bool(np.all((indices >= 0) & (indices < np.array(shape, np.int64))))
        linear = np.ravel_multi_index(tuple(indices.T), shape) if inside else None
    elif indices.ndim == 1:
        inside = bool(np.all((indices >= 0) & (indices < math.prod(shape))))
        linear = indices if inside else None
    else:
        linear = None
    if linear is None or linear.shape != values.shape:
        raise model_error(
            where, f"its indices do not fit its shape {shape} and {values.size} values"
        )
    result = np.zeros(math.prod(shape), values.dtype)
    result[linear] = values
    return result.reshape(shape)
