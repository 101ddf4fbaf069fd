"""Rearranging, joining, cutting and reading at positions against NumPy and PyTorch."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nn
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.ops.apply import RANDOM, apply, check, floats, ints, meaning, type_of

from tensorwright.base import DType


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((2, 3, 4), (6, 4)),
        ((6, 4), (2, 3, 4)),
        ((2, 3, 4), (4, 3, 2)),
        ((2, 3, 4), (24,)),
        ((1, 5), (5, 1, 1)),
        ((), (1, 1)),
        ((1, 1), ()),
        ((2, 6, 5), (2, 3, 2, 5)),
        ((3, 4, 5), (2, 6, 5)),
        ((2, 0, 3), (0, 7)),
        ((4, 6), (6, 4)),
    ],
)
def test_reshape(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    x = floats(*before)
    check("reshape", x.reshape(after), x, shape=after)


@settings(max_examples=60)
@given(st.permutations([2, 2, 3, 1, 5]), st.permutations([4, 3, 5, 1]), st.booleans())
def test_every_reshape(before: list[int], after: list[int], turned: bool) -> None:
    x = floats(*(after if turned else before))
    shape = tuple(before if turned else after)
    assert prod(shape) == x.size
    check("reshape", x.reshape(shape), x, shape=shape)


def test_reshape_leaves_dimensions_that_stay_alone() -> None:
    _, (result,) = meaning("reshape", type_of(floats(8, 12, 64)), shape=(8, 12, 4, 16))
    assert str(result.body) == "x0[n, c, h*16 + w]"
    _, (result,) = meaning("reshape", type_of(floats(8, 12, 64)), shape=(96, 64))
    assert str(result.body) == "x0[i//12, i%12, j]"


def test_transpose() -> None:
    x = floats(2, 3, 4)
    check("transpose", x.T, x)
    check("transpose", x.transpose(1, 2, 0), x, perm=(1, 2, 0))


@pytest.mark.parametrize(
    ("before", "shape"), [((3, 1), (2, 1, 6)), ((3, 4), (1, 1)), ((), (2, 2)), ((1,), (0,))]
)
def test_expand(before: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = floats(*before)
    check("expand", x * np.ones(shape, np.float32), x, shape=shape)


def test_dimensions_of_one_come_and_go() -> None:
    x = floats(1, 3, 1, 4)
    check("squeeze", x.squeeze(), x)
    check("squeeze", x.squeeze(0), x, axes=(0,))
    check("squeeze", x.squeeze(2), x, axes=(-2,))
    check("unsqueeze", x[:, None, ..., None], x, axes=(1, -1))
    check("unsqueeze", np.float32(2).reshape(1, 1), np.array(2, np.float32), axes=(0, 1))


def test_tile() -> None:
    x = floats(2, 3)
    check("tile", np.tile(x, (3, 2)), x, repeats=(3, 2))
    check("tile", np.tile(x, (1, 0)), x, repeats=(1, 0))


def test_blocks_and_channels() -> None:
    x = floats(2, 12, 3, 4)
    check("depth_to_space", nn.pixel_shuffle(torch.from_numpy(x), 2), x, blocksize=2, mode="CRD")
    blocks = x.reshape(2, 2, 2, 3, 3, 4).transpose(0, 3, 4, 1, 5, 2).reshape(2, 3, 6, 8)
    check("depth_to_space", blocks, x, blocksize=2)
    check("space_to_depth", x, blocks, blocksize=2)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_split(axis: int) -> None:
    x = floats(4, 5, 6)
    n = x.shape[axis]
    sizes = (1, n - 3, 2)
    parts = np.split(x, [1, n - 2], axis)
    results = apply("split", x, sizes=sizes, axis=axis)
    for result, part in zip(results, parts, strict=True):
        np.testing.assert_array_equal(result, part)
    check("concat", x, *parts, axis=axis)
    empty = np.take(x, [], axis)
    check("concat", x, empty, *parts, empty, axis=axis)
    check("concat", x, x, axis=axis)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"starts": (1,), "ends": (3,)}, np.s_[1:3]),
        ({"starts": (0, 1), "ends": (9, -1), "axes": (0, 2)}, np.s_[0:9, :, 1:-1]),
        ({"starts": (-1,), "ends": (-(2**63),), "axes": (1,), "steps": (-1,)}, np.s_[:, ::-1]),
        ({"starts": (20,), "ends": (1,), "axes": (-1,), "steps": (-2,)}, np.s_[:, :, 20:1:-2]),
        ({"starts": (0,), "ends": (2**62,), "axes": (2,), "steps": (3,)}, np.s_[:, :, ::3]),
        ({"starts": (3,), "ends": (1,), "axes": (0,)}, np.s_[3:1]),
    ],
)
def test_slice(attributes: dict[str, Any], expected: Any) -> None:
    x = floats(4, 5, 6)
    check("slice", x[expected], x, **attributes)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [((1, 2), (0, 3)), ((0, 0), (0, 0)), ((5, 0), (0, 7))])
def test_pad(mode: Any, pads: tuple[tuple[int, int], ...]) -> None:
    x = floats(3, 4)
    flat = (*(before for before, _ in pads), *(after for _, after in pads))
    check("pad", np.pad(x, pads, mode=mode), x, pads=flat, mode=mode)


def test_pad_crops_and_fills() -> None:
    x, n = floats(3, 4), ints(3, dtype=np.int32)
    expected = np.pad(x[1:, :-2], ((0, 1), (2, 0)), constant_values=1.5)
    check("pad", expected, x, pads=(-1, 2, 1, -2), value=1.5)
    check("pad", x[1:], x, pads=(-1, 0, 0, 0))
    check("pad", np.pad(n, (1, 1), constant_values=7), n, pads=(1, 1), value=7)
    check("pad", [True, False], np.array([False]), pads=(1, 0), value=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather(axis: int, dtype: Any) -> None:
    x = floats(4, 5, 6)
    n = x.shape[axis]
    indices = RANDOM.integers(-n, n, (2, 3)).astype(dtype)
    check("gather", np.take(x, indices, axis), x, indices, axis=axis)
    one = np.array(1, dtype)
    check("gather", np.take(x, one, axis), x, one, axis=axis)
    some = RANDOM.integers(-n, n, (4, 5, 6)).astype(dtype)
    expected = np.take_along_axis(x, np.where(some < 0, some + n, some), axis)
    check("gather_elements", expected, x, some, axis=axis)


def test_gather_never_leaves_its_tensor() -> None:
    x = np.arange(4, dtype=np.float32)
    check("gather", [3.0, 0.0, 3.0], x, np.array([3, 4, -5]))


def test_gather_at_tuples() -> None:
    x = floats(2, 3, 4, 5)
    pairs = np.stack([ints(6, low=-2, high=2), ints(6, low=-3, high=3)], -1).reshape(2, 3, 2)
    check("gather_nd", x[pairs[..., 0], pairs[..., 1]], x, pairs)
    rows = np.stack([ints(2, 6, low=-3, high=3), ints(2, 6, low=-4, high=4)], -1)
    expected = np.stack([x[b, rows[b, :, 0], rows[b, :, 1]] for b in range(2)])
    check("gather_nd", expected, x, rows, batch_dims=1)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis: int) -> None:
    indices = np.array([[0, 3, -1], [2, -4, 9]])
    values = np.array([-1.0, 2.0], np.float32)
    wrapped = np.where(indices < 0, indices + 4, indices)
    found = np.moveaxis(wrapped[..., None] == np.arange(4), -1, axis)
    check("one_hot", np.where(found, values[1], values[0]), indices, values, depth=4, axis=axis)
    real = indices.astype(np.float32)
    check("one_hot", np.where(found, values[1], values[0]), real, values, depth=4, axis=axis)


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_diagonals(k: int) -> None:
    x = floats(2, 4, 5)
    check("trilu", np.triu(x, k), x, k=k)
    check("trilu", np.tril(x, k), x, k=k, upper=False)
    check("eye_like", np.eye(4, 5, k, np.float32), x[0], k=k)


def test_generated_tensors() -> None:
    check("full", np.full((2, 3), 1.5, np.float32), shape=(2, 3), value=1.5)
    check("full", np.array(7), shape=(), value=7, dtype=DType.I64)
    check("range", np.arange(3, -7, -2), size=5, start=3, step=-2)
    expected = np.arange(4, dtype=np.float32) * 0.5 + 1
    check("range", expected, size=4, start=1.0, step=0.5, dtype=DType.F32)


@pytest.mark.parametrize(("batch", "time"), [(1, 0), (0, 1)])
def test_reverse_sequence(batch: int, time: int) -> None:
    x, lengths = floats(4, 4, 2), np.array([1, 4, 0, 3])
    expected = x.copy()
    for b, length in enumerate(lengths):
        example = expected[:, b] if batch == 1 else expected[b]
        example[:length] = example[:length][::-1].copy()
    check("reverse_sequence", expected, x, lengths, batch_axis=batch, time_axis=time)
