"""Derived sketches lower with open decisions and compute what their workloads mean, compiled."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import random_source, some_of
from tests.targets import native_target
from tests.unit.tuning.compiled import Case, check_schedule, workloads
from tests.unit.tuning.helpers import padded_convolution
from tests.unit.tuning.space.test_space_schedules import NETWORKS, one

from tensorwright.expr import Compute, Decision, compute, max_of, placeholder, reduce_axis, sum_over
from tensorwright.graph import Graph, GraphBuilder, program
from tensorwright.loop import For, LoopProgram, Prefetch, lower, simplify_loops, verify, walk
from tensorwright.schedule import format_trace, replay, state_of
from tensorwright.tuning.space import Sketch
from tensorwright.tuning.space.derived import derived_sketches
from tensorwright_lab.loop_interpreter import bind_decisions

pytestmark = pytest.mark.target

TARGET = native_target()


def blocked() -> Graph:
    """Two convolutions: in between, the channels are in blocks."""
    b = GraphBuilder("blocked")
    numbers = np.random.default_rng(3)
    x = b.input("x", (1, 32, 10, 10))
    for _ in range(2):
        w = b.constant(numbers.normal(size=(32, 32, 3, 3)).astype(np.float32))
        x = b.add("relu", b.add("conv", x, w, pads=(1, 1, 1, 1)))
    return b.finish((x,))


def channels_last() -> Compute:
    """A strided convolution in NHWC with its weights in HWIO."""
    conv = padded_convolution((2, 9, 14, 12), 40, stride=2)
    return compute("relu", conv.shape, lambda *at: max_of(conv[at], 0.0))


def grouped_channels_last() -> Compute:
    """A convolution in NHWC of two groups, each with more channels than a vector."""
    x, w = placeholder("x", (1, 7, 9, 8)), placeholder("w", (3, 3, 4, 64))
    p, q, c = reduce_axis("p", 3), reduce_axis("q", 3), reduce_axis("c", 4)
    return compute(
        "grouped",
        (1, 5, 7, 64),
        lambda n, i, j, o: sum_over(x[n, i + p, j + q, c + (o // 32) * 4] * w[p, q, c, o], p, q, c),
    )


OWN = {"conv2d_nhwc": channels_last, "grouped_nhwc": grouped_channels_last}
MORE: dict[str, Callable[[], Graph]] = {
    "conv2d_nchw16c": blocked,
    "conv2d_dilated": one("conv", (1, 6, 13, 12), weights=((20, 6, 3, 3),), dilations=(2, 2)),
    "conv_transpose": one(
        "conv_transpose", (1, 8, 5, 6), weights=((8, 12, 4, 4),), strides=(2, 2), pads=(1,) * 4
    ),
    "conv_transpose_joined": one(
        "conv_transpose", (1, 8, 5, 6), weights=((8, 12, 3, 3),), strides=(2, 2), pads=(1,) * 4
    ),
    "matmul_prime": one("matmul", (61, 37), weights=((37, 67),), then="relu"),
    "matmul_small": one("matmul", (4, 300), (300, 5)),
}
SEVERAL = (
    "conv2d_nchw16c",
    "conv_transpose_joined",
    "conv2d_nhwc",
    "grouped_nhwc",
    "matmul_prime",
    "conv_depthwise",
)
NAMES = (
    *OWN, *MORE, "matmul_odd", "matmul_wide", "matmul_batched", "gemm_transposed",
    "conv1d", "conv2d", "conv3d", "conv_depthwise", "conv_grouped", "softmax", "layer_norm",
    "attention", "sum_of_all", "max_of_rows", "max_pool",
)  # fmt: skip


@functools.cache
def cases(name: str) -> tuple[Case, ...]:
    if name in OWN:
        workload = program((OWN[name](),), frozenset({"w"}))
        numbers = np.random.default_rng(2)
        shapes = [tuple(int(str(n)) for n in tensor.shape) for tensor in workload.inputs]
        return ((workload, tuple(numbers.normal(size=s).astype(np.float32) for s in shapes)),)
    return workloads((MORE.get(name) or NETWORKS[name])(), TARGET)


def sketches_of(case: Case) -> tuple[Sketch, ...]:
    state = state_of(case[0])
    return tuple(derived_sketches(state, TARGET, most=20))


@pytest.mark.parametrize("name", some_of(NAMES, 8, "derived"))
@pytest.mark.drawn
def test_samples_are_right(name: str) -> None:
    source = random_source(name)
    for case in cases(name):
        sketches = sketches_of(case)
        for sketch in source.sample(sketches, min(3, len(sketches))):
            decisions = sketch.sample(source)
            assert sketch.is_valid(decisions)
            check_schedule(case, format_trace(sketch.bound(decisions)), TARGET)


@pytest.mark.parametrize("name", some_of(SEVERAL, 2, "derived everywhere"))
@pytest.mark.drawn
def test_defaults_are_right_everywhere(name: str) -> None:
    for case in cases(name)[:1]:
        for sketch in sketches_of(case):
            check_schedule(case, format_trace(sketch.bound(sketch.defaults)), TARGET)


@settings(max_examples=25)
@given(st.sampled_from(NAMES), st.integers(0, 10_000))
def test_open_and_taken_decisions_agree(name: str, seed: int) -> None:
    source = random.Random(seed)
    case = source.choice(cases(name))
    state = state_of(case[0])
    sketch = source.choice(sketches_of(case))
    decisions = sketch.sample(source)
    values = {Decision(name): value for name, value in decisions.items()}
    late = bind_decisions(lower(replay(state, sketch.trace)), values)
    early = lower(replay(state, sketch.bound(decisions)))
    verify(late)
    verify(early)
    assert _extents(late) == _extents(simplify_loops(early))


def _extents(program: LoopProgram) -> list[int]:
    """How often the loops run, those of one iteration and those that only prefetch aside."""
    loops = (each for each in walk(program.body) if isinstance(each, For))
    loops = (loop for loop in loops if not isinstance(loop.body, Prefetch))
    return [int(str(loop.extent)) for loop in loops if loop.extent != 1]
