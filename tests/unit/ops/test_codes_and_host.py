"""Quantization, and what runs on the host, against NumPy and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.ops.apply import apply, check, floats, ints

from tensorwright.base import DType


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16])
def test_quantize_one_scale(dtype: Any) -> None:
    x, scale, zero = floats(5, 6, low=-50, high=50), np.float32(0.25), np.array(3, dtype)
    limits = np.iinfo(dtype)
    expected = np.clip(np.rint(x / scale) + 3, limits.min, limits.max).astype(dtype)
    check("quantize_linear", expected, x, np.array(scale), zero)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_codes_with_a_scale_per_axis(axis: int) -> None:
    x = floats(3, 4, 5, low=-50, high=50)
    n = x.shape[axis]
    scale, zero = floats(n, low=0.3, high=1), ints(n, dtype=np.int8)
    stretched = [1, 1, 1]
    stretched[axis] = n
    codes = np.rint(x / scale.reshape(stretched)) + zero.reshape(stretched).astype(np.float32)
    codes = np.clip(codes, -128, 127).astype(np.int8)
    check("quantize_linear", codes, x, scale, zero, axis=axis)
    back = (codes.astype(np.float32) - zero.reshape(stretched)) * scale.reshape(stretched)
    check("dequantize_linear", back, codes, scale, zero, axis=axis)


def test_codes_without_zero_point() -> None:
    x, scale = floats(6, low=-3, high=3), np.array([0.5], np.float32)
    expected = np.clip(np.rint(x / 0.5), -128, 127).astype(np.int8)
    check("quantize_linear", expected, x, scale, dtype=DType.I8)
    n = ints(6, dtype=np.int32)
    check("dequantize_linear", n * np.float32(0.5), n, scale)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("largest", [True, False])
def test_topk(axis: int, largest: bool) -> None:
    x = floats(5, 6)
    values, indices = apply("topk", x, k=3, axis=axis, largest=largest)
    expected = torch.topk(torch.from_numpy(x), 3, axis, largest)
    np.testing.assert_array_equal(values, expected.values)
    np.testing.assert_array_equal(indices, expected.indices)


def test_tree_leaves() -> None:
    """Two trees: one asks for both features, the other one is a leaf."""
    features = np.array([1, 0, 0, 0, 0, 0], np.int32)
    limits = np.array([0.5, np.inf, np.inf, 2, np.inf, np.inf], np.float32)
    children = np.array([2, 1, 2, 4, 4, 5], np.int32)
    x = np.array([[1, 0.5], [2, 0.6], [3, 9], [np.nan, np.nan]], np.float32)
    leaves = np.array([[2, 1], [4, 1], [5, 1], [2, 1]], np.int32)
    check("tree_leaves", leaves, x, features, limits, children, np.array([0, 1], np.int32), depth=2)


def test_topk_gives_the_first_of_equals() -> None:
    x = np.array([1, 3, 3, 1, 3])
    assert apply("topk", x, k=4)[1].tolist() == [1, 2, 4, 0]
    assert apply("topk", x, k=3, largest=False)[1].tolist() == [0, 3, 1]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("reduction", "known"),
    [("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")],
)
def test_scatter_elements(axis: int, reduction: str, known: str) -> None:
    x, updates = floats(4, 5), floats(3, 5)
    indices = ints(3, 5, low=0, high=4)
    expected = torch.from_numpy(x).scatter_reduce(
        axis, torch.from_numpy(indices), torch.from_numpy(updates), known
    )
    check("scatter_elements", expected, x, indices, updates, axis=axis, reduction=reduction)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 3, 40, 50])
@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_topk_among_many_equals(kind: type, k: int, largest: bool) -> None:
    x = ints(7, 50, low=-4, high=5).astype(kind)
    order = np.argsort(-x if largest else x, axis=-1, kind="stable")[:, :k]
    values, indices = apply("topk", x, k=k, largest=largest)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


def test_topk_takes_nan_for_the_largest() -> None:
    x = np.array([1, np.nan, 3, np.nan, 2], np.float32)
    assert apply("topk", x, k=3)[1].tolist() == [1, 3, 2]
    assert apply("topk", x, k=2, largest=False)[1].tolist() == [0, 4]


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("fold", [np.add, np.multiply, np.maximum, np.minimum])
def test_scatter_folds_all_updates_of_a_place(fold: np.ufunc, count: int) -> None:
    names = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}
    x, indices = floats(3, 4, 2), ints(9, count, low=-3, high=3)
    updates = floats(9, *x.shape[count:])
    expected = x.copy()
    for place, update in zip(indices, updates, strict=True):
        expected[tuple(place)] = fold(expected[tuple(place)], update)
    check("scatter_nd", expected, x, indices, updates, reduction=names[fold.__name__])


def test_scatter_replaces() -> None:
    x, updates = floats(4, 3), floats(2, 3)
    indices = np.array([[0, 1, 2], [-1, 0, 1]])
    expected = torch.from_numpy(x).scatter(
        0, torch.from_numpy(indices % 4), torch.from_numpy(updates)
    )
    check("scatter_elements", expected, x, indices, updates)


def test_scatter_of_slices() -> None:
    x, updates = floats(4, 3), floats(2, 3)
    expected = x.copy()
    expected[[2, 0]] = updates
    check("scatter_nd", expected, x, np.array([[2], [-4]]), updates)
    twice = x.copy()
    twice[1] += updates[0] + updates[1]
    check("scatter_nd", twice, x, np.array([[1], [1]]), updates, reduction="add")


def test_bitcast() -> None:
    x = floats(2, 3)
    check("bitcast", x.view(np.int32), x, to=DType.I32)
