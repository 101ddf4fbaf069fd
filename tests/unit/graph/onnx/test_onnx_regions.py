"""Operators that read and write regions of images, as PyTorch and ONNX Runtime compute them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from onnx import ModelProto, helper, numpy_helper
from tests.unit.graph.onnx.onnx_models import by_onnxruntime

import tensorwright
from tensorwright.base import UnsupportedError, override
from tensorwright.graph import interpret, simplify, verify
from tensorwright.graph.imports import load_onnx
from tensorwright.ops import Array

pytestmark = pytest.mark.usefixtures("by_rule")

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def model_of_node(
    operator: str,
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
    outputs: int = 1,
    opset: int = 22,
    **attributes: Any,
) -> ModelProto:
    """A model of one node; its inputs have the types of the arrays."""
    names = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(operator, [*inputs, *(constants or {})], names, **attributes)
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    held = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    results = [helper.make_empty_tensor_value_info(name) for name in names]
    graph = helper.make_graph([node], "region", infos, results, held)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def values(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    return list(interpret(verify(simplify(load_onnx(model))), inputs).values())


def close(found: Array, expected: Array) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("block", "strides", "dilations", "pads"),
    [
        ((2, 3), (2, 3), (1, 1), (0, 0)),
        ((3, 3), (1, 2), (1, 1), (1, 1)),
        ((3, 2), (2, 1), (2, 3), (1, 0)),
    ],
)
@pytest.mark.parametrize("channels", [1, 5])
def test_columns_are_added_to_an_image(
    block: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int],
    channels: int,
) -> None:
    image = torch.from_numpy(normal(2, channels, 10, 12))
    how: dict[str, Any] = {"stride": strides, "dilation": dilations, "padding": pads}
    columns = torch.nn.functional.unfold(image, block, **how).numpy()
    expected = torch.nn.functional.fold(torch.from_numpy(columns), (10, 12), block, **how)
    constants = {"image": np.array([10, 12]), "block": np.array(block)}
    sides = [*pads, *pads]
    more = {"strides": strides, "dilations": dilations, "pads": sides}
    model = model_of_node("Col2Im", {"x": columns}, constants, **more)
    close(values(model, {"x": columns})[0], expected.numpy())


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": (2, 2), "strides": (2, 2)},
        {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)},
        {"kernel_shape": (2, 2), "dilations": (2, 3), "ceil_mode": 1, "strides": (2, 2)},
        {"kernel_shape": (2, 3), "storage_order": 1, "strides": (2, 2)},
    ],
)
def test_places_of_maxima(attributes: dict[str, Any]) -> None:
    x = normal(2, 3, 9, 8)
    model = model_of_node("MaxPool", {"x": x}, outputs=2, **attributes)
    for found, expected in zip(
        values(model, {"x": x}), by_onnxruntime(model, {"x": x}), strict=True
    ):
        close(found, expected)


@pytest.mark.parametrize("size", [None, (9, 9)])
def test_maxima_go_back_to_their_places(size: tuple[int, int] | None) -> None:
    image = torch.from_numpy(normal(2, 3, 8, 8))
    pooled, places = torch.nn.functional.max_pool2d(image, 2, return_indices=True)
    planes = torch.arange(6).reshape(2, 3, 1, 1) * 64
    inputs = {"x": pooled.numpy(), "i": (places + planes).numpy()}
    constants = {} if size is None else {"size": np.array([2, 3, *size])}
    model = model_of_node("MaxUnpool", inputs, constants, kernel_shape=(2, 2), strides=(2, 2))
    expected = torch.nn.functional.max_unpool2d(pooled, places, 2).numpy()
    if size is not None:
        expected = np.pad(expected, ((0, 0), (0, 0), (0, 1), (0, 1)))
    close(values(model, inputs)[0], expected)


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
def test_regions_of_several_images(mode: str) -> None:
    corners = RANDOM.uniform(-3, 40, (7, 2, 2)).astype(np.float32)
    corners.sort(axis=1)
    inputs = {
        "x": normal(3, 4, 20, 24),
        "rois": corners.reshape(7, 4),
        "images": np.array([2, 0, 1, 1, 0, 2, 2]),
    }
    how: dict[str, Any] = {"output_height": 3, "output_width": 2}
    how |= {"sampling_ratio": 2, "spatial_scale": 0.5}
    how["coordinate_transformation_mode"] = mode
    model = model_of_node("RoiAlign", inputs, opset=16, **how)
    close(values(model, inputs)[0], by_onnxruntime(model, inputs)[0])
    with pytest.raises(UnsupportedError, match="a sampling_ratio"):
        load_onnx(model_of_node("RoiAlign", inputs, output_height=2, output_width=2))


def test_a_deformed_convolution_is_one_beside_its_places() -> None:
    x, w, b = normal(2, 4, 9, 10), normal(6, 2, 3, 3), normal(6)
    how = {"strides": (2, 1), "pads": (1, 2, 1, 0), "dilations": (1, 2), "group": 2}
    plain = torch.nn.functional.conv2d(
        torch.nn.functional.pad(torch.from_numpy(x), (2, 0, 1, 1)),
        torch.from_numpy(w),
        torch.from_numpy(b),
        stride=(2, 1),
        dilation=(1, 2),
        groups=2,
    ).numpy()
    slots = plain.shape[2:]
    offsets = np.zeros((2, 2, 3, 3, 2, *slots), np.float32)
    mask = np.ones((2, 2 * 9, *slots), np.float32)
    still_offsets = offsets.reshape(2, -1, *slots).copy()
    inputs = {"x": x, "w": w, "o": still_offsets, "b": b, "m": mask}
    model = model_of_node("DeformConv", inputs, **how, offset_group=2)
    close(values(model, inputs)[0], plain)
    offsets[:, :, :, :, 1] = 1  # all of it one column further right
    moved = np.concatenate([x[..., 1:], np.zeros_like(x[..., :1])], axis=3)
    shifted = {**inputs, "x": x, "o": offsets.reshape(2, -1, *slots)}
    still = {**inputs, "x": moved}
    inner = np.s_[..., 2:]  # where no tap reads beyond the left edge
    close(values(model, shifted)[0][inner], values(model, still)[0][inner])


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_rows_of_a_cache_are_replaced(mode: str) -> None:
    cache, update = normal(2, 3, 8, 4), normal(2, 3, 2, 4)
    inputs = {"cache": cache, "update": update, "starts": np.array([1, 6 + (mode == "circular")])}
    model = model_of_node("TensorScatter", inputs, opset=24, mode=mode)
    expected = cache.copy()
    for example, start in enumerate(inputs["starts"]):
        for row in range(2):
            expected[example, :, (start + row) % 8] = update[example, :, row]
    close(values(model, inputs)[0], expected)
    first = {"cache": cache, "update": update}
    expected = np.concatenate([update, cache[:, :, 2:]], axis=2)
    close(values(model_of_node("TensorScatter", first, opset=24), first)[0], expected)


def test_places_in_conditions_lie_in_buffers_too() -> None:
    """What is read beside an image is 0, a condition on places that a kernel has computed."""
    inputs = {"x": normal(1, 2, 5, 5), "w": normal(3, 2, 2, 2), "o": 4 * normal(1, 8, 4, 4)}
    graph = simplify(load_onnx(model_of_node("DeformConv", inputs)))
    with override(verify=True, kernel_cache=False):
        executable = tensorwright.compile(graph, threads=1)
    (found,), (expected,) = executable.run(inputs).values(), interpret(graph, inputs).values()
    close(found, expected)
