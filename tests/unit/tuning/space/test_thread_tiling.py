"""Tiled folds for graphics processors: what is derived, its limits, what draws compute."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from tests import grids
from tests.draws import random_source, some_of
from tests.unit.schedule.expressions import Expression, check, conv, matmul, softmax, total

from tensorwright.base import GpuTarget
from tensorwright.expr import (
    all_of,
    compute,
    max_of,
    max_over,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.loop import launches_of, lower, room_of
from tensorwright.schedule import ForKind, format_trace, replay, uses_algorithm
from tensorwright.tuning.space import Sketch, default_trace, derived, space_of
from tensorwright_lab.loop_interpreter import interpret


def pointwise_convolution(channels: int, filters: int, size: int) -> Expression:
    """A 1x1 convolution, then bias and ReLU."""
    x, w = placeholder("x", (channels, size, size)), placeholder("w", (filters, channels))
    bias, ic = placeholder("bias", (filters,)), reduce_axis("ic", channels)
    y = compute("y", (filters, size, size), lambda o, h, v: sum_over(x[ic, h, v] * w[o, ic], ic))
    relu = compute("relu", y.shape, lambda o, h, v: max_of(y[o, h, v] + bias[o], 0.0))
    return Expression((relu,), frozenset({"w", "bias"}))


def biased_convolution(channels: int, filters: int, size: int) -> Expression:
    """As networks have it: the bias is a stage of its own, and so is a sum with another tensor."""
    x, w = placeholder("x", (channels, size, size)), placeholder("w", (filters, channels))
    bias, other = placeholder("bias", (filters,)), placeholder("other", (filters, size, size))
    ic = reduce_axis("ic", channels)
    y = compute("y", (filters, size, size), lambda o, h, v: sum_over(x[ic, h, v] * w[o, ic], ic))
    biased = compute("biased", y.shape, lambda o, h, v: y[o, h, v] + bias[o])
    both = compute("both", y.shape, lambda o, h, v: biased[o, h, v] + other[o, h, v])
    relu = compute("relu", y.shape, lambda o, h, v: max_of(both[o, h, v], 0.0))
    return Expression((relu,), frozenset({"w", "bias"}))


def depthwise(channels: int = 32) -> Expression:
    """Each output reads its own channel: there is no product of matrices."""
    x, w = placeholder("x", (channels, 9, 9)), placeholder("w", (channels, 3, 3))
    p, q = reduce_axis("p", 3), reduce_axis("q", 3)
    shape = (channels, 7, 7)
    y = compute("y", shape, lambda c, h, v: sum_over(x[c, h + p, v + q] * w[c, p, q], p, q))
    return Expression((y,), frozenset({"w"}))


def pool() -> Expression:
    """The largest of 2 x 2 neighbours, then ReLU."""
    x, p, q = placeholder("x", (3, 10, 10)), reduce_axis("p", 2), reduce_axis("q", 2)
    y = compute("y", (3, 5, 5), lambda c, h, v: max_over(x[c, h * 2 + p, v * 2 + q], p, q))
    return Expression((compute("relu", y.shape, lambda c, h, v: max_of(y[c, h, v], 0.0)),))


def batched(batch: int, m: int, n: int, k: int) -> Expression:
    """Products of rows with rows: neighbours in memory are terms of the sums."""
    a, b, r = placeholder("a", (batch, m, k)), placeholder("b", (batch, n, k)), reduce_axis("k", k)
    shape = (batch, m, n)
    return Expression((compute("c", shape, lambda p, i, j: sum_over(a[p, i, r] * b[p, j, r], r)),))


def winograd() -> Expression:
    """A padded convolution of 3 x 3 taps with as many channels as Winograd's algorithm wants."""
    x, w, ic = placeholder("x", (16, 5, 5)), placeholder("w", (16, 16, 3, 3)), reduce_axis("ic", 16)
    p, q = reduce_axis("p", 3), reduce_axis("q", 3)
    pad = compute(
        "pad",
        (16, 7, 7),
        lambda c, h, v: select(all_of(h >= 1, h < 6, v >= 1, v < 6), x[c, h - 1, v - 1], 0.0),
    )
    y = compute(
        "y",
        (16, 5, 5),
        lambda o, h, v: sum_over(pad[ic, h + p, v + q] * w[o, ic, p, q], ic, p, q),
    )
    return Expression((y,), frozenset({"w"}))


