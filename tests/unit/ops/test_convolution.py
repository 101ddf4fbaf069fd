"""Transposed convolution against PyTorch, and what expressions of convolutions execute."""

from __future__ import annotations

from math import gcd, prod
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nn
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.ops.apply import apply, check, floats, meaning

from tensorwright.base import DType
from tensorwright.expr import Apply, Compute, Fn, topological_order
from tensorwright.ops import TensorType, work

CONV_TRANSPOSE = {1: nn.conv_transpose1d, 2: nn.conv_transpose2d, 3: nn.conv_transpose3d}


def stages(name: str, *shapes: tuple[int, ...], **attributes: Any) -> list[Compute]:
    types = [TensorType(DType.F32, shape) for shape in shapes]
    _, outputs = meaning(name, *types, **attributes)
    return [tensor for tensor in topological_order(*outputs) if isinstance(tensor, Compute)]


def test_stages_and_axes_of_conv() -> None:
    shown = stages("conv", (1, 4, 6, 6), (8, 4, 3, 3), pads=(1, 1, 1, 1))
    pad, conv = map(str, shown)
    assert pad == (
        "conv_pad[n, c, h, w] = select(1 <= h and h < 7 and 1 <= w and w < 7,"
        " x0[n, c, h - 1, w - 1], 0.0)"
        "    for n in 0..1, c in 0..4, h in 0..8, w in 0..8"
    )
    assert conv == (
        "conv[n, oc, h, w] = sum over ic in 0..4, kh in 0..3, kw in 0..3 of"
        " conv_pad[n, ic, h + kh, kw + w] * x1[oc, ic, kh, kw]"
        "    for n in 0..1, oc in 0..8, h in 0..6, w in 0..6"
    )


def test_no_reduction_over_an_axis_of_one() -> None:
    (depthwise,) = stages("conv", (1, 8, 6, 6), (8, 1, 3, 3), groups=8)
    assert [axis.name for axis in depthwise.reduce_axes] == ["kh", "kw"]
    assert "x0[n, oc," in str(depthwise)
    (pointwise,) = stages("conv", (1, 8, 6, 6), (8, 8, 1, 1))
    assert [axis.name for axis in pointwise.reduce_axes] == ["ic"]
    (grouped,) = stages("conv", (1, 8, 6, 6), (4, 4, 1, 1), groups=2)
    assert "x0[n, ic + (oc//2)*4, h, w]" in str(grouped)


