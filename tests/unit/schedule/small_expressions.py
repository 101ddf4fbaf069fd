"""Eighty expressions of a few elements each: what the enumeration of schedules goes through.

They read at offsets, with strides and in other orders, have readers that are longer or shorter than
what they read, conditions, several outputs, folds of folds, all kinds of types, and axes of one
element.  Extents are small primes and their like, so that few tiles are whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.schedule.expressions import (
    Expression,
    arg_max,
    blur,
    bytes_product,
    causal,
    chain,
    conv,
    gather,
    matmul,
    pool,
    positions,
    scaled,
    softmax,
    total,
    two_outputs,
    weighted,
)

from tensorwright.base import DType
from tensorwright.expr import (
    Compute,
    FromIndex,
    Placeholder,
    all_of,
    any_of,
    any_over,
    argmin_over,
    at_position,
    cast,
    compute,
    exp,
    logical_and,
    max_of,
    max_over,
    min_over,
    mod,
    placeholder,
    prod_over,
    reduce_axis,
    select,
    sum_over,
)


def _input(*shape: int, name: str = "x", dtype: DType = DType.F32) -> Placeholder:
    return placeholder(name, shape, dtype)


def _plus_one(x: Placeholder, name: str = "p") -> Compute:
    """A stage of the shape of an input."""
    return compute(name, x.shape, lambda *at: x[at] + 1)


def moved(n: int, m: int, read: Callable[[Compute, Any], Any], name: str = "z") -> Expression:
    """A vector of m elements, each made of a vector of n elements that is computed."""
    p = _plus_one(_input(n))
    return Expression((compute(name, (m,), lambda i: read(p, i)),))


def moved_matrix(
    shape: tuple[int, ...], result: tuple[int, ...], read: Callable[..., Any]
) -> Expression:
    """The same for more axes."""
    p = _plus_one(_input(*shape))
    return Expression((compute("z", result, lambda *at: read(p, *at)),))


def window(
    size: int = 5, taps: int = 3, padding: int = 1, stride: int = 1, dilation: int = 1
) -> Expression:
    """Sums over the windows of a padded vector, with weights; then what is above zero."""
    x, w = _input(size), _input(taps, name="w")
    long, r = size + 2 * padding, reduce_axis("r", taps)
    pad = compute(
        "pad",
        (long,),
        lambda i: select(all_of(i >= padding, i < size + padding), x[i - padding], 0.0),
    )
    count = (long - dilation * (taps - 1) - 1) // stride + 1
    y = compute("y", (count,), lambda i: sum_over(pad[i * stride + r * dilation] * w[r], r))
    relu = compute("relu", (count,), lambda i: max_of(y[i], 0.0))
    return Expression((relu,), frozenset({"w"}))


def depthwise() -> Expression:
    """A window larger than the image, for each channel by itself."""
    x, w = _input(2, 2), _input(2, 5, name="w")
    r = reduce_axis("r", 5)
    pad = compute("pad", (2, 6), lambda c, i: select(all_of(i >= 2, i < 4), x[c, i - 2], 0.0))
    y = compute("y", (2, 2), lambda c, i: sum_over(pad[c, i + r] * w[c, r], r))
    return Expression((y,), frozenset({"w"}))


def transposed_convolution() -> Expression:
    """Only positions that a stride divides have a term."""
    x, w, r = _input(3), _input(3, name="w"), reduce_axis("r", 3)
    p = _plus_one(x)

    def term(i: Any) -> Any:
        at = i - r
        inside = all_of(at >= 0, at < 6, mod(at, 2) <= 0)
        return select(inside, p[at // 2], 0.0) * w[r]

    return Expression((compute("y", (7,), lambda i: sum_over(term(i), r)),), frozenset({"w"}))


def folds_of_folds() -> Expression:
    """Sums of rows, their largest, and each of them less it."""
    x, j, k = _input(3, 5), reduce_axis("j", 5), reduce_axis("k", 3)
    s = compute("s", (3,), lambda i: sum_over(x[i, j], j))
    top = compute("top", (), lambda: max_over(s[k], k))
    return Expression((compute("z", (3,), lambda i: s[i] - top[()]),))


def variance() -> Expression:
    """The mean of squares of what is left when the mean is taken away."""
    x, j, k = _input(2, 4), reduce_axis("j", 4), reduce_axis("k", 4)
    mean = compute("mean", (2,), lambda i: sum_over(x[i, j], j))
    left = compute("left", (2, 4), lambda i, m: x[i, m] * 4.0 - mean[i])
    v = compute("v", (2,), lambda i: sum_over(left[i, k] * left[i, k], k))
    return Expression((compute("z", (2, 4), lambda i, m: left[i, m] * 0.5 + v[i]),))


def running_sums() -> Expression:
    """Each sum has the terms up to its own position."""
    x, k = _input(5), reduce_axis("k", 5)
    p = _plus_one(x)
    s = compute("s", (5,), lambda i: sum_over(select(k <= i, p[k], 0.0), k))
    return Expression((compute("z", (5,), lambda i: s[i] * 2.0),))


def folds_of_products() -> Expression:
    x, j, k = _input(2, 3), reduce_axis("j", 3), reduce_axis("k", 3)
    p = compute("p", (2,), lambda i: prod_over(x[i, j], j))
    q = compute("q", (2,), lambda i: min_over(x[i, k], k))
    return Expression((compute("z", (2,), lambda i: p[i] + q[i]),))


def rank_one() -> Expression:
    x, y, k = _input(3, 4), _input(5, name="y"), reduce_axis("k", 4)
    s = compute("s", (3,), lambda i: sum_over(x[i, k], k))
    t = _plus_one(y, "t")
    return Expression((compute("z", (3, 5), lambda i, j: s[i] * t[j]),))


def integers(dtype: DType) -> Expression:
    """A product of integers and a fold over its rows."""
    a, b = _input(3, 5, name="a", dtype=dtype), _input(5, 2, name="b", dtype=dtype)
    k, j = reduce_axis("k", 5), reduce_axis("j", 2)
    c = compute("c", (3, 2), lambda i, m: sum_over(a[i, k] * b[k, m], k))
    return Expression((compute("top", (3,), lambda i: max_over(c[i, j], j)),), frozenset({"b"}))


def booleans() -> Expression:
    """Which rows have an element of which both conditions hold; zeros elsewhere."""
    x, k = _input(3, 4), reduce_axis("k", 4)
    both = compute("both", (3, 4), lambda i, j: logical_and(x[i, j] > 0.0, x[i, j] < 3.0))
    some = compute("some", (3,), lambda i: any_over(both[i, k], k))
    return Expression((compute("z", (3, 4), lambda i, j: select(some[i], x[i, j], 0.0)), some))


def bytes_product_that_is_read() -> Expression:
    """As much as an instruction computes, and a reader of it."""
    (y,) = bytes_product(2, 16, 4).outputs
    return Expression((compute("z", y.shape, lambda i, j: y[i, j] * 2),), frozenset({"w"}))


def short_floats() -> Expression:
    """Halves that are added as f32."""
    x, k = _input(3, 5, dtype=DType.F16), reduce_axis("k", 5)
    p = compute("p", (3, 5), lambda i, j: x[i, j] + x[i, j])
    s = compute("s", (3,), lambda i: sum_over(cast(p[i, k], DType.F32), k))
    return Expression((compute("z", (3,), lambda i: cast(s[i], DType.F16)),))


def of_f64() -> Expression:
    x, k = _input(2, 7, dtype=DType.F64), reduce_axis("k", 7)
    s = compute("s", (2,), lambda i: sum_over(x[i, k], k))
    return Expression((compute("z", (2,), lambda i: s[i] * 0.5),))


def output_that_is_read() -> Expression:
    p = _plus_one(_input(5))
    q = compute("q", (5,), lambda i: p[i] * 2.0)
    return Expression((p, compute("z", (5,), lambda i: q[i] - p[i])))


def outputs_apart() -> Expression:
    """Two programs beside each other, of other lengths."""
    x, y, k = _input(4), _input(3, name="y"), reduce_axis("k", 3)
    p, q = _plus_one(x), compute("q", (), lambda: sum_over(y[k], k))
    return Expression((compute("z", (4,), lambda i: p[i] * 2.0), q))


def diamond() -> Expression:
    p = _plus_one(_input(2, 3))
    q = compute("q", (2, 3), lambda i, j: p[i, j] * 2.0)
    r = compute("r", (3, 2), lambda j, i: p[i, j] - 3.0)
    return Expression((compute("z", (2, 3), lambda i, j: q[i, j] + r[j, i]),))


def stencils() -> Expression:
    """Three stages, each a little shorter than that before."""
    x = _input(8)
    p = compute("p", (7,), lambda i: x[i] + x[i + 1])
    q = compute("q", (6,), lambda i: p[i] - p[i + 1])
    return Expression((compute("z", (5,), lambda i: q[i] + q[i + 1]),))


def joined() -> Expression:
    """Two vectors behind each other."""
    p, q = _plus_one(_input(3)), _plus_one(_input(4, name="y"), "q")
    return Expression(
        (compute("z", (7,), lambda i: select(i < 3, p[i], select(i >= 3, q[i - 3], 0.0))),)
    )


def nested_guards() -> Expression:
    p = _plus_one(_input(4))

    def read(i: Any) -> Any:
        inner = select(i < 5, p[i - 1], 7.0)
        return select(all_of(i >= 1, i < 6), inner, 3.0)

    return Expression((compute("z", (7,), read),))


def one_of_two_guards() -> Expression:
    p = _plus_one(_input(6))
    return Expression((compute("z", (6,), lambda i: select(any_of(i < 2, i >= 4), p[i], 0.0)),))


def from_positions() -> Expression:
    """The elements' own positions are part of their values."""
    p = _plus_one(_input(2, 3))

    def read(i: Any, j: Any) -> Any:
        return p[i, j] + cast(FromIndex(i * 3 + j, DType.I32), DType.F32)

    return Expression((compute("z", (2, 3), read),))