TILED = {
    "product": matmul(16, 24, 12),
    "product_with_rests": matmul(13, 22, 10),
    "product_with_relu": matmul(17, 16, 7, with_relu=True),
    "batch": batched(2, 5, 8, 6),
    "convolution": conv(6, 1, 3, 8),
    "strided_convolution": conv(7, 2, 4, 8),
    "pointwise_convolution": pointwise_convolution(8, 16, 5),
    "biased_convolution": biased_convolution(8, 16, 5),
}
WINDOWS = {"depthwise": depthwise(4), "pool": pool()}


def tiled(expression: Expression, target: GpuTarget = grids.OPENCL_GENERIC) -> Sketch:
    """The first sketch that tiles all terms in one launch, by the usual algorithm."""
    return next(
        each
        for each in derived.tiled_sketches(expression.state, target)
        if "in blocks of threads" in each.name and "split" not in each.name
    )


@pytest.mark.parametrize("name", some_of(TILED | WINDOWS, 4, "tiled"))
@pytest.mark.drawn
def test_draws_compute_what_the_program_means(name: str) -> None:
    expression, drawing = (TILED | WINDOWS)[name], random_source(name)
    first, *others = derived.tiled_sketches(expression.state, grids.SM_80)
    check(expression, first.bound(first.defaults))
    for sketch in drawing.sample(others, min(2, len(others))):
        check(expression, sketch.bound(sketch.sample(drawing)))


def test_what_follows_a_product_is_done_in_its_tiles() -> None:
    state = biased_convolution(64, 64, 14).state
    (launch,) = launches_of(lower(replay(state, default_trace(state, grids.SM_80)))).nests
    assert launch.shared, "both operands are fetched into shared memory"


@pytest.mark.drawn
def test_draws_run_as_cuda() -> None:
    if grids.missing_compiler():
        pytest.skip(grids.missing_compiler())
    drawing, programs, given, expected = random_source(0), [], [], []
    for expression in (*TILED.values(), *WINDOWS.values(), winograd()):
        sketches = [*derived.tiled_sketches(expression.state, grids.SM_80)]
        sketches += derived.batched_winograd_sketches(expression.state, grids.SM_80)
        arrays = expression.arrays()
        for sketch in drawing.sample(sketches, 1):
            programs.append(lower(replay(expression.state, sketch.bound(sketch.sample(drawing)))))
            given.append(arrays)
            expected.append(expression.answers(arrays))
    for results, answers in zip(grids.run_all_on_cpu(programs, given), expected, strict=True):
        for output, answer in answers.items():
            np.testing.assert_allclose(results[output], answer, rtol=1e-5, atol=1e-3)


def test_winograd_computes_the_convolution() -> None:
    expression = winograd()
    sketch = next(derived.batched_winograd_sketches(expression.state, grids.SM_80))
    assert "by Winograd's algorithm" in sketch.name
    program = lower(replay(expression.state, sketch.bound(sketch.defaults)))
    assert len(launches_of(program).nests) == 3
    arrays = expression.arrays()
    (answer,) = expression.answers(arrays).values()
    np.testing.assert_allclose(interpret(program, arrays)["y"], answer, rtol=1e-5, atol=1e-3)


def test_winograd_is_in_the_space_and_nothing_by_rule() -> None:
    """Which algorithm is the faster one is for prices to say."""
    state = conv(7, 1, 512, 512).state
    assert not uses_algorithm(default_trace(state, grids.SM_90A))
    for algorithms in (True, False):
        sketches = space_of(state, grids.SM_90A, algorithms=algorithms).sketches
        assert any(uses_algorithm(each.trace) for each in sketches) is algorithms


def test_blocks_are_numbered_in_groups_where_the_cache_is_small() -> None:
    expression, target = matmul(24, 24, 4), replace(grids.SM_80, l2_bytes=1024)
    sketch = tiled(expression, target)
    tile = {"c_i_positions": 1, "c_i_threads": 2, "c_i_elements": 4, "c_group": 2}
    tile |= {"c_j_positions": 1, "c_j_threads": 8, "c_j_elements": 1}
    trace = sketch.bound(sketch.defaults | tile)
    assert "block_order(c, i_0, j_0, 2)" in format_trace(trace)
    check(expression, trace)


def test_pixels_are_one_axis_of_whole_tiles() -> None:
    expression = conv(7, 1, 64, 64)
    sketch = tiled(expression, grids.SM_80)
    program = lower(replay(expression.state, sketch.bound(sketch.defaults)))
    (launch,) = launches_of(program).nests
    names = {"y_oc_positions", "y_oc_threads", "y_oc_elements"}
    names |= {"y_oh_ow_positions", "y_oh_ow_threads", "y_oh_ow_elements"}
    assert names <= {name for choice in sketch.choices for name in choice.names}
    (row,) = (c.default for c in sketch.choices if "y_oh_ow_threads" in c.names)
    assert 56 % prod(row) == 0  # 49 pixels are 56
    assert len(launch.shared) == 2


