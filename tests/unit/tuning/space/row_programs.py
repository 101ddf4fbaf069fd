"""Programs for the sketches of graphics processors: folds of rows, moving, few long folds."""

from __future__ import annotations

from tests.unit.schedule.expressions import Expression

from tensorwright.expr import (
    Compute,
    compute,
    exp,
    max_of,
    max_over,
    placeholder,
    reduce_axis,
    sqrt,
    sum_over,
)


def softmax(rows: int, columns: int) -> Expression:
    """Along rows; the exponentials are read twice."""
    x = placeholder("x", (rows, columns))
    j, k = reduce_axis("j", columns), reduce_axis("k", columns)
    top = compute("top", (rows,), lambda i: max_over(x[i, j], j))
    e = compute("e", x.shape, lambda i, j: exp(x[i, j] - top[i]))
    total = compute("total", (rows,), lambda i: sum_over(e[i, k], k))
    return _rough(compute("out", x.shape, lambda i, j: e[i, j] / total[i]))


def softmax_over_channels(channels: int, places: int) -> Expression:
    """Along columns: neighbours lie in other rows."""
    x = placeholder("x", (2, channels, places))
    j, k = reduce_axis("j", channels), reduce_axis("k", channels)
    top = compute("top", (2, places), lambda n, i: max_over(x[n, j, i], j))
    e = compute("e", x.shape, lambda n, c, i: exp(x[n, c, i] - top[n, i]))
    total = compute("total", (2, places), lambda n, i: sum_over(e[n, k, i], k))
    return _rough(compute("out", x.shape, lambda n, c, i: e[n, c, i] / total[n, i]))


def layer_norm(rows: int, columns: int) -> Expression:
    """Two folds; differences from the mean are cheap."""
    x, g = placeholder("x", (2, rows, columns)), placeholder("g", (columns,))
    j, k = reduce_axis("j", columns), reduce_axis("k", columns)
    mean = compute("mean", (2, rows), lambda b, i: sum_over(x[b, i, j], j))
    d = compute("d", x.shape, lambda b, i, q: x[b, i, q] - mean[b, i] * (1 / columns))
    v = compute("v", (2, rows), lambda b, i: sum_over(d[b, i, k] * d[b, i, k], k))
    scale = compute("scale", (2, rows), lambda b, i: 1.0 / sqrt(v[b, i] * (1 / columns) + 1e-5))
    return _rough(compute("out", x.shape, lambda b, i, q: d[b, i, q] * scale[b, i] * g[q]))


def global_pool(channels: int, size: int) -> Expression:
    """The mean of each channel."""
    x = placeholder("x", (2, channels, size, size))
    p, q = reduce_axis("p", size), reduce_axis("q", size)
    s = compute("s", (2, channels), lambda n, c: sum_over(x[n, c, p, q], p, q))
    mean = compute("mean", (2, channels, 1, 1), lambda n, c, u, v: s[n, c] * (1 / size**2))
    return _rough(mean)


def dense_of_one_row(outputs: int, terms: int, *, is_transposed: bool = False) -> Expression:
    """A product with one row, bias and ReLU; weights by output, or by term."""
    shape = (terms, outputs) if is_transposed else (outputs, terms)
    x, w, k = placeholder("x", (1, terms)), placeholder("w", shape), reduce_axis("k", terms)
    bias = placeholder("bias", (outputs,))
    y = compute(
        "y",
        (1, outputs),
        lambda i, j: sum_over(x[i, k] * (w[k, j] if is_transposed else w[j, k]), k),
    )
    relu = compute("relu", y.shape, lambda i, j: max_of(y[i, j] + bias[j], 0.0))
    return Expression((relu,), frozenset({"w", "bias"}), is_exact=False)


def scaled(rows: int, columns: int) -> Expression:
    """Elementwise, with a scale for each column."""
    x, g = placeholder("x", (rows, columns)), placeholder("g", (columns,))
    return _rough(compute("y", x.shape, lambda i, j: x[i, j] * g[j] + 1.0))


def transposed(rows: int, columns: int) -> Expression:
    """Moves, and computes nothing."""
    x = placeholder("x", (columns, rows))
    return _rough(compute("y", (rows, columns), lambda i, j: x[j, i]))


def max_pool(channels: int, size: int) -> Expression:
    """Windows of 2x2, doubled: a short fold in the thread of its reader."""
    x, p, q = placeholder("x", (channels, size, size)), reduce_axis("p", 2), reduce_axis("q", 2)
    shape = (channels, size // 2, size // 2)
    y = compute("y", shape, lambda c, i, j: max_over(x[c, i * 2 + p, j * 2 + q], p, q))
    return _rough(compute("z", shape, lambda c, i, j: y[c, i, j] * 2.0))


def sum_of_all(terms: int) -> Expression:
    """One number."""
    x, k = placeholder("x", (terms,)), reduce_axis("k", terms)
    return _rough(compute("s", (), lambda: sum_over(x[k], k)))


def _rough(output: Compute) -> Expression:
    return Expression((output,), is_exact=False)
