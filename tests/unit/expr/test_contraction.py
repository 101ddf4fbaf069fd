"""Random sums of products: matrix multiplications give what plain evaluation gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.expr.programs import inputs_of

from tensorwright import expr
from tensorwright.base import DType
from tensorwright.expr.binding import refine_axes
from tensorwright.expr.evaluation.contraction import find_product_sum
from tensorwright.expr.evaluation.evaluate import evaluate_one

SIZES = st.integers(1, 4)


@st.composite
def contractions(draw: st.DrawFn) -> expr.Compute:
    """Two or three operands, each with some of the axes, in any order."""
    shape = draw(st.lists(SIZES, min_size=1, max_size=3))
    folded = [
        expr.reduce_axis(f"k{n}", e)
        for n, e in enumerate(draw(st.lists(SIZES, min_size=1, max_size=2)))
    ]
    dtype = draw(st.sampled_from((DType.F32, DType.F64, DType.I32)))
    extents = [*shape, *(axis.extent for axis in folded)]
    count = draw(st.integers(2, 3))
    chosen = [draw(st.permutations(range(len(extents)))) for _ in range(count)]
    kept = [places[: draw(st.integers(1, len(places)))] for places in chosen]
    sources = [
        expr.placeholder(f"x{n}", tuple(extents[place] for place in places), dtype)
        for n, places in enumerate(kept)
    ]

    axes = tuple(expr.reduce_axis(f"i{n}", extent) for n, extent in enumerate(shape))
    every = (*axes, *folded)
    value = sources[0][tuple(every[place] for place in kept[0])]
    for source, places in zip(sources[1:], kept[1:], strict=True):
        value = value * source[tuple(every[place] for place in places)]
    return expr.Compute(
        "y", axes, value, expr.Reduction(expr.Combiner.SUM, tuple(folded))
    )  # some fold nothing


@st.composite
def volume_convolutions(draw: st.DrawFn) -> expr.Compute:
    """Blocked, grouped, strided and padded convolutions of volumes."""
    block, groups = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2)))
    stride, dilation, pad = (
        draw(st.integers(1, 2)),
        draw(st.integers(1, 2)),
        draw(st.integers(0, 2)),
    )
    kernel, size = draw(st.integers(1, 3)), draw(st.integers(5, 7))
    channels, filters = 4 * groups, 4 * groups
    out = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    x = expr.placeholder("x", (channels // block, size, size, block))
    w = expr.placeholder("w", (filters, channels // groups, kernel, kernel))
    c = expr.reduce_axis("c", channels // groups)
    taps = expr.reduce_axis("kh", kernel), expr.reduce_axis("kw", kernel)

    def body(o_o, i, j, o_i):
        o = o_o * block + o_i
        channel = o // (filters // groups) * (channels // groups) + c.var
        row, column = (
            at * stride + tap.var * dilation - pad for at, tap in zip((i, j), taps, strict=True)
        )
        value = x[channel // block, row, column, channel % block]
        if pad:
            inside = expr.all_of(row >= 0, row < size, column >= 0, column < size)
            value = expr.select(inside, value, 0.0)
        return expr.sum_over(value * w[o, c, taps[0], taps[1]], c, *taps)

    return expr.compute("y", (filters // block, out, out, block), body)


def check(output: expr.Compute) -> None:
    arrays = dict(inputs_of(output))
    found, cramped = (evaluate_one(output, arrays, expr.NUMPY, limit) for limit in (1 << 24, 4000))
    plain = evaluate_one(output, arrays, expr.NUMPY, products=False)
    assert found.dtype == plain.dtype
    tolerance = 2 * np.finfo(plain.dtype).eps if output.dtype.is_float else 0
    np.testing.assert_allclose(found, plain, rtol=tolerance, atol=40 * tolerance)
    np.testing.assert_allclose(cramped, plain, rtol=tolerance, atol=40 * tolerance)


@settings(max_examples=30)
@given(contractions())
def test_products_of_any_axes(output: expr.Compute) -> None:
    check(output)


@settings(max_examples=20)
@given(volume_convolutions())
def test_convolutions(output: expr.Compute) -> None:
    assert find_product_sum(refine_axes(output)) is not None
    check(output)


def test_an_axis_that_no_factor_has_repeats_the_sum() -> None:
    x, w, k = expr.placeholder("x", (3,)), expr.placeholder("w", (3,)), expr.reduce_axis("k", 5)
    i = expr.reduce_axis("i", 3)
    output = expr.Compute("y", (i,), x[i] * w[i], expr.Reduction(expr.Combiner.SUM, (k,)))
    assert find_product_sum(output) is None
    inputs = inputs_of(output)
    np.testing.assert_allclose(
        expr.evaluate([output], inputs)[0], 5 * inputs[x] * inputs[w], rtol=1e-6
    )
