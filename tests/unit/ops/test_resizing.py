"""Resizing against PyTorch, and against ONNX's reference where PyTorch has no such coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
import torch
import torch.nn.functional as nn
from onnx import helper
from tests.unit.ops.apply import apply, check, floats

SHAPES = [((1, 2, 4, 5), (1, 2, 8, 10)), ((1, 2, 7, 6), (1, 2, 3, 4)), ((1, 1, 3, 3), (1, 1, 5, 8))]


@pytest.mark.parametrize(("before", "after"), SHAPES)
@pytest.mark.parametrize(("mode", "known"), [("linear", "bilinear"), ("cubic", "bicubic")])
@pytest.mark.parametrize("aligned", [True, False])
def test_interpolation(
    mode: str, known: str, aligned: bool, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    x = floats(*before)
    expected = nn.interpolate(torch.from_numpy(x), after[2:], mode=known, align_corners=aligned)
    coordinates = "align_corners" if aligned else "pytorch_half_pixel"
    check("resize", expected, x, sizes=after, mode=mode, coordinates=coordinates, tolerance=1e-4)


@pytest.mark.parametrize(("before", "after"), SHAPES)
def test_nearest(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    x = floats(*before)
    expected = nn.interpolate(torch.from_numpy(x), after[2:], mode="nearest")
    check("resize", expected, x, sizes=after, coordinates="asymmetric", nearest_mode="floor")
    expected = nn.interpolate(torch.from_numpy(x), after[2:], mode="nearest-exact")
    check("resize", expected, x, sizes=after, nearest_mode="round_prefer_ceil")


def reference(x: np.ndarray[Any, Any], sizes: tuple[int, ...], attributes: Any) -> Any:
    """The resize of onnx.reference."""
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **attributes)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "g",
        [value("x", 1, x.shape), value("sizes", 7, (len(sizes),))],
        [value("y", 1, sizes)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    session = onnx.reference.ReferenceEvaluator(model)
    return session.run(None, {"x": x, "sizes": np.array(sizes, np.int64)})[0]


@pytest.mark.parametrize(("before", "after"), SHAPES)
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric"]
)
@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "nearest", "nearest_mode": "round_prefer_floor"},
        {"mode": "nearest", "nearest_mode": "ceil"},
        {"mode": "linear"},
        {"mode": "cubic", "exclude_outside": 1},
        {"mode": "cubic", "cubic_coeff_a": -0.5},
    ],
)
def test_coordinates(
    coordinates: str, attributes: dict[str, Any], before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    x = floats(*before)
    expected = reference(x, after, {**attributes, "coordinate_transformation_mode": coordinates})
    ours = {key: value for key, value in attributes.items() if key != "cubic_coeff_a"}
    ours["cubic_a"] = attributes.get("cubic_coeff_a", -0.75)
    check("resize", expected, x, sizes=after, coordinates=coordinates, tolerance=1e-4, **ours)


def test_scales_that_are_no_ratio_of_sizes() -> None:
    x = floats(1, 1, 5)
    scale = float(np.float32(0.6))
    expected = nn.interpolate(torch.from_numpy(x), scale_factor=scale, mode="linear")
    attributes = {"sizes": (1, 1, 3), "scales": (1.0, 1.0, scale), "mode": "linear"}
    check("resize", expected, x, tolerance=1e-4, **attributes)
    large = float(np.float32(1.3))
    wide = nn.interpolate(
        torch.from_numpy(x), scale_factor=large, mode="linear", recompute_scale_factor=False
    )
    attributes = {"sizes": (1, 1, 6), "scales": (1.0, 1.0, large), "mode": "linear"}
    check("resize", wide, x, tolerance=1e-4, **attributes)


def test_nothing_to_resize() -> None:
    x = floats(2, 3)
    check("resize", x, x, sizes=(2, 3))
    (result,) = apply("resize", floats(1, 4), sizes=(1, 1), coordinates="pytorch_half_pixel")
    assert result.shape == (1, 1)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [True, False])
def test_grid_sample(mode: str, padding: Any, aligned: bool) -> None:
    x, grid = floats(2, 3, 5, 6), floats(2, 4, 3, 2, low=-1.6, high=1.6)
    known: Any = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}[mode]
    expected = nn.grid_sample(torch.from_numpy(x), torch.from_numpy(grid), known, padding, aligned)
    attributes = {"mode": mode, "padding": padding, "align_corners": aligned}
    check("grid_sample", expected, x, grid, tolerance=1e-4, **attributes)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_grid_sample_of_volumes(mode: str) -> None:
    x, grid = floats(1, 2, 3, 4, 5), floats(1, 2, 3, 2, 3, low=-1.6, high=1.6)
    known: Any = "bilinear" if mode == "linear" else mode
    expected = nn.grid_sample(
        torch.from_numpy(x), torch.from_numpy(grid), known, align_corners=False
    )
    check("grid_sample", expected, x, grid, mode=mode, tolerance=1e-4)
