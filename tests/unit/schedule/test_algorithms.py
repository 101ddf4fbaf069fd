"""Algorithms mean what they stand for, whatever the layout and the size."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.schedule.convolutions import blocked, channels_last, plain, volume

from tensorwright import expr, schedule
from tensorwright.base import DType

SIZES = {"winograd2": 4, "winograd3": 5, "winograd4": 6, "winograd6": 8}
WINOGRAD = tuple(each for each in schedule.ALGORITHMS if each.name in SIZES)
(IM2COL,) = (each for each in schedule.ALGORITHMS if each.name == "im2col")
ROWS = ("short_rows", "channels_last", "blocks_last", "pixels")
SUMS = tuple(e for e in schedule.ALGORITHMS if e.name not in (*ROWS, "joined_taps"))
EXACT = pytest.mark.parametrize("algorithm", SUMS, ids=lambda each: each.name)


def error(tensor: expr.Compute, algorithm: schedule.Algorithm) -> float:
    """The largest difference, over the largest element."""
    other = algorithm.rewrite(tensor)
    assert other is not None
    assert algorithm.rewrite(tensor) is not None
    assert (other.name, other.shape, other.dtype) == (tensor.name, tensor.shape, tensor.dtype)
    source = np.random.default_rng(0)
    inputs = {
        each: source.normal(size=each.shape).astype(each.dtype.numpy)
        for each in expr.topological_order(tensor)
        if isinstance(each, expr.Placeholder)
    }
    found, answer = expr.evaluate([other, tensor], inputs)
    return float(np.abs(found - answer).max() / np.abs(answer).max())


@EXACT
@pytest.mark.parametrize(
    "tensor",
    [
        plain((8, 8), 3, 2, 0, DType.F64),
        plain((7, 11), 2, 3, 1, DType.F64, batch=2),
        plain((1, 1), 2, 2, 1, DType.F64),
        plain((5, 5), 1, 1, 2, DType.F64),
        blocked((9, 6), 8, 4, DType.F64, batch=2),
        channels_last((6, 13), 3, 5, DType.F64, batch=2),
    ],
    ids=lambda each: "x".join(map(str, each.shape)),
)
def test_it_means_the_same(tensor: expr.Compute, algorithm: schedule.Algorithm) -> None:
    check_meaning(tensor, algorithm)


def check_meaning(tensor: expr.Compute, algorithm: schedule.Algorithm) -> None:
    if algorithm.name == "implicit_gemm" and schedule.find_matrix_product(tensor) is None:
        assert algorithm.rewrite(tensor) is None  # one pixel, or one filter
    else:
        assert error(tensor, algorithm) < 1e-10


@EXACT
@pytest.mark.parametrize("size", [(4, 8, 8), (2, 5, 7), (1, 1, 3)], ids=str)
def test_volumes_sum_the_first_taps_like_channels(
    size: tuple[int, int, int], algorithm: schedule.Algorithm
) -> None:
    stored = volume(size, 8, 4, DType.F64, batch=2)
    (load,) = (each for each in expr.loads_of(stored.body) if each.source.name == "y")
    assert isinstance(load.source, expr.Compute)
    assert error(load.source, algorithm) < 1e-10
    found = schedule.find_convolution(load.source)
    assert found is not None
    assert (found.rows.tap.name, found.columns.tap.name) == ("kh", "kw")


@settings(max_examples=20)
@given(
    st.tuples(st.integers(3, 12), st.integers(3, 12)),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 2),
    st.integers(1, 2),
    st.sampled_from(SUMS),
)
def test_any_shape(
    size: tuple[int, int],
    channels: int,
    filters: int,
    pad: int,
    batch: int,
    algorithm: schedule.Algorithm,
) -> None:
    check_meaning(plain(size, channels, filters, pad, DType.F64, batch), algorithm)


@pytest.mark.parametrize(
    ("name", "most"), [("winograd2", 1e-6), ("winograd3", 4e-6), ("winograd4", 1e-5)]
)
def test_f32_stays_close(name: str, most: float) -> None:
    (algorithm,) = (each for each in schedule.ALGORITHMS if each.name == name)
    assert error(plain((14, 14), 64, 8, 1, DType.F32), algorithm) < most


@pytest.mark.parametrize("tile", [2, 3, 4, 6])
def test_the_matrices_are_exact(tile: int) -> None:
    matrices = schedule.winograd_matrices(tile)
    data = [Fraction(n * n - 5, n + 2) for n in range(tile + 2)]
    kernel = [Fraction(3), Fraction(-1, 7), Fraction(5, 2)]

    def times(matrix: tuple[tuple[Fraction, ...], ...], vector: list[Fraction]) -> list[Fraction]:
        return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]

    pairs = zip(times(matrices.kernel, kernel), times(matrices.data, data), strict=True)
    found = times(matrices.inverse, [a * b for a, b in pairs])
    assert found == [sum(kernel[k] * data[i + k] for k in range(3)) for i in range(tile)]


def test_more_products_than_points_are_refused() -> None:
    with pytest.raises(ValueError, match="9 products take more than 7 points"):
        schedule.winograd_matrices(7)


def test_multiplications_are_fewer() -> None:
    """The product of the parts folds over the channels alone."""
    for algorithm in WINOGRAD:
        rewritten = algorithm.rewrite(plain((24, 24), 3, 2, 1, DType.F32))
        assert rewritten is not None
        stages = {each.name: each for each in expr.topological_order(rewritten)}
        product = stages["y_product"]
        assert isinstance(product, expr.Compute)
        size = SIZES[algorithm.name]
        assert [axis.name for axis in product.reduce_axes] == ["ic"]
        tiles = 24 // (size - 2)
        assert product.shape == (size, size, 1, 2, tiles, tiles)


def test_work_that_rows_share_is_written_alike() -> None:
    """d4 - 9/4 d2 + (2/3 d3 - 3/2 d1) and d4 - 9/4 d2 - (2/3 d3 - 3/2 d1): a compiler finds the
    common parts.
    """
    (algorithm,) = (each for each in schedule.ALGORITHMS if each.name == "winograd4")
    rewritten = algorithm.rewrite(plain((6, 6), 1, 1, 0, DType.F32))
    assert rewritten is not None
    (rows,) = (each for each in expr.topological_order(rewritten) if each.name == "y_rows")
    text = str(rows)
    assert text.count("(x[d0, d1, h_t*4 + 4, v] - (x[d0, d1, h_t*4 + 2, v] * 2.25))") == 2
    scaled = "(x[d0, d1, h_t*4 + 3, v] * 0.6666666666666666)", "(x[d0, d1, h_t*4 + 1, v] * 1.5)"
    assert text.count(f"({' - '.join(scaled)})") == 2


def convolution_like(name: str) -> expr.Compute:
    x, w = expr.placeholder("x", (4, 9, 9)), expr.placeholder("w", (8, 4, 3, 3))
    ic, kh, kw = expr.reduce_axis("ic", 4), expr.reduce_axis("kh", 3), expr.reduce_axis("kw", 3)
    shape = (8, 3, 3)
    match name:
        case "strided":
            return expr.compute(
                "y",
                shape,
                lambda o, h, v: expr.sum_over(
                    x[ic, h * 2 + kh, v * 2 + kw] * w[o, ic, kh, kw], ic, kh, kw
                ),
            )
        case "dilated":
            return expr.compute(
                "y",
                shape,
                lambda o, h, v: expr.sum_over(
                    x[ic, h + kh * 2, v + kw * 2] * w[o, ic, kh, kw], ic, kh, kw
                ),
            )
        case "grouped by rows":
            return expr.compute(
                "y",
                shape,
                lambda o, h, v: expr.sum_over(
                    x[ic, h + kh, v + kw] * w[expr.floor_div(h, 2), ic, kh, kw], ic, kh, kw
                ),
            )
        case "one direction":
            return expr.compute(
                "y",
                shape,
                lambda o, h, v: expr.sum_over(x[ic, h + kh, v] * w[o, ic, kh, 0], ic, kh),
            )
        case "flipped taps":
            return expr.compute(
                "y",
                shape,
                lambda o, h, v: expr.sum_over(
                    x[ic, h + kh, v + kw] * w[o, ic, 2 - kh, 2 - kw], ic, kh, kw
                ),
            )
        case "maximum":
            return expr.compute(
                "y",
                shape,
                lambda o, h, v: expr.max_over(x[ic, h + kh, v + kw] * w[o, ic, kh, kw], ic, kh, kw),
            )
        case _:
            return expr.compute(
                "y",
                shape,
                lambda o, h, v: expr.sum_over(x[ic, h + kh, v + kw] + w[o, ic, kh, kw], ic, kh, kw),
            )


LIKE = ["strided", "dilated", "grouped by rows", "one direction", "flipped taps", "maximum", "sum"]


@pytest.mark.parametrize("name", LIKE)
def test_winograd_leaves_other_expressions_alone(name: str) -> None:
    tensor = convolution_like(name)
    assert schedule.find_convolution(tensor) is None
    assert all(algorithm.rewrite(tensor) is None for algorithm in WINOGRAD)


@pytest.mark.parametrize("name", LIKE)
def test_columns_are_written_for_any_window(name: str) -> None:
    assert error(convolution_like(name), IM2COL) == 0


def test_columns_lie_as_the_data_does() -> None:
    for tensor, axes in (
        (plain((8, 8), 2, 2, 0, DType.F32), ["ic", "kh", "kw", "n", "h", "v"]),
        (channels_last((8, 8), 2, 2, DType.F32), ["n", "h", "v", "kh", "kw", "ic"]),
    ):
        rewritten = IM2COL.rewrite(tensor)
        assert rewritten is not None
        (columns,) = (e for e in expr.topological_order(rewritten) if e.name == "y_columns")
        assert isinstance(columns, expr.Compute)
        assert [axis.name for axis in columns.axes] == axes


def test_what_has_no_window_or_no_reuse_has_no_columns() -> None:
    x, k = expr.placeholder("x", (9, 4)), expr.reduce_axis("k", 3)
    product = expr.compute("y", (9, 5), lambda i, j: expr.sum_over(x[i, k] * x[j, k], k))
    pooled = expr.compute("y", (7, 4), lambda i, c: expr.sum_over(x[i + k, c], k))
    assert IM2COL.rewrite(product) is None
    assert IM2COL.rewrite(pooled) is None


def test_low_precision_is_left_alone() -> None:
    assert schedule.find_convolution(plain((8, 8), 2, 2, 0, DType.F16)) is None


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("dtype", [DType.BF16, DType.U8])
def test_rows_of_short_numbers_are_those_that_are_widened(name: str, dtype: DType) -> None:
    (algorithm,) = (each for each in schedule.ALGORITHMS if each.name == name)
    x = expr.placeholder("x", (2, 3, 5, 7, 4), dtype)
    y = expr.placeholder("y", (2, 3, 4), DType.F32)

    def padded(n: Any, c: Any, h: Any, w: Any, i: Any) -> Any:
        wide = expr.cast(x[n, c, h - 1, w, i], DType.F32)
        return expr.select(expr.all_of(h >= 1, h < 6), wide, 0.0)

    tensor = expr.compute("t", (2, 3, 7, 7, 4), padded)
    assert error(tensor, algorithm) == 0
    rewritten = algorithm.rewrite(tensor)
    assert rewritten is not None
    (load,) = expr.loads_of(rewritten.body)
    shapes = {"channels_last": (2, 7, 7, 4, 3), "blocks_last": (2, 7, 7, 12)}
    shapes["pixels"] = (2, 7, 7, 4 * 4)
    assert load.source.shape == shapes.get(name, tensor.shape)
    assert load.dtype is dtype
    floats = expr.compute("v", (2, 3, 4), lambda n, c, i: expr.sigmoid(y[n, c, i]))
    assert algorithm.rewrite(floats) is None


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_taps_of_a_row_and_channels_are_terms_of_one_sum(stride: int, dilation: int) -> None:
    """The last sum reads the last pixel of a row, and nothing behind it."""
    (algorithm,) = (each for each in schedule.ALGORITHMS if each.name == "joined_taps")
    x, w = (
        expr.placeholder("x", (5, 4 * (2 * stride + 2 * dilation + 1)), DType.BF16),
        expr.placeholder("w", (8, 3, 2, 3), DType.BF16),
    )
    ic, kh, kw = (expr.reduce_axis(*each) for each in (("ic", 3), ("kh", 2), ("kw", 3)))

    def summed(row: Any, column: Any, filter: Any) -> Any:
        pixel = column * stride + kw * dilation
        data = expr.cast(x[row + kh, pixel * 4 + ic], DType.F32)
        return expr.sum_over(data * expr.cast(w[filter, ic, kh, kw], DType.F32), ic, kh, kw)

    tensor = expr.compute("y", (4, 3, 8), summed)
    assert error(tensor, algorithm) < 1e-6
    rewritten = algorithm.rewrite(tensor)
    assert rewritten is not None
    assert [axis.extent for axis in rewritten.reduce_axes] == [8 * dilation + 4, 2]
    assert {load.source.name for load in expr.loads_of(rewritten.body)} == {"x", "y_weights"}
    assert algorithm.rewrite(plain((7, 7), 3, 2, 0, DType.BF16)) is None  # channels lie apart
