"""The tile rule on programs whose result is stored in another order than it is computed in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorwright.base import detect_target
from tensorwright.graph import Graph, GraphBuilder, choose_layouts, interpret, partition, simplify
from tensorwright.pipeline import finish
from tensorwright.records import MemoryStore
from tensorwright.schedule import initial_state
from tensorwright.tune import space_of

_RANDOM = np.random.default_rng(7)


def weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return _RANDOM.standard_normal(shape, np.float32)


def enlarging() -> Graph:
    """Two transposed convolutions: their phases are interleaved when stored."""
    b = GraphBuilder("enlarging")
    x = b.input("x", (1, 32, 5, 5))
    for outputs in (32, 3):
        w = b.constant(weights(b.shape_of(x)[1], outputs, 4, 4))
        x = b.add("conv_transpose", x, w, strides=(2, 2), pads=(1, 1, 1, 1))
        x = b.add("relu", x)
    return b.finish([x])


def heads() -> Graph:
    """A projection whose columns become heads, and whose rows become the last dimension."""
    b = GraphBuilder("heads")
    x = b.input("x", (1, 24, 40))
    y = b.add("add", b.add("matmul", x, b.constant(weights(40, 64))), b.constant(weights(64)))
    y = b.add("reshape", y, shape=(1, 24, 4, 16))
    return b.finish([b.add("transpose", y, perm=(0, 2, 3, 1))])


def channels() -> Graph:
    """A product whose columns become the channels of an image."""
    b = GraphBuilder("channels")
    x = b.add("gemm", b.input("x", (1, 20)), b.constant(weights(20, 32 * 16)))
    x = b.add("reshape", x, shape=(1, 32, 4, 4))
    return b.finish([b.add("conv", x, b.constant(weights(32, 32, 3, 3)))])


def grouped() -> Graph:
    """1x1 convolutions of groups whose channels fill no block: the layout stays plain."""
    b = GraphBuilder("grouped")
    x = b.add("relu", b.input("x", (1, 51, 28, 28)))
    x = b.add("conv", x, b.constant(weights(51, 17, 1, 1)), groups=3)
    return b.finish([b.add("relu", b.add("conv", x, b.constant(weights(51, 17, 1, 1)), groups=3))])


def pooled() -> Graph:
    """Pooling with a stride, in plain layout."""
    b = GraphBuilder("pooled")
    window = {"kernel": (3, 3), "strides": (2, 2)}
    x = b.apply("max_pool", (b.input("x", (1, 5, 39, 39)),), **window, pads=(1, 1, 1, 1))[0]
    return b.finish(b.apply("average_pool", (x,), **window, pads=(0, 0, 1, 1)))


@pytest.mark.parametrize("make", [enlarging, heads, channels, grouped, pooled])
def test_values(make: Callable[[], Graph]) -> None:
    graph = make()
    target = detect_target()
    inputs = {name: weights(*type_.shape) for name, type_ in graph.input_types.items()}
    parts = partition(choose_layouts(simplify(graph), target))
    found = finish(parts, target, 2, MemoryStore()).run(inputs)
    for name, expected in interpret(graph, inputs).items():
        assert np.abs(found[name] - expected).max() <= 1e-5 * np.abs(expected).max()


def test_interleaved_phases_are_tiled_along_their_own_axes() -> None:
    target = detect_target()
    parts = partition(choose_layouts(simplify(enlarging()), target))
    workload = parts.workloads[0]
    trace = space_of(initial_state(workload.outputs, workload.constants), target).default_trace
    assert "cache_write(conv_transpose_phases)" in map(str, trace)


def test_the_channels_of_a_group_are_rows() -> None:
    target = detect_target()
    parts = partition(simplify(grouped()))
    workload = parts.workloads[-1]
    trace = space_of(initial_state(workload.outputs, workload.constants), target).default_trace
    assert "split(relu, c, [17])" in map(str, trace)


def test_strided_pooling_in_plain_layout_has_vectors() -> None:
    target = detect_target()
    for workload in partition(simplify(pooled())).workloads:
        trace = space_of(initial_state(workload.outputs, workload.constants), target).default_trace
        assert "vectorize(" in "".join(map(str, trace))
