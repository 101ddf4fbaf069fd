"""Normalisations, the softmax family and attention against PyTorch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as nn
from tests.unit.ops.apply import apply, check, floats, ints, meaning, type_of

from tensorwright.ops import operator

T = torch.from_numpy


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 3, 4)])
def test_batch_norm(shape: tuple[int, ...]) -> None:
    x, scale, bias, mean, var = floats(*shape), *(floats(3) for _ in range(3)), floats(3, low=0.5)
    expected = nn.batch_norm(T(x), T(mean), T(var), T(scale), T(bias), eps=1e-3)
    check("batch_norm", expected, x, scale, bias, mean, var, epsilon=1e-3)


@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 6, 4, 5), (1, 6, 2, 3, 4)])
def test_norms_per_channel(shape: tuple[int, ...]) -> None:
    x, scale, bias = floats(*shape), floats(6), floats(6)
    expected = nn.instance_norm(T(x), weight=T(scale), bias=T(bias))
    check("instance_norm", expected, x, scale, bias, tolerance=1e-4)
    expected = nn.group_norm(T(x), 3, T(scale), T(bias))
    check("group_norm", expected, x, scale, bias, groups=3, tolerance=1e-4)


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_norms_over_the_last_dimensions(axis: int) -> None:
    x = floats(3, 4, 5)
    inner = x.shape[axis:] if axis >= 0 else x.shape[-1:]
    scale, bias = floats(*inner), floats(*inner)
    expected = nn.layer_norm(T(x), inner, T(scale), T(bias))
    check("layer_norm", expected, x, scale, bias, axis=axis, tolerance=1e-4)
    check("layer_norm", nn.layer_norm(T(x), inner, T(scale)), x, scale, axis=axis, tolerance=1e-4)
    expected = nn.rms_norm(T(x), inner, T(scale), eps=1e-5)
    check("rms_norm", expected, x, scale, axis=axis)


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_lrn(size: int) -> None:
    x = floats(2, 7, 3, 4)
    square = np.pad(x * x, ((0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)))
    total = sum(square[:, k : k + 7] for k in range(size))
    expected = x / (1.5 + 0.01 / size * total) ** 0.6
    check("lrn", expected, x, size=size, alpha=0.01, beta=0.6, bias=1.5)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p: int, axis: int) -> None:
    x = floats(3, 4)
    check("lp_normalization", nn.normalize(T(x), p, axis), x, p=p, axis=axis)
    check("lp_normalization", np.zeros((3, 4)), np.zeros((3, 4)), p=p, axis=axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_family(axis: int) -> None:
    x = floats(3, 4, 5, low=-5, high=5)
    check("softmax", torch.softmax(T(x), axis), x, axis=axis)
    check("log_softmax", torch.log_softmax(T(x), axis), x, axis=axis)
    tied = ints(3, 4, 5, low=0, high=2).astype(np.float32)
    first = np.argmax(tied, axis=axis, keepdims=True)
    expected = np.zeros_like(tied)
    np.put_along_axis(expected, first, 1, axis)
    check("hardmax", expected, tied, axis=axis)


def test_softmax_of_large_numbers() -> None:
    (result,) = apply("softmax", np.array([1e4, 1e4, -1e4], np.float32))
    assert result.tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("extra", "attributes"),
    [
        ({}, {}),
        ({"is_causal": True}, {"causal": True}),
        ({"scale": 0.3}, {"scale": 0.3}),
    ],
)
def test_attention(extra: dict[str, Any], attributes: dict[str, Any]) -> None:
    q, k, v = floats(2, 4, 5, 8), floats(2, 4, 6, 8), floats(2, 4, 6, 3)
    expected = nn.scaled_dot_product_attention(T(q), T(k), T(v), **extra)
    check("attention", expected, q, k, v, **attributes)


@pytest.mark.parametrize("shape", [(5, 6), (2, 1, 5, 6), (1, 4, 1, 6)])
def test_attention_with_masks(shape: tuple[int, ...]) -> None:
    q, k, v = floats(2, 4, 5, 8), floats(2, 4, 6, 8), floats(2, 4, 6, 3)
    mask = floats(*shape)
    expected = nn.scaled_dot_product_attention(T(q), T(k), T(v), T(mask))
    check("attention", expected, q, k, v, mask)
    allowed = mask > -1
    allowed[..., 0] = True
    expected = nn.scaled_dot_product_attention(T(q), T(k), T(v), T(allowed))
    check("attention", expected, q, k, v, allowed)


def test_attention_with_shared_heads_and_softcap() -> None:
    q, k, v = floats(2, 4, 5, 8), floats(2, 2, 6, 8), floats(2, 2, 6, 3)
    expected = nn.scaled_dot_product_attention(T(q), T(k), T(v), enable_gqa=True)
    check("attention", expected, q, k, v)
    scores = q @ np.repeat(k, 2, 1).swapaxes(2, 3) / np.sqrt(8)
    weights = torch.softmax(T((2 * np.tanh(scores / 2)).astype(np.float32)), -1)
    check("attention", weights @ T(np.repeat(v, 2, 1)), q, k, v, softcap=2.0)


def test_scores_are_capped_before_the_mask_is_added() -> None:
    """So a mask of -100 hides a position, whatever the cap is.  Source: ONNX, Attention-24."""
    q, k, v = floats(2, 4, 5, 8), floats(2, 4, 6, 8), floats(2, 4, 6, 3)
    mask = np.where(floats(5, 6) > 0, 0, -100).astype(np.float32)
    mask[:, 0] = 0
    capped = 2 * np.tanh(q @ k.swapaxes(2, 3) / np.sqrt(8) / 2)
    weights = torch.softmax(T((capped + mask).astype(np.float32)), -1)
    check("attention", weights @ T(v), q, k, v, mask, softcap=2.0)


def test_rows_of_intermediates_stand_in_stages_of_their_own() -> None:
    x = floats(4, 8)
    _, (result,) = meaning("softmax", type_of(x))
    assert str(result) == (
        "softmax[i, j] = softmax_exp[i, j] * (1.0 / softmax_sum[i, 0])    for i in 0..4, j in 0..8"
    )
    assert operator("softmax").doc == "exp(x) divided by its sum along the axis"


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_in_single_precision(dtype: Any) -> None:
    x = (floats(4, 3000, low=0.5, high=1.5) * 100).astype(dtype)
    wide = x.astype(np.float32)
    check("reduce_mean", wide.mean(1, keepdims=True).astype(dtype), x, axes=(1,), tolerance=1e-2)
    probabilities = torch.softmax(T(wide), -1).numpy().astype(dtype)
    check("softmax", probabilities, x, tolerance=1e-2)
    a, b = floats(3, 64).astype(dtype), floats(64, 5).astype(dtype)
    product = (a.astype(np.float32) @ b.astype(np.float32)).astype(dtype)
    check("matmul", product, a, b, tolerance=1e-2)
    check("argmax", x.argmax(1), x, axis=1, keepdims=False)
    small = floats(4, 30).astype(dtype)
    expected = nn.gelu(T(small.astype(np.float32))).numpy().astype(dtype)
    check("gelu", expected, small, tolerance=1e-2)
