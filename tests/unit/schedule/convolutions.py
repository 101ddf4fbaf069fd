"""Convolutions of 3 x 3 and 3 x 3 x 3 taps as tensor expressions, in several layouts."""

from __future__ import annotations

from typing import Any

from tensorwright.base import DType
from tensorwright.expr import (
    Compute,
    Fn,
    all_of,
    apply,
    compute,
    floor_div,
    placeholder,
    reduce_axis,
    select,
    sigmoid,
    sum_over,
)


def plain(
    size: tuple[int, int], channels: int, filters: int, pad: int, dtype: DType, batch: int = 1
) -> Compute:
    """x (n, c, h, w), w (oc, c, 3, 3)."""
    x = placeholder("x", (batch, channels, *size), dtype)
    w = placeholder("w", (filters, channels, 3, 3), dtype)
    height, width = (extent + 2 * pad for extent in size)

    def padded(n: Any, c: Any, h: Any, v: Any) -> Any:
        inside = all_of(h >= pad, h < size[0] + pad, v >= pad, v < size[1] + pad)
        return select(inside, x[n, c, h - pad, v - pad], 0.0)

    data = compute("pad", (batch, channels, height, width), padded) if pad else x
    ic, kh, kw = reduce_axis("ic", channels), reduce_axis("kh", 3), reduce_axis("kw", 3)
    return compute(
        "y",
        (batch, filters, height - 2, width - 2),
        lambda n, oc, h, v: sum_over(data[n, ic, h + kh, v + kw] * w[oc, ic, kh, kw], ic, kh, kw),
    )


def blocked(
    size: tuple[int, int], channels: int, filters: int, dtype: DType, batch: int = 1, block: int = 4
) -> Compute:
    """x (n, c/b, h, w, b), w (oc, c, 3, 3), y (n, oc/b, h, w, b), without padding."""
    x = placeholder("x", (batch, channels // block, *size, block), dtype)
    w = placeholder("w", (filters, channels, 3, 3), dtype)
    ic, kh, kw = reduce_axis("ic", channels), reduce_axis("kh", 3), reduce_axis("kw", 3)
    shape = (batch, filters // block, size[0] - 2, size[1] - 2, block)
    return compute(
        "y",
        shape,
        lambda n, oc_o, h, v, oc_i: sum_over(
            x[n, ic.var // block, h + kh, v + kw, ic.var % block]
            * w[oc_o * block + oc_i, ic, kh, kw],
            ic,
            kh,
            kw,
        ),
    )


def channels_last(
    size: tuple[int, int],
    channels: int,
    filters: int,
    dtype: DType,
    batch: int = 1,
    *,
    groups: int = 1,
    is_gated: bool = False,
) -> Compute:
    """x (n, h, w, c), w (3, 3, c / groups, oc), y (n, h, w, oc); gated: y * sigmoid(y + 1)."""
    inputs, outputs = channels // groups, filters // groups
    x = placeholder("x", (batch, *size, channels), dtype)
    w = placeholder("w", (3, 3, inputs, filters), dtype)
    ic, kh, kw = reduce_axis("ic", inputs), reduce_axis("kh", 3), reduce_axis("kw", 3)
    shape = (batch, size[0] - 2, size[1] - 2, filters)

    def of_group(oc: Any) -> Any:
        return ic if groups == 1 else ic + floor_div(oc, outputs) * inputs

    y = compute(
        "y",
        shape,
        lambda n, h, v, oc: sum_over(
            w[kh, kw, ic, oc] * x[n, h + kh, v + kw, of_group(oc)], kh, kw, ic
        ),
    )
    if not is_gated:
        return y
    return compute(
        "gated", shape, lambda n, h, v, oc: y[n, h, v, oc] * sigmoid(y[n, h, v, oc] + 1.0)
    )


def volume(
    size: tuple[int, int, int],
    channels: int,
    filters: int,
    dtype: DType,
    batch: int = 1,
    block: int = 4,
) -> Compute:
    """x (n, c/b, d, h, w, b), w (oc, c, 3, 3, 3), y (n, oc/b, d, h, w, b): padded and rectified
    before, with a residual behind.
    """
    x = placeholder("x", (batch, channels // block, *size, block), dtype)
    w = placeholder("w", (filters, channels, 3, 3, 3), dtype)
    out = (batch, filters // block, *size, block)
    residual = placeholder("residual", out, dtype)

    def rectified(n: Any, c_o: Any, d: Any, h: Any, v: Any, c_i: Any) -> Any:
        inside = all_of(*(each >= 1 for each in (d, h, v)))
        inside = all_of(inside, *(a < b + 1 for a, b in zip((d, h, v), size, strict=True)))
        return select(inside, apply(Fn.MAX, x[n, c_o, d - 1, h - 1, v - 1, c_i], 0.0), 0.0)

    wide = tuple(extent + 2 for extent in size)
    pad = compute("pad", (batch, channels // block, *wide, block), rectified)
    ic, kd = reduce_axis("ic", channels), reduce_axis("kd", 3)
    kh, kw = reduce_axis("kh", 3), reduce_axis("kw", 3)
    y = compute(
        "y",
        out,
        lambda n, oc_o, d, h, v, oc_i: sum_over(
            pad[n, ic.var // block, d + kd, h + kh, v + kw, ic.var % block]
            * w[oc_o * block + oc_i, ic, kd, kh, kw],
            ic,
            kd,
            kh,
            kw,
        ),
    )
    return compute("sum", out, lambda *at: y[at] + residual[at])