def test_work_of_a_convolution_is_two_per_multiply_add() -> None:
    outputs = stages("conv", (1, 16, 14, 14), (32, 16, 3, 3), (32,), pads=(1, 1, 1, 1))[-1:]
    assert work(outputs) == 2 * 14 * 14 * 32 * 16 * 9 + 14 * 14 * 32


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 5), (3, 2, 3), {}),
    ((1, 3, 4, 4), (3, 2, 4, 4), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    ((1, 3, 5, 4), (3, 2, 3, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
    (
        (1, 3, 4, 4),
        (3, 2, 3, 3),
        {"strides": (2, 2), "pads": (1, 1, 1, 1), "output_padding": (1, 1)},
    ),
    ((1, 4, 4, 4), (4, 3, 3, 2), {"strides": (3, 1), "groups": 2}),
    ((1, 4, 4, 4), (4, 1, 3, 3), {"strides": (2, 2), "groups": 4}),
    ((1, 2, 4, 5), (2, 3, 3, 3), {"dilations": (2, 3), "strides": (3, 2)}),
    ((1, 2, 5, 5), (2, 3, 2, 2), {"strides": (3, 3)}),
    ((1, 2, 3, 3, 3), (2, 2, 3, 2, 4), {"strides": (2, 1, 2)}),
    ((1, 2, 6), (2, 2, 5), {"strides": (4,), "dilations": (6,), "pads": (3, 3)}),
]


@pytest.mark.parametrize(("shape", "kernel", "attributes"), TRANSPOSED)
def test_conv_transpose(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    x, w = floats(*shape), floats(*kernel)
    bias = floats(kernel[1] * attributes.get("groups", 1))
    rank = len(shape) - 2
    expected = CONV_TRANSPOSE[rank](
        torch.from_numpy(x),
        torch.from_numpy(w),
        torch.from_numpy(bias),
        stride=attributes.get("strides", 1),
        padding=attributes.get("pads", (0,) * rank)[:rank],
        output_padding=attributes.get("output_padding", 0),
        dilation=attributes.get("dilations", 1),
        groups=attributes.get("groups", 1),
    )
    check("conv_transpose", expected, x, w, bias, tolerance=1e-4, **attributes)


def multiplications(computes: list[Compute]) -> int:
    """How many products of loaded values the iteration boxes of all stages execute."""
    total = 0
    for stage in computes:
        if isinstance(stage.body, Apply) and stage.body.fn is Fn.MUL:
            axes = (*stage.axes, *stage.reduce_axes)
            total += prod(axis.extent for axis in axes if isinstance(axis.extent, int))
    return total


def needed_products(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> int:
    """Kernel positions that meet the grid of inputs, for every output."""
    types = [TensorType(DType.F32, shape), TensorType(DType.F32, kernel)]
    _, (result,) = meaning("conv_transpose", *types, **attributes)
    rank = len(shape) - 2
    strides = attributes.get("strides", (1,) * rank)
    dilations = attributes.get("dilations", (1,) * rank)
    pads = attributes.get("pads", (0,) * (2 * rank))
    count = shape[0] * kernel[1] * kernel[0]
    for at in range(rank):
        extent = result.shape[2 + at]
        assert isinstance(extent, int)
        count *= sum(
            (o + pads[at] - k * dilations[at]) % strides[at] == 0
            for o in range(extent)
            for k in range(kernel[2 + at])
        )
    return count


@pytest.mark.parametrize(("shape", "kernel", "attributes"), TRANSPOSED)
def test_conv_transpose_multiplies_no_inserted_zero(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    check_products(shape, kernel, attributes)


def check_products(
    shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    """No product is with an inserted zero of the input; one sum where phases were joined."""
    shown = stages("conv_transpose", shape, kernel, **attributes)
    sums = [stage for stage in shown if stage.reduce_axes]
    needed = needed_products(shape, kernel, attributes)
    outputs = prod(n for n in shown[-1].shape if isinstance(n, int))
    computed = sum(prod(n for n in stage.shape if isinstance(n, int)) for stage in sums)
    is_joined = any(stage.name == "conv_transpose_kernel" for stage in shown)
    if is_joined or (sums and computed > outputs):
        steps = zip(attributes["strides"], attributes.get("dilations", (1, 1, 1)), strict=False)
        assert len(sums) == 1 or any(gcd(*pair) > 1 for pair in steps)
        assert multiplications(shown) > needed
    else:
        assert multiplications(shown) == needed


def test_a_kernel_whose_phases_differ_is_enlarged_into_one_sum() -> None:
    pad, kernel, phases, _ = stages("conv_transpose", (1, 8, 4, 4), (8, 6, 3, 3), strides=(2, 2))
    assert (pad.name, kernel.name) == ("conv_transpose_pad", "conv_transpose_kernel")
    assert kernel.shape == (4, 4, 8, 6)
    assert [axis.extent for axis in phases.reduce_axes] == [8, 2, 2]


def test_multiplications_of_dcgan_are_a_quarter_of_those_with_zeros() -> None:
    shape, kernel = (1, 8, 8, 8), (8, 4, 4, 4)
    shown = stages("conv_transpose", shape, kernel, strides=(2, 2), pads=(1, 1, 1, 1))
    assert multiplications(shown) == 16 * 16 * 4 * 8 * 16 // 4
    assert [len(stage.reduce_axes) for stage in shown] == [0, 3, 0]
    assert [axis.name for axis in shown[1].axes] == ["n", "oc", "h", "hp", "w", "wp"]


@settings(max_examples=30)
@given(
    extent=st.integers(1, 7),
    kernel=st.integers(1, 6),
    stride=st.integers(1, 5),
    dilation=st.integers(1, 5),
    pads=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_every_transposed_convolution(
    extent: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]
) -> None:
    full = (extent - 1) * stride + (kernel - 1) * dilation + 1
    if full - sum(pads) < 1:
        return
    x, w = floats(1, 2, extent), floats(2, 3, kernel)
    spread = nn.conv_transpose1d(
        torch.from_numpy(x), torch.from_numpy(w), stride=stride, dilation=dilation
    )
    expected = spread[..., pads[0] : full - pads[1]]
    attributes = {"strides": (stride,), "dilations": (dilation,), "pads": pads}
    check("conv_transpose", expected, x, w, tolerance=1e-4, **attributes)
    check_products(x.shape, w.shape, attributes)


def test_negative_pads_enlarge_a_transposed_convolution() -> None:
    x, w = floats(1, 1, 3), floats(1, 1, 2)
    (plain,) = apply("conv_transpose", x, w)
    check("conv_transpose", np.pad(plain, ((0, 0), (0, 0), (1, 2))), x, w, pads=(-1, -2))