@pytest.mark.parametrize("name", ["product_with_rests", "convolution", "pointwise_convolution"])
@pytest.mark.drawn
def test_draws_run_on_a_device(name: str) -> None:
    grids.opencl_device()
    expression, sketch = TILED[name], tiled(TILED[name])
    arrays = expression.arrays()
    expected = expression.answers(arrays)
    for decisions in (sketch.defaults, sketch.sample(random_source(name))):
        program = lower(replay(expression.state, sketch.bound(decisions)))
        results = grids.run_on_opencl(program, arrays)
        for output, answer in expected.items():
            np.testing.assert_array_equal(results[output], answer)


@pytest.mark.parametrize("target", [grids.OPENCL_GENERIC, grids.SM_80], ids=str)
@pytest.mark.drawn
def test_no_draw_is_beyond_the_device(target: GpuTarget) -> None:
    expression, drawing = conv(28, 1, 64, 128), random_source(0)
    sketch = tiled(expression, target)
    for decisions in (sketch.defaults, *(sketch.sample(drawing) for _ in range(8))):
        program = lower(replay(expression.state, sketch.bound(decisions)))
        (launch,) = launches_of(program).nests
        threads = launch.extent(ForKind.THREAD_X)
        shared = sum(room_of(each) * each.dtype.size_bytes for each in launch.shared)
        assert isinstance(threads, int)
        assert isinstance(shared, int)
        assert threads <= target.threads_per_block
        assert 4 * (-threads % target.warp) <= threads
        assert shared <= target.opt_in_shared_bytes


def test_limits_are_those_of_the_lowered_program() -> None:
    expression = matmul(256, 256, 256)
    sketch = tiled(expression)
    limits = {each.what: each for each in sketch.limits if each.what}
    assert limits.keys() == {
        "threads",
        "blocks",
        "idle lanes",
        "registers of a thread",
        "registers of a block",
        "shared memory",
        "vectors across rows",
    }
    large = sketch.defaults | {
        "c_i_positions": 2,
        "c_i_threads": 32,
        "c_i_elements": 4,
        "c_j_positions": 2,
        "c_j_threads": 32,
        "c_j_elements": 4,
        "c_k_steps": 4,
        "c_k_unrolled": 8,
    }
    (launch,) = launches_of(lower(replay(expression.state, sketch.bound(large)))).nests
    assert launch.extent(ForKind.THREAD_X) == 1024 > grids.OPENCL_GENERIC.threads_per_block
    assert sum(room_of(each) * 4 for each in launch.shared) == 2 * (260 + 256) * 32 * 4
    assert not limits["threads"].holds(large)
    assert not limits["shared memory"].holds(large)
    assert limits["idle lanes"].holds(large)
    assert not sketch.is_valid(large)


def test_a_space_says_what_is_cut_off() -> None:
    text = str(space_of(matmul(256, 256, 256).state, grids.OPENCL_GENERIC))
    assert "% cut off: over threads" in text
    assert "% cut off: over shared memory" in text


def test_a_pointwise_convolution_fetches_both_operands_together() -> None:
    sketch = tiled(pointwise_convolution(2048, 512, 7), grids.SM_80)
    lines = format_trace(sketch.bound(sketch.defaults)).splitlines()
    assert "fold_constant(y_left)" in lines
    (threads,) = {line.split("[")[1].split("]")[0] for line in lines if "cooperate" in line}
    assert f"cooperate(y_left_y_product_cache, [{threads}], 4)" in lines
    assert f"cooperate(y_right, [{threads}])" in lines  # rows of 49 pixels do not align
    assert lines[-1] == "pipeline(y_product, ic_0, 3, cp_async)"
    assert [line.split()[-1] for line in lines if line.startswith("bind")] == [
        "block.x)",
        "thread.x)",
    ]


@pytest.mark.parametrize("expression", [softmax(), total()], ids=str)
def test_what_shares_no_operand_is_not_tiled(expression: Expression) -> None:
    for sketch in derived.derived_sketches(expression.state, grids.OPENCL_GENERIC):
        assert "in blocks of threads" not in sketch.name


def test_small_results_get_small_tiles() -> None:
    expression = matmul(3, 2, 5)
    sketch = tiled(expression)
    assert sketch.is_valid(sketch.defaults)
    check(expression, sketch.bound(sketch.defaults))