def chosen_rows() -> Expression:
    """Rows of a table that is computed, at positions that are computed."""
    x, place = _input(3, 2), _input(4, name="place", dtype=DType.I64)
    p = _plus_one(x)
    q = compute("q", (4,), lambda i: place[i] + 1)
    rows = compute("rows", (4, 2), lambda i, j: p[at_position(q, (i,), 3), j])
    return Expression((compute("z", (4, 2), lambda i, j: rows[i, j] * 2.0),), largest={"place": 2})


def least_position() -> Expression:
    x, k = _input(2, 5), reduce_axis("k", 5)
    p = _plus_one(x)
    best = compute("best", (2,), lambda i: argmin_over(p[i, k], k))
    return Expression((compute("z", (2,), lambda i: best[i] + 1),))


def attention() -> Expression:
    q, key, value = (_input(3, 2, name=name) for name in ("q", "key", "value"))
    d, j, k, m = (reduce_axis(name, n) for name, n in (("d", 2), ("j", 3), ("k", 3), ("m", 3)))
    scores = compute("scores", (3, 3), lambda i, c: sum_over(q[i, d] * key[c, d], d))
    top = compute("top", (3,), lambda i: max_over(scores[i, j], j))
    e = compute("e", (3, 3), lambda i, c: exp(scores[i, c] - top[i]))
    s = compute("s", (3,), lambda i: sum_over(e[i, k], k))
    y = compute("y", (3, 2), lambda i, c: sum_over(e[i, m] * value[m, c], m))
    return Expression((compute("z", (3, 2), lambda i, c: y[i, c] / s[i]),), is_exact=False)


