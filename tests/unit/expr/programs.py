"""Small tensor expressions of every kind that the evaluator treats differently."""

from __future__ import annotations

import numpy as np

from tensorwright import expr
from tensorwright.base import DType


def conv2d(
    batch: int = 1,
    channels: int = 2,
    size: int = 6,
    filters: int = 4,
    kernel: int = 3,
    stride: int = 1,
    pad: int = 1,
    dilation: int = 1,
    groups: int = 1,
) -> expr.Compute:
    x = expr.placeholder("x", (batch, channels, size, size))
    w = expr.placeholder("w", (filters, channels // groups, kernel, kernel))
    out = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    c = expr.reduce_axis("c", channels // groups)
    kh, kw = expr.reduce_axis("kh", kernel), expr.reduce_axis("kw", kernel)

    def body(n, o, i, j) -> expr.Reduce:
        row = i * stride + kh.var * dilation - pad
        column = j * stride + kw.var * dilation - pad
        group = o // (filters // groups)
        value = x[n, group * (channels // groups) + c.var, row, column]
        if pad:
            inside = expr.all_of(row >= 0, row < size, column >= 0, column < size)
            value = expr.select(inside, value, 0.0)
        return expr.sum_over(value * w[o, c, kh, kw], c, kh, kw)

    return expr.compute("y", (batch, filters, out, out), body)


def matmul(m: int = 5, n: int = 4, k: int = 7, dtype: DType = DType.F32) -> expr.Compute:
    a, b, r = (
        expr.placeholder("a", (m, k), dtype),
        expr.placeholder("b", (k, n), dtype),
        expr.reduce_axis("k", k),
    )
    return expr.compute("c", (m, n), lambda i, j: expr.sum_over(a[i, r] * b[r, j], r))


def attention_scores() -> expr.Compute:
    q, k = expr.placeholder("q", (2, 3, 4, 5)), expr.placeholder("k", (2, 3, 6, 5))
    d = expr.reduce_axis("d", 5)
    return expr.compute(
        "s", (2, 3, 4, 6), lambda b, h, i, j: expr.sum_over(q[b, h, i, d] * k[b, h, j, d], d)
    )


def triple_product() -> expr.Compute:
    a, b, c = (
        expr.placeholder("a", (3, 4)),
        expr.placeholder("b", (4, 5)),
        expr.placeholder("c", (5,)),
    )
    k, m = expr.reduce_axis("k", 4), expr.reduce_axis("m", 5)
    return expr.compute("t", (3,), lambda i: expr.sum_over(a[i, k] * b[k, m] * c[m], k, m))


def im2col_matmul() -> expr.Compute:
    """The reduction axis is a fused (channel, tap) pair."""
    x, w, k = expr.placeholder("x", (3, 8)), expr.placeholder("w", (4, 6)), expr.reduce_axis("k", 6)
    return expr.compute(
        "y", (4, 7), lambda o, i: expr.sum_over(x[k.var // 2, i + k.var % 2] * w[o, k], k)
    )


def reshape_sum() -> expr.Compute:
    """Indices divide an axis by numbers that do not divide its extent."""
    x, k = expr.placeholder("x", (4, 6)), expr.reduce_axis("k", 5)
    return expr.compute(
        "y", (4,), lambda i: expr.sum_over(x[(i * 5 + k.var) // 6, (i * 5 + k.var) % 6], k)
    )


def softmax() -> expr.Compute:
    x, k = expr.placeholder("x", (3, 5)), expr.reduce_axis("k", 5)
    top = expr.compute("top", (3,), lambda i: expr.max_over(x[i, k], k))
    power = expr.compute("power", (3, 5), lambda i, j: expr.exp(x[i, j] - top[i]))
    total = expr.compute("total", (3,), lambda i: expr.sum_over(power[i, k], k))
    return expr.compute("y", (3, 5), lambda i, j: power[i, j] / total[i])


def gather() -> expr.Compute:
    x, at = expr.placeholder("x", (5, 3)), expr.placeholder("at", (4,), DType.I64)
    return expr.compute("y", (4, 3), lambda i, j: x[at[i], j])


def weighted_gather() -> expr.Compute:
    x, at = expr.placeholder("x", (5, 3)), expr.placeholder("at", (4,), DType.I64)
    w, k = expr.placeholder("w", (4,)), expr.reduce_axis("k", 4)
    return expr.compute("y", (3,), lambda j: expr.sum_over(x[at[k], j] * w[k], k))


def concat() -> expr.Compute:
    a, b = expr.placeholder("a", (2, 3)), expr.placeholder("b", (4, 3))
    return expr.compute("y", (6, 3), lambda i, j: expr.select(i < 2, a[i, j], b[i - 2, j]))


def argmax() -> expr.Compute:
    x, k = expr.placeholder("x", (4, 9)), expr.reduce_axis("k", 9)
    return expr.compute("y", (4,), lambda i: expr.argmax_over(x[i, k], k))


def argmin_of_fused() -> expr.Compute:
    x, k = expr.placeholder("x", (4, 6)), expr.reduce_axis("k", 6)
    return expr.compute(
        "y", (4,), lambda i: expr.argmin_over(x[i, (k.var // 2) * 2 + k.var % 2], k)
    )


def product_and_cast() -> expr.Compute:
    x, k = expr.placeholder("x", (3, 4), DType.I32), expr.reduce_axis("k", 4)
    return expr.compute("y", (3,), lambda i: expr.prod_over(expr.cast(x[i, k], DType.F32), k))


def pooled_relu() -> expr.Compute:
    x, k = expr.placeholder("x", (3, 9)), expr.reduce_axis("k", 3)
    relu = expr.compute("relu", (3, 9), lambda i, j: expr.max_of(x[i, j], 0.0))
    return expr.compute("y", (3, 4), lambda i, j: expr.max_over(relu[i, j * 2 + k.var], k))


def framed_flip() -> expr.Compute:
    """Guarded loads that run backwards, with a stride, and leave the tensor on both sides."""
    x = expr.placeholder("x", (5, 4))

    def body(i, j):
        row, column = 7 - i * 2, j * 3 - 2
        inside = expr.all_of(row >= 0, row < 5, column >= 0, column < 4)
        return expr.select(inside, x[row, column], -1.0)

    return expr.compute("y", (6, 4), body)


def scalar() -> expr.Compute:
    x, k = expr.placeholder("x", (7,)), expr.reduce_axis("k", 7)
    return expr.compute("y", (), lambda: expr.sum_over(x[k] * x[k], k))


def triangle() -> expr.Compute:
    """A value made of indices, chosen by a value condition."""
    x = expr.placeholder("x", (4, 4))

    def body(i, j):
        return expr.select(x[i, j] < 0.0, expr.FromIndex(i * 4 - j, DType.F32), x[j, i])

    return expr.compute("y", (4, 4), body)


def one_axis_sum() -> expr.Compute:
    """The body does not depend on the axis that is folded, which `compute` refuses."""
    x, i, k = expr.placeholder("x", (3,)), expr.reduce_axis("i", 3), expr.reduce_axis("k", 4)
    return expr.Compute("y", (i,), x[i], expr.Reduction(expr.Combiner.SUM, (k,)))


PROGRAMS = {
    "conv": conv2d(),
    "conv strided": conv2d(batch=2, stride=2, size=7),
    "conv dilated": conv2d(dilation=2, pad=2),
    "conv 1x1": conv2d(kernel=1, pad=0),
    "conv grouped": conv2d(groups=2),
    "conv depthwise": conv2d(channels=4, groups=4, filters=8, pad=0),
    "conv large kernel": conv2d(channels=2, filters=2, kernel=5, size=6, pad=2),
    "matmul": matmul(),
    "matmul i32": matmul(dtype=DType.I32),
    "attention": attention_scores(),
    "triple product": triple_product(),
    "im2col matmul": im2col_matmul(),
    "reshape sum": reshape_sum(),
    "softmax": softmax(),
    "gather": gather(),
    "weighted gather": weighted_gather(),
    "concat": concat(),
    "argmax": argmax(),
    "argmin of fused": argmin_of_fused(),
    "product and cast": product_and_cast(),
    "pooled relu": pooled_relu(),
    "framed flip": framed_flip(),
    "scalar": scalar(),
    "triangle": triangle(),
    "one axis sum": one_axis_sum(),
}


def inputs_of(output: expr.Compute, seed: int = 0) -> dict[expr.Placeholder, np.ndarray]:
    """Random inputs; integers are valid positions of the programs above."""
    random = np.random.default_rng(seed)
    found: dict[expr.Placeholder, np.ndarray] = {}
    for tensor in expr.topological_order(output):
        if isinstance(tensor, expr.Placeholder):
            if tensor.dtype.is_float:
                array = random.standard_normal(tensor.shape)
            else:
                array = random.integers(0, 4, tensor.shape)
            found[tensor] = np.asarray(array).astype(tensor.dtype.numpy)
    return found
