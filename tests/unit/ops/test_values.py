"""What operators compute: one table of applications and of right values by NumPy and PyTorch.

    softmax(f32(3, 4, 5, low=-5, high=5), axis={axis}) = torch.softmax(A, {axis})
        for axis in (0, 1, -1)

Inputs are drawn, or are arrays; a, b, c are their names in the right value, and A, B, C those of
the same tensors of PyTorch; S is A in single precision.  Integers are equal; numbers differ by 1e-5
at most, by 1e-4 behind `~` and by 1e-2 behind `~~`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx.reference
import pytest
import torch
import torch.nn.functional as nn
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from tests.tables import rows_of
from tests.unit.graph.onnx.onnx_models import by_onnxruntime
from tests.unit.ops import value_table
from tests.unit.ops.apply import apply, check, floats, meaning, type_of

from tensorwright.base import DType
from tensorwright.graph import GraphBuilder, interpret
from tensorwright.graph.imports import load_onnx
from tensorwright.graph.onnx_export import to_onnx
from tensorwright.ops import automatic_pads, work

Array = np.ndarray[Any, Any]
# Right values that are neither of NumPy nor of PyTorch


def blocks(x: Array) -> Array:
    """Depth to space, the blocks first."""
    return x.reshape(2, 2, 2, 3, 3, 4).transpose(0, 3, 4, 1, 5, 2).reshape(2, 3, 6, 8)


def hot(indices: Array, values: Array, axis: int) -> Array:
    wrapped = np.where(indices < 0, indices + 4, indices)
    found = np.moveaxis(wrapped[..., None] == np.arange(4), -1, axis)
    return np.where(found, values[1], values[0])


def reversed_(x: Array, lengths: Array) -> Array:
    result = x.copy()
    for example, length in zip(result, lengths, strict=True):
        example[:length] = example[:length][::-1].copy()
    return result


def top(x: Array, k: int, *, largest: bool) -> tuple[Array, Array]:
    order = np.argsort(-x if largest else x, axis=-1, kind="stable")[:, :k]
    return np.take_along_axis(x, order, -1), order


def scattered(x: Array, indices: Array, updates: Array, fold: Callable[..., Any]) -> Array:
    result = x.copy()
    for position, update in zip(indices, updates, strict=True):
        result[tuple(position)] = fold(result[tuple(position)], update)
    return result


def fold(x: Array, function: Callable[..., Any], axes: tuple[int, ...], keepdims: object) -> Any:
    return function(x, axis=axes or None, keepdims=keepdims)


def backwards(function: Callable[..., Array], x: Array, axis: int) -> Array:
    return np.flip(function(np.flip(x, axis), axis), axis)


def integer_conv(x: Array, w: Array, x_zero: Any = 0, w_zero: Any = 0) -> torch.Tensor:
    left, right = (torch.from_numpy(wide(x) - x_zero), torch.from_numpy(wide(w) - w_zero))
    return nn.conv2d(left, right, padding=1).to(torch.int32)


def averages(x: Array, stride: int, dilation: int, pads: tuple[int, int], *, counts: bool) -> Any:
    """Means over windows of three, counted by hand."""
    results = []
    for start in range(-pads[0], 9 + pads[1] - 2 * dilation, stride):
        inside = [x[0, 0, at] for k in range(3) if 0 <= (at := start + k * dilation) < 9]
        results.append(sum(inside) / (3 if counts else len(inside)))
    return np.float32(results).reshape(1, 1, -1)


def neighbours(x: Array, size: int) -> Array:
    """Sums over channels beside each other."""
    padded = np.pad(x, ((0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)))
    return sum(padded[:, k : k + x.shape[1]] for k in range(size))


def first(x: Array, axis: int) -> Array:
    """1 where the first of the largest is."""
    expected = np.zeros_like(x)
    np.put_along_axis(expected, np.argmax(x, axis=axis, keepdims=True), 1, axis)
    return expected


def codes(x: Array, scale: Array, zero: Array) -> Array:
    limits = np.iinfo(zero.dtype)
    rounded = np.rint(x / scale) + single(zero)
    return np.clip(rounded, limits.min, limits.max).astype(zero.dtype)


def resized(x: Array, sizes: tuple[int, ...], coordinates: str, cubic_a: float = -0.75, **how: Any):
    """The resize of onnx.reference."""
    how |= {"coordinate_transformation_mode": coordinates, "cubic_coeff_a": cubic_a}
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **how)
    value = helper.make_tensor_value_info
    inputs = [value("x", 1, x.shape), value("sizes", 7, (len(sizes),))]
    graph = helper.make_graph([node], "g", inputs, [value("y", 1, sizes)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    session = onnx.reference.ReferenceEvaluator(model)
    return session.run(None, {"x": x, "sizes": np.array(sizes, np.int64)})[0]


# How a row is read


RANDOM = np.random.default_rng(7)


def drawn(dtype: DType, *shape: int, low: float | None = None, high: float | None = None) -> Array:
    """Numbers from -2 to 2, integers from -9 to 8, or from others to others."""
    if dtype is DType.BOOL:
        return RANDOM.integers(0, 2, shape).astype(bool)
    if dtype.is_float:
        least, most = -2.0 if low is None else low, 2.0 if high is None else high
        return RANDOM.uniform(least, most, shape).astype(dtype.numpy)
    least, most = -9 if low is None else low, 9 if high is None else high
    return RANDOM.integers(least if dtype.is_signed else max(0, least), most, shape).astype(
        dtype.numpy
    )


def positions(*shape: int, within: tuple[int, ...]) -> Array:
    """Positions along the first dimensions of a tensor, from the end, too."""
    return np.stack([RANDOM.integers(-each, each, shape) for each in within], -1)


def allowed(*shape: int) -> Array:
    """A mask that leaves the first key to all."""
    mask = RANDOM.random(shape) > 0.25
    mask[..., 0] = True
    return mask


def hiding(*shape: int) -> Array:
    """A number for each score, which hides a part of the keys."""
    return np.where(allowed(*shape), 0, -100).astype(np.float32)


def wide(x: Array) -> Array:
    return x.astype(np.int32)


def single(x: Array) -> Array:
    return x.astype(np.float32)


WORDS: dict[str, Any] = {
    **globals(),
    **{dtype.value: partial(drawn, dtype) for dtype in DType},
    "nan": np.nan,
    "inf": np.inf,
    "at": np.array,
    "attended": nn.scaled_dot_product_attention,
    "narrow": lambda number: float(np.float32(number)),
    "_of": lambda *x, **given: (x, given),
}
ROWS: dict[str, list[str]] = {}
for _row in rows_of(value_table.TABLE, vars(value_table)):
    ROWS.setdefault(_row.split("(")[0], []).append(_row)
TOLERANCES = {"=": 1e-5, "~": 1e-4, "~~": 1e-2}


def read(row: str) -> tuple[list[Array], dict[str, Any], Any, float]:
    """The inputs and attributes, the right value, and how far others may be."""
    RANDOM.bit_generator.state = np.random.PCG64(zlib.crc32(row.encode())).state
    application, kind, value = re.split(r" (=|~~?) ", row, maxsplit=1)
    given, attributes = eval(f"_of({application.split('(', 1)[1]}", WORDS)
    arrays = [np.asarray(each) for each in given]
    names: dict[str, Any] = {"x": arrays, **dict(zip("abcde", arrays, strict=False))}
    tensors = [torch.from_numpy(single(a) if a.dtype.kind == "V" else a) for a in arrays]
    names |= zip("ABCDE", tensors, strict=False)
    names |= {"X": tensors, "S": torch.from_numpy(single(arrays[0])) if arrays else None}
    return arrays, attributes, eval(value, {**WORDS, **names}), TOLERANCES[kind]


def fault(results: Sequence[Array], expected: Any, tolerance: float) -> str:
    """What differs, in words; "" for nothing."""
    if len(results) == 1:
        expected = [expected]
    for found, value in zip(results, expected, strict=True):
        wanted = value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
        if found.shape != wanted.shape:
            return f"shape {found.shape}, not {wanted.shape}"
        least = 0.0 if found.dtype.kind in "biu" else tolerance
        numbers = (each.astype(np.float64) for each in (found, wanted))
        if not np.allclose(*numbers, rtol=least, atol=least, equal_nan=True):
            return f"{found}, not {wanted}"
    return ""


@pytest.mark.parametrize("name", ROWS)
def test_values(name: str) -> None:
    faults = {}
    for row in ROWS[name]:
        arrays, attributes, expected, tolerance = read(row)
        if wrong := fault(apply(name, *arrays, **attributes), expected, tolerance):
            faults[row] = wrong
    assert faults == {}


NOT_IN_ONNX = {"atan2"}
NO_KERNEL = {
    "add": 1,
    "argmax": 1,
    "gelu": 1,
    "matmul": 1,
    "reduce_mean": 1,
    "softmax": 1,  # of bf16
    "attention": 2,
    "average_pool": 4,
    "conv_integer": 1,
    "gather": 1,
    "lrn": 1,
    "matmul_integer": 1,
    "one_hot": 3,
    "pad": 1,
}
"""How many rows ONNX Runtime refuses to compute."""


@pytest.mark.parametrize("name", sorted(ROWS.keys() - NOT_IN_ONNX))
def test_written_as_onnx_they_are_the_same(name: str) -> None:
    """Read again, and in ONNX Runtime."""
    faults, refused = {}, 0
    for row in ROWS[name]:
        arrays, attributes, expected, tolerance = read(row)
        b = GraphBuilder("one")
        given = {b.input(f"x{n}", *extents_of(a)): a for n, a in enumerate(arrays)}
        if "...ij,...jk" in row:
            continue  # the onnx package infers no shape where it broadcasts
        model = to_onnx(b.finish(b.apply(name, tuple(given), **attributes)))
        back = list(interpret(load_onnx(model), given).values())
        if wrong := fault(back, expected, tolerance):
            faults[row] = wrong
        try:
            others = by_onnxruntime(model, given)
        except Exception:  # noqa: BLE001 - its errors have no common base
            refused += 1
            continue
        if wrong := fault(others, expected, max(tolerance, 1e-4)):
            faults[f"{row} by ONNX Runtime"] = wrong
    assert faults == {}
    assert refused == NO_KERNEL.get(name, 0)


def extents_of(array: Array) -> tuple[tuple[int, ...], DType]:
    return array.shape, DType.from_numpy(array.dtype)


# What is no row


@settings(max_examples=30)
@given(st.permutations([2, 2, 3, 1, 5]), st.permutations([4, 3, 5, 1]), st.booleans())
def test_every_reshape(before: list[int], after: list[int], turned: bool) -> None:
    x = floats(*(after if turned else before))
    shape = tuple(before if turned else after)
    check("reshape", x.reshape(shape), x, shape=shape)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint64])
def test_means_and_norms_of_integers_lose_their_fraction(dtype: Any) -> None:
    n = (np.arange(600).reshape(2, 300) % 2 == 0).astype(dtype)  # more than a byte counts
    n[0] *= dtype(0 if np.iinfo(dtype).min == 0 else -1)
    wrapped = n.sum(axis=1, dtype=dtype).astype(np.float64)
    check("reduce_mean", np.trunc(wrapped / 300).astype(dtype), n, axes=(1,), keepdims=False)
    few = n[:, :20]
    expected = np.trunc(np.sqrt((few * few).sum(axis=1))).astype(dtype)
    check("reduce_l2", expected, few, axes=(1,), keepdims=False)


def test_errors_of_rounding_grow_slowly() -> None:
    x = floats(1 << 14, low=0.0, high=1.0)
    check("cumsum", np.cumsum(x.astype(np.float64)).astype(np.float32), x, tolerance=1e-6)


def test_work_of_a_running_fold_grows_with_the_extent_and_not_with_its_square() -> None:
    _, computes = meaning("cumsum", type_of(floats(4096)), axis=0)
    assert work(computes) < 2 * 20 * 4096


def test_reshape_leaves_dimensions_that_stay_alone() -> None:
    _, (result,) = meaning("reshape", type_of(floats(8, 12, 64)), shape=(8, 12, 4, 16))
    assert str(result.body) == "x0[n, c, h*16 + w]"
    _, (result,) = meaning("reshape", type_of(floats(8, 12, 64)), shape=(96, 64))
    assert str(result.body) == "x0[i//12, i%12, j]"


def test_rows_of_intermediates_stand_in_stages_of_their_own() -> None:
    _, (result,) = meaning("softmax", type_of(floats(4, 8)))
    assert str(result) == (
        "softmax[i, j] = softmax_exp[i, j] * (1.0 / softmax_sum[i, 0])    for i in 0..4, j in 0..8"
    )


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("extent", [7, 8])
@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(3, 2, 1), (2, 1, 2), (1, 2, 1)])
def test_automatic_pads(mode: str, extent: int, kernel: int, stride: int, dilation: int) -> None:
    begin, end = automatic_pads(mode, (extent,), (kernel,), (stride,), (dilation,))
    window = {"kernel": (kernel,), "strides": (stride,), "dilations": (dilation,)}
    (result,) = apply("max_pool", floats(1, 1, extent), pads=(begin, end), **window)
    if mode == "VALID":
        assert (begin, end) == (0, 0)
    else:
        assert result.shape[2] == -(-extent // stride)
        assert 0 <= (end - begin if mode == "SAME_UPPER" else begin - end) <= 1