def batches() -> Expression:
    """Products of some matrices with one, and what is added to each row."""
    a, b, bias = _input(2, 3, 2, name="a"), _input(2, 3, name="b"), _input(3, name="bias")
    k = reduce_axis("k", 2)
    c = compute("c", (2, 3, 3), lambda n, i, j: sum_over(a[n, i, k] * b[k, j], k))
    y = compute("y", (2, 3, 3), lambda n, i, j: c[n, i, j] + bias[j])
    return Expression((y,), frozenset({"b", "bias"}))


def overlapping_sums() -> Expression:
    """Two axes of a fold run through the same elements."""
    x, a, b = _input(9), reduce_axis("a", 2), reduce_axis("b", 3)
    p = _plus_one(x)
    return Expression((compute("y", (3,), lambda i: sum_over(p[i * 2 + a * 2 + b], a, b)),))


def of_one_element() -> Expression:
    """Axes of one element beside others, of the result and of the fold."""
    a, b = _input(1, 3, name="a"), _input(3, 1, name="b")
    k, u = reduce_axis("k", 3), reduce_axis("u", 1)
    c = compute("c", (1, 1), lambda i, j: sum_over(a[i, k] * b[k, j], k))
    return Expression((compute("z", (1, 2), lambda i, j: sum_over(c[i, u] * 2.0, u)),))


