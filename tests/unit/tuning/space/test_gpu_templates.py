"""AutoTVM's templates for graphics processors compute what programs mean, within the device."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from tests.grids import MACHINES, OPENCL_GENERIC, SM_80, Machine, opencl_device, run_all_on_cpu
from tests.grids import run_on_opencl
from tests.unit.schedule.expressions import Expression, check, softmax

from tensorwright.base import GpuTarget
from tensorwright.expr import (
    Compute,
    all_of,
    compute,
    max_of,
    placeholder,
    reduce_axis,
    select,
    sum_over,
)
from tensorwright.loop import launches_of, lower, room_of
from tensorwright.schedule import ForKind, replay
from tensorwright.tuning.space import Sketch, SpaceKind, space_of
from tensorwright.tuning.space.templates import template_sketches


def image(channels: int, size: int, pad: int) -> Compute:
    """A batch of two images with zeros around."""
    x = placeholder("x", (2, channels, size, size))

    def pixel(n, c, h, v):  # type: ignore[no-untyped-def]
        inside = all_of(pad <= h, h < size + pad, pad <= v, v < size + pad)
        return select(inside, x[n, c, h - pad, v - pad], 0.0)

    return compute("pad", (2, channels, size + 2 * pad, size + 2 * pad), pixel)


def convolution(stride: int = 1) -> Expression:
    """3 x 3 taps, then bias and ReLU."""
    pad, w, bias = image(6, 8, 1), placeholder("w", (16, 6, 3, 3)), placeholder("bias", (16,))
    c, p, q = reduce_axis("c", 6), reduce_axis("p", 3), reduce_axis("q", 3)
    size = 8 // stride
    y = compute(
        "y",
        (2, 16, size, size),
        lambda n, f, h, v: sum_over(
            pad[n, c, h * stride + p, v * stride + q] * w[f, c, p, q], c, p, q
        ),
    )
    relu = compute("relu", y.shape, lambda n, f, h, v: max_of(y[n, f, h, v] + bias[f], 0.0))
    return Expression((relu,), frozenset({"w", "bias"}))


def pointwise_convolution() -> Expression:
    """1 x 1, stride 2."""
    x, w = placeholder("x", (1, 32, 14, 14)), placeholder("w", (24, 32, 1, 1))
    c = reduce_axis("c", 32)
    y = compute(
        "y", (1, 24, 7, 7), lambda n, f, h, v: sum_over(x[n, c, h * 2, v * 2] * w[f, c, 0, 0], c)
    )
    return Expression((y,), frozenset({"w"}))


def depthwise() -> Expression:
    pad, w = image(8, 6, 1), placeholder("w", (8, 1, 3, 3))
    p, q = reduce_axis("p", 3), reduce_axis("q", 3)
    y = compute(
        "y",
        (2, 8, 6, 6),
        lambda n, f, h, v: sum_over(pad[n, f, h + p, v + q] * w[f, 0, p, q], p, q),
    )
    return Expression((y,), frozenset({"w"}))


def dense(rows: int, columns: int, terms: int) -> Expression:
    x, w, k = placeholder("x", (rows, terms)), placeholder("w", (terms, columns)), None
    k = reduce_axis("k", terms)
    y = compute("y", (rows, columns), lambda i, j: sum_over(x[i, k] * w[k, j], k))
    relu = compute("relu", y.shape, lambda i, j: max_of(y[i, j], 0.0))
    return Expression((relu,), frozenset({"w"}))


def batch() -> Expression:
    x, w, k = placeholder("x", (3, 12, 20)), placeholder("w", (3, 20, 16)), reduce_axis("k", 20)
    y = compute("y", (3, 12, 16), lambda b, i, j: sum_over(x[b, i, k] * w[b, k, j], k))
    return Expression((y,))


PROGRAMS: dict[str, tuple[Callable[[], Expression], set[str]]] = {
    "convolution": (convolution, {"conv2d_nchw"}),
    "strided": (lambda: convolution(2), {"conv2d_nchw"}),
    "pointwise": (pointwise_convolution, {"conv2d_nchw"}),
    "depthwise": (depthwise, {"depthwise_conv2d_nchw"}),
    "large_batch": (lambda: dense(64, 64, 24), {"dense_large_batch", "dense_small_batch"}),
    "small_batch": (lambda: dense(1, 10, 96), {"dense_large_batch", "dense_small_batch"}),
    "batch": (batch, {"batch_matmul"}),
}


def families(expression: Expression, target: GpuTarget = OPENCL_GENERIC) -> dict[str, list[Sketch]]:
    found: dict[str, list[Sketch]] = {}
    for sketch in template_sketches(expression.state, target):
        found.setdefault(sketch.family, []).append(sketch)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_draws_are_right_and_within_the_device(name: str) -> None:
    make, wanted = PROGRAMS[name]
    expression, drawing = make(), random.Random(name)
    assert families(expression).keys() == wanted
    programs = []
    for sketches in families(expression).values():
        first, drawn = sketches[0], drawing.choice(sketches)
        check(expression, drawn.bound(drawn.sample(drawing)))
        for decisions in (first.defaults, first.sample(drawing)):
            programs.append(lower(replay(expression.state, first.bound(decisions))))
    for program in programs:
        for launch in launches_of(program).nests:
            threads = launch.extent(ForKind.THREAD_X)
            assert isinstance(threads, int)
            assert threads <= OPENCL_GENERIC.threads_per_block
            shared = [room_of(each) * each.dtype.size_bytes for each in launch.shared]
            assert sum(shared) <= OPENCL_GENERIC.opt_in_shared_bytes
    arrays = expression.arrays()
    expected = expression.answers(arrays)
    for results in run_all_on_cpu(programs, [arrays] * len(programs)):
        for output, answer in expected.items():
            np.testing.assert_array_equal(results[output], answer)
