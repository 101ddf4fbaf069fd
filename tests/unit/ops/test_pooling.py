"""Pooling against PyTorch, and against counting by hand where it differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nn
from tests.unit.ops.apply import apply, check, floats, ints

from tensorwright.ops import automatic_pads

MAX = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
AVERAGE = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}
CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 10), {"kernel": (3,)}),
    ((1, 3, 8, 9), {"kernel": (3, 2), "strides": (2, 1), "pads": (1, 1, 1, 1)}),
    ((1, 2, 7, 7), {"kernel": (3, 3), "strides": (2, 2), "ceil_mode": True}),
    ((1, 2, 8, 8), {"kernel": (3, 3), "strides": (2, 2), "ceil_mode": True, "pads": (1,) * 4}),
    # The last window would begin right behind the input, and on its last element.
    ((1, 2, 4), {"kernel": (2,), "strides": (5,), "ceil_mode": True, "pads": (1, 1)}),
    ((1, 2, 5), {"kernel": (2,), "strides": (5,), "ceil_mode": True, "pads": (1, 1)}),
    ((1, 2, 6, 6), {"kernel": (1, 1), "strides": (2, 2)}),
    ((1, 2, 6, 7, 5), {"kernel": (2, 3, 2), "strides": (2, 2, 1)}),
]


@pytest.mark.parametrize(("shape", "attributes"), CASES)
def test_max_pool(shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    x = floats(*shape)
    rank = len(shape) - 2
    expected = MAX[rank](
        torch.from_numpy(x),
        attributes["kernel"],
        attributes.get("strides", 1),
        attributes.get("pads", (0,) * rank)[:rank],
        ceil_mode=attributes.get("ceil_mode", False),
    )
    check("max_pool", expected, x, **attributes)


def test_max_pool_dilates_and_takes_integers() -> None:
    x = floats(1, 2, 9, 9)
    expected = nn.max_pool2d(torch.from_numpy(x), 3, 2, 1, 2)
    window = {"kernel": (3, 3), "strides": (2, 2), "pads": (1,) * 4, "dilations": (2, 2)}
    check("max_pool", expected, x, **window)
    n = ints(1, 2, 9, 9, dtype=np.int8)
    wanted = nn.max_pool2d(torch.from_numpy(n.astype(np.float32)), 3, 2, 1, 2)
    check("max_pool", wanted.numpy().astype(np.int8), n, **window)


@pytest.mark.parametrize(("shape", "attributes"), CASES)
@pytest.mark.parametrize("count_include_pad", [True, False])
def test_average_pool(
    shape: tuple[int, ...], attributes: dict[str, Any], count_include_pad: bool
) -> None:
    x = floats(*shape)
    rank = len(shape) - 2
    expected = AVERAGE[rank](
        torch.from_numpy(x),
        attributes["kernel"],
        attributes.get("strides", 1),
        attributes.get("pads", (0,) * rank)[:rank],
        attributes.get("ceil_mode", False),
        count_include_pad,
    )
    check("average_pool", expected, x, count_include_pad=count_include_pad, **attributes)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(
    ("stride", "dilation", "pads"), [(1, 2, (2, 1)), (2, 3, (3, 0)), (3, 2, (1, 4))]
)
def test_average_pool_counts_by_hand(
    include: bool, stride: int, dilation: int, pads: tuple[int, int]
) -> None:
    x = floats(1, 1, 9)
    kernel = 3
    begin, end = pads
    expected = []
    for start in range(-begin, 9 + end - (kernel - 1) * dilation, stride):
        places = [start + k * dilation for k in range(kernel)]
        inside = [x[0, 0, at] for at in places if 0 <= at < 9]
        expected.append(sum(inside) / (kernel if include else len(inside)))
    check(
        "average_pool",
        np.array(expected, np.float32).reshape(1, 1, -1),
        x,
        kernel=(kernel,),
        strides=(stride,),
        dilations=(dilation,),
        pads=pads,
        count_include_pad=include,
    )


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_lp_pool(p: float) -> None:
    x = floats(1, 2, 8, 8, low=0.1)
    expected = nn.lp_pool2d(torch.from_numpy(x), p, (3, 2), (2, 2))
    check("lp_pool", expected, x, kernel=(3, 2), strides=(2, 2), p=p)
    whole = (np.abs(x) ** p).sum((2, 3), keepdims=True) ** (1 / p)
    check("global_lp_pool", whole, x, p=p)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_global_pools(shape: tuple[int, ...]) -> None:
    x = floats(*shape)
    space = tuple(range(2, len(shape)))
    check("global_max_pool", x.max(space, keepdims=True), x)
    check("global_average_pool", x.mean(space, keepdims=True), x)


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