def of_no_axes() -> Expression:
    x, y = _input(), _input(name="y")
    p = compute("p", (), lambda: x[()] + y[()])
    return Expression((compute("z", (3,), lambda i: p[()] * 2.0),))


def constants_of_constants() -> Expression:
    """What depends on constants alone, and is read in another order and in part."""
    x, w, k = _input(2, 3), _input(3, 4, name="w"), reduce_axis("k", 3)
    turned = compute("turned", (4, 3), lambda j, i: w[i, j] * 2.0)
    y = compute("y", (2, 3), lambda i, j: sum_over(x[i, k] * turned[j + 1, k], k))
    return Expression((y,), frozenset({"w"}))


def padded_twice() -> Expression:
    """A sum of two factors, both of them zero beside their middle."""
    x, y, r = _input(3), _input(3, name="y"), reduce_axis("r", 3)

    def padded(name: str, source: Placeholder) -> Compute:
        return compute(name, (5,), lambda i: select(all_of(i >= 1, i < 4), source[i - 1], 0.0))

    p, q = padded("p", x), padded("q", y)
    return Expression((compute("z", (3,), lambda i: sum_over(p[i + r] * q[i + 2 - r], r)),))


def shared_factor() -> Expression:
    """A factor that is computed and the same for all terms of a sum."""
    x, each, k = _input(2, 5), _input(2, name="each"), reduce_axis("k", 5)
    e = _plus_one(each, "e")
    return Expression((compute("w", (2,), lambda i: sum_over(x[i, k] * e[i], k)),))


def named_like_parts() -> Expression:
    """Axes with the names that splits and fusions of others would have."""
    p = compute("p", (3, 4), lambda i, i_o: _input(3, 4)[i, i_o] + 1.0)
    return Expression((compute("z", (3, 4), lambda i_i, i: p[i_i, i] * 2.0),))


