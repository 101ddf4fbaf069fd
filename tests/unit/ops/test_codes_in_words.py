"""Codes of few bits in words, with a scale for each block, and products with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.ops.apply import apply, check, floats, ints

from tensorwright.base import DType, ModelError, TensorType
from tensorwright.ops import infer_types, pack_codes, pack_pairs


@pytest.mark.parametrize("zeros", ["none", "codes", "numbers"])
@pytest.mark.parametrize("bits", [4, 8])
def test_codes_in_words(bits: int, zeros: str) -> None:
    half = 1 << (bits - 1)
    codes = ints(32, 5, low=-half, high=half - 1, dtype=np.int8)
    scale = floats(2, 5, low=0.3, high=1)
    more: list[Any] = []
    if zeros == "codes":
        more = [ints(2, 5, low=-half, high=half - 1, dtype=np.int8)]
    elif zeros == "numbers":
        more = [floats(2, 5)]
    shift = more[0].astype(np.float32) if more else np.zeros((2, 5), np.float32)
    expected = (codes - np.repeat(shift, 16, axis=0)) * np.repeat(scale, 16, axis=0)
    words = pack_codes(codes, bits)
    assert words.nbytes * 8 == codes.size * bits
    check("dequantize_blocks", expected.astype(np.float32), words, scale, *more, bits=bits)


@pytest.mark.parametrize("zero", [None, np.int8, np.float32])
@pytest.mark.parametrize("bits", [4, 8])
def test_products_of_rounded_rows(bits: int, zero: type[np.generic] | None) -> None:
    """Sums are exact; only what rows are rounded by is lost. A block of zeros stays 0."""
    half = 1 << (bits - 1)
    x, codes = floats(2, 3, 32), ints(32, 5, low=-half, high=half - 1, dtype=np.int8)
    x[0, 0, :16] = 0
    scale = floats(2, 5, low=0.3, high=1)
    zeros = [] if zero is None else [ints(2, 5, low=-half, high=half - 1, dtype=zero)]
    if zero is np.float32:
        zeros[0] = zeros[0] + np.float32(0.25)
    shift = np.repeat(zeros[0], 16, axis=0).astype(np.float64) if zeros else 0
    blocks = x.reshape(2, 3, 2, 16)
    step = np.maximum(np.abs(blocks).max(-1) * np.float32(1 / 32767), np.float32(1e-30))
    rounded = np.rint(blocks / step[..., None]).astype(np.int64)
    numbers = (codes - shift).reshape(2, 16, 5)
    sums = np.einsum("xybt,btn->xybn", rounded, numbers)
    expected = (sums * scale * step[..., None]).sum(2).astype(np.float32)
    halves = pack_pairs(pack_codes(codes, bits), bits)
    (found,) = apply("matmul_blocks", x, halves, scale, *zeros, bits=bits)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)
    exact = x @ ((codes - shift) * np.repeat(scale, 16, axis=0))
    np.testing.assert_allclose(found, exact, atol=32 * half * np.abs(x).max() / 32767)


@pytest.mark.parametrize(
    ("scale", "zero", "bits", "reason"),
    [
        ((3, 5), None, 4, "scales of shape (3, 5) for 32 by 5 codes"),
        ((2, 4), None, 4, "scales of shape (2, 4) for 32 by 5 codes"),
        ((2, 5), (1, 5), 4, "zero points of shape (1, 5), scales of (2, 5)"),
        ((2, 5), None, 3, "codes of 3 bits"),
    ],
)
def test_words_that_do_not_fit(
    scale: tuple[int, ...], zero: tuple[int, ...] | None, bits: int, reason: str
) -> None:
    shapes = [scale, *([] if zero is None else [zero])]
    types = [TensorType(DType.I32, (4, 5)), *(TensorType(DType.F32, each) for each in shapes)]
    with pytest.raises(ModelError) as caught:
        infer_types("dequantize_blocks", tuple(types), {"bits": bits})
    assert reason in caught.value.message()
