"""Tiled folds for graphics processors: what is derived, its limits, what draws compute."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from tests.grids import (
    CUDA_BACKEND,
    OPENCL_GENERIC,
    SM_80,
    missing_compiler,
    opencl_device,
    run_all_on_cpu,
    run_on_opencl,
)
from tests.unit.schedule.expressions import Expression, check, conv, matmul, softmax, total

from tensorwright.base import GpuTarget
from tensorwright.expr import compute, max_of, placeholder, reduce_axis, sum_over
from tensorwright.loop import LoopProgram, launches_of, lower, room_of
from tensorwright.schedule import ForKind, replay
from tensorwright.tuning.space import Sketch, heuristic_sketches, space_of
from tensorwright.tuning.space.derived import derived_sketches
from tensorwright.tuning.space.sketch import DeviceLimit


def pointwise_convolution(channels: int, filters: int, size: int) -> Expression:
    """A 1x1 convolution, then bias and ReLU."""
    x, w = placeholder("x", (channels, size, size)), placeholder("w", (filters, channels))
    bias, ic = placeholder("bias", (filters,)), reduce_axis("ic", channels)
    y = compute("y", (filters, size, size), lambda o, h, v: sum_over(x[ic, h, v] * w[o, ic], ic))
    relu = compute("relu", y.shape, lambda o, h, v: max_of(y[o, h, v] + bias[o], 0.0))
    return Expression((relu,), frozenset({"w", "bias"}))


def depthwise() -> Expression:
    """Each output reads its own channel: threads have nothing to share but weights."""
    x, w = placeholder("x", (32, 9, 9)), placeholder("w", (32, 3, 3))
    p, q = reduce_axis("p", 3), reduce_axis("q", 3)
    y = compute("y", (32, 7, 7), lambda c, h, v: sum_over(x[c, h + p, v + q] * w[c, p, q], p, q))
    return Expression((y,), frozenset({"w"}))


TILED = {
    "product": matmul(24, 40, 18),
    "product_with_rests": matmul(13, 22, 10),
    "product_with_relu": matmul(33, 16, 7, with_relu=True),
    "convolution": conv(7, 1, 4, 8),
    "strided_convolution": conv(9, 2, 6, 8),
    "pointwise_convolution": pointwise_convolution(24, 32, 7),
}


def tiled(expression: Expression, target: GpuTarget = OPENCL_GENERIC) -> Sketch:
    """The first sketch of the space, which tiles."""
    sketch = space_of(expression.state, target).sketches[0]
    assert "in blocks of threads" in sketch.name
    return sketch


@pytest.mark.parametrize("name", TILED)
def test_draws_compute_what_the_program_means(name: str) -> None:
    expression, drawing = TILED[name], random.Random(name)
    sketch = tiled(expression)
    for decisions in (sketch.defaults, *(sketch.sample(drawing) for _ in range(2))):
        check(expression, sketch.bound(decisions))


@pytest.mark.parametrize("name", ["product_with_rests", "convolution", "pointwise_convolution"])
def test_draws_run_on_a_device(name: str) -> None:
    opencl_device()
    expression, sketch = TILED[name], tiled(TILED[name])
    arrays = expression.arrays()
    expected = expression.answers(arrays)
    for decisions in (sketch.defaults, sketch.sample(random.Random(name))):
        program = lower(replay(expression.state, sketch.bound(decisions)))
        results = run_on_opencl(program, arrays)
        for output, answer in expected.items():
            np.testing.assert_array_equal(results[output], answer)


@pytest.mark.parametrize("target", [OPENCL_GENERIC, SM_80], ids=str)
def test_no_draw_is_beyond_the_device(target: GpuTarget) -> None:
    expression, drawing = conv(28, 1, 64, 128), random.Random(0)
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
    limits = {each.what: each for each in sketch.limits if isinstance(each, DeviceLimit)}
    assert limits.keys() == {"threads of a block", "idle lanes", "bytes of shared memory"}
    large = sketch.defaults | {
        "c_i_threads": 32,
        "c_i_each": 8,
        "c_j_threads": 32,
        "c_j_each": 8,
        "c_k_part": 32,
    }
    (launch,) = launches_of(lower(replay(expression.state, sketch.bound(large)))).nests
    assert launch.extent(ForKind.THREAD_X) == 1024 > OPENCL_GENERIC.threads_per_block
    assert sum(room_of(each) * 4 for each in launch.shared) == 2 * 256 * 32 * 4
    assert not limits["threads of a block"].holds(large)
    assert not limits["bytes of shared memory"].holds(large)
    assert limits["idle lanes"].holds(large)
    assert not sketch.is_valid(large)


def test_a_space_says_what_is_cut_off() -> None:
    text = str(space_of(matmul(256, 256, 256).state, OPENCL_GENERIC))
    assert "% cut off: too many threads of a block" in text
    assert "% cut off: too many bytes of shared memory" in text


def fetching_in_vectors(channels: int, filters: int) -> tuple[Expression, LoopProgram]:
    """A program of the derived space: blocks hold the whole image of 7 x 7."""
    expression = pointwise_convolution(channels, filters, 7)
    sketch = tiled(expression, SM_80)
    whole = {"y_h_threads": 7, "y_h_each": 1, "y_v_threads": 7, "y_v_each": 1}
    decisions = sketch.defaults | whole | {"y_x_vector": 4, "y_w_vector": 4}
    assert sketch.genes_of(decisions) is not None
    assert sketch.is_valid(decisions)
    return expression, lower(replay(expression.state, sketch.bound(decisions)))


def test_a_pointwise_convolution_fetches_both_operands_in_vectors() -> None:
    """Of 2048 > 512 channels: blocks and threads bound, vectors of both operands into shared
    memory, bias and ReLU where a thread stores.
    """
    _, program = fetching_in_vectors(2048, 512)
    (launch,) = launches_of(program).nests
    assert launch.extent(ForKind.THREAD_X) == 392
    assert [each.name for each in launch.shared] == ["x_y_cache", "w_y_cache"]
    text = CUDA_BACKEND.emit(program, SM_80).text
    assert "blockIdx.x" in text
    for operand in ("x", "w"):
        fetch = rf"\*\(float4 \*\)&{operand}_y_cache\[.*\] = \(\*\(const float4 \*\)&{operand}\["
        assert re.search(fetch, text)
    assert re.search(r"relu\[.*\] = max_f32\(\(y\[.*\] \+ bias\[.*\]\), 0.0f\);", text)


def test_fetches_in_vectors_are_right() -> None:
    if missing_compiler():
        pytest.skip(missing_compiler())
    expression, program = fetching_in_vectors(32, 16)
    arrays = expression.arrays()
    (results,) = run_all_on_cpu([program], [arrays])
    np.testing.assert_array_equal(results["relu"], expression.answers(arrays)["relu"])


@pytest.mark.parametrize("expression", [softmax(), total(), depthwise()], ids=str)
def test_what_shares_no_operand_is_not_tiled(expression: Expression) -> None:
    (sketch,) = derived_sketches(expression.state, OPENCL_GENERIC)
    assert sketch.name == "an element a thread"
    assert heuristic_sketches(expression.state, OPENCL_GENERIC)[0].name == sketch.name


def test_small_results_get_small_tiles() -> None:
    expression = matmul(3, 2, 5)
    sketch = tiled(expression)
    assert sketch.is_valid(sketch.defaults)
    check(expression, sketch.bound(sketch.defaults))