SMALL: dict[str, Expression] = {
    "matmul": matmul(3, 4, 5),
    "matmul_relu": matmul(4, 3, 2, with_relu=True),
    "matmul_of_a_row": matmul(1, 5, 3, with_relu=True),
    "matmul_of_primes": matmul(7, 3, 2),
    "matmul_of_one_term": matmul(2, 3, 1, with_relu=True),
    "chain": chain(5),
    "scaled": scaled(3),
    "positions": positions(),
    "blur": blur(3),
    "conv": conv(4, channels=1, filters=2),
    "conv_strided": conv(4, 2, channels=2, filters=1),
    "conv_of_one_position": conv(1, channels=2, filters=2),
    "softmax": softmax(2, 5),
    "causal": causal(3, 4, 2),
    "pool": pool(5),
    "total": total(7),
    "gather": gather(3),
    "arg_max": arg_max(2, 5),
    "two_outputs": two_outputs(3),
    "bytes_product": bytes_product(2, 16, 8),
    "bytes_product_that_is_read": bytes_product_that_is_read(),
    "weighted": weighted(2, 3, 4),
    "longer": moved(4, 6, lambda p, i: select(i < 4, p[i], 7.0)),
    "longer_in_front": moved(4, 6, lambda p, i: select(i >= 2, p[i - 2], 7.0)),
    "shorter": moved(6, 4, lambda p, i: p[i] * 2.0),
    "offset": moved(6, 5, lambda p, i: p[i + 1] * 2.0),
    "strided": moved(9, 4, lambda p, i: p[i * 2 + 1] * 2.0),
    "reversed": moved(5, 5, lambda p, i: p[4 - i] * 2.0),
    "neighbours": moved(5, 5, lambda p, i: p[i] + select(i < 4, p[i + 1], 0.0)),
    "repeated": moved(3, 7, lambda p, i: p[i // 3] * 2.0),
    "periodic": moved(3, 7, lambda p, i: p[mod(i, 3)] * 2.0),
    "transposed": moved_matrix((3, 5), (5, 3), lambda p, i, j: p[j, i] * 2.0),
    "transposed_sum": moved_matrix((3, 3), (3, 3), lambda p, i, j: p[i, j] + p[j, i]),
    "turned": moved_matrix((2, 3, 2), (2, 2, 3), lambda p, i, j, k: p[i, k, j] * 2.0),
    "diagonal": moved_matrix((4, 4), (4,), lambda p, i: p[i, i] * 2.0),
    "column": moved_matrix((3, 4), (3,), lambda p, i: p[i, 2] * 2.0),
    "spread": moved_matrix((3,), (3, 4), lambda p, i, j: p[i] * 2.0),
    "spread_across": moved_matrix((4,), (3, 4), lambda p, i, j: p[j] * 2.0),
    "flattened": moved_matrix((3, 4), (12,), lambda p, i: p[i // 4, mod(i, 4)] * 2.0),
    "unflattened": moved_matrix((12,), (4, 3), lambda p, i, j: p[i * 3 + j] * 2.0),
    "enlarged": moved_matrix((2, 3), (4, 5), lambda p, i, j: p[i // 2, j // 2] * 2.0),
    "longer_and_wider": moved_matrix(
        (3, 3), (5, 4), lambda p, i, j: select(all_of(i < 3, j < 3), p[i, j], 1.0)
    ),
    "of_one_row": moved_matrix((1, 4, 1), (1, 4, 1), lambda p, i, j, k: p[i, j, k] * 2.0),
    "window": window(),
    "window_without_padding": window(6, 3, 0),
    "window_larger_than_the_image": window(2, 5, 2),
    "window_of_stride": window(7, 3, 1, stride=2),
    "windows_apart": window(7, 2, 0, stride=3),
    "window_dilated": window(5, 3, 2, dilation=2),
    "depthwise": depthwise(),
    "transposed_convolution": transposed_convolution(),
    "folds_of_folds": folds_of_folds(),
    "variance": variance(),
    "running_sums": running_sums(),
    "folds_of_products": folds_of_products(),
    "rank_one": rank_one(),
    "i32": integers(DType.I32),
    "i8": integers(DType.I8),
    "u8": integers(DType.U8),
    "i64": integers(DType.I64),
    "booleans": booleans(),
    "f16": short_floats(),
    "f64": of_f64(),
    "output_that_is_read": output_that_is_read(),
    "outputs_apart": outputs_apart(),
    "diamond": diamond(),
    "stencils": stencils(),
    "joined": joined(),
    "nested_guards": nested_guards(),
    "one_of_two_guards": one_of_two_guards(),
    "from_positions": from_positions(),
    "chosen_rows": chosen_rows(),
    "least_position": least_position(),
    "attention": attention(),
    "batches": batches(),
    "overlapping_sums": overlapping_sums(),
    "of_one_element": of_one_element(),
    "of_no_axes": of_no_axes(),
    "constants_of_constants": constants_of_constants(),
    "padded_twice": padded_twice(),
    "shared_factor": shared_factor(),
    "named_like_parts": named_like_parts(),
}
