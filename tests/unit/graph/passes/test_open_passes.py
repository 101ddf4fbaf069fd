"""Passes over named sizes: what is true for all numbers is done, what is open stays."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.graph.small_networks import Maker

from tensorwright.base import DType, cpu_target
from tensorwright.expr import named_size
from tensorwright.graph import (
    AliasCall,
    ConcatInPlace,
    Graph,
    GraphBuilder,
    KernelCall,
    choose_layouts,
    compute_float16_as_float32,
    partition,
    simplify,
    verify,
)
from tensorwright.graph.passes.quantized import round_in_floats

n = named_size("n")
m = named_size("m", least=4, divisor=4)
TARGET = cpu_target("x86-64-avx2")


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in verify(graph).nodes]


def steps(graph: Graph) -> list[str]:
    """The names of kernels, and what other steps are."""
    found = partition(graph).steps
    return [s.workload.name if isinstance(s, KernelCall) else type(s).__name__ for s in found]


def test_scales_go_into_weights_for_any_batch() -> None:
    k = Maker("scales")
    x = k.builder.input("x", (n, 8, m, m))
    x = k.add("conv", k.add("pad", x, pads=(0, 0, 1, 1, 0, 0, 1, 1)), k.weight(16, 8, 3, 3))
    statistics = (k.weight(16), k.weight(16), k.weight(16), k.builder.constant(np.ones(16, "f4")))
    x = k.add("batch_norm", x, *statistics)
    assert operators(simplify(k.finish(k.add("relu", x)))) == ["conv", "relu"]


def test_pads_by_a_size_stay() -> None:
    k = Maker("pads")
    x = k.builder.input("x", (n, 8, m, m))
    x = k.add("pad", x, pads=(0, 0, 0, 0, 0, 0, m - 1, 0))
    graph = k.finish(k.add("conv", x, k.weight(16, 8, 3, 3)))
    assert operators(simplify(graph)) == ["pad", "conv"]


def test_what_a_size_repeats_is_not_folded() -> None:
    b = GraphBuilder("repeated")
    x = b.input("x", (n, 3))
    row = b.constant(np.ones((1, 3), np.float32))
    spread = b.add("expand", b.add("neg", b.add("neg", row)), shape=(n, 3))
    filled = b.add("full", shape=(2,), value=n, dtype=DType.F32)
    graph = simplify(b.finish([b.add("add", x, spread), filled]))
    assert operators(graph) == ["expand", "full", "add"]


@pytest.mark.parametrize(
    ("position", "expected"),
    [(0, ["slice", "reshape"]), (-1, ["slice", "reshape"]), (3, ["slice", "reshape"])],
)
def test_a_position_that_is_always_inside_is_a_slice(position: int, expected: list[str]) -> None:
    b = GraphBuilder("inside")
    x = b.input("x", (m, 3))
    graph = b.finish([b.add("gather", x, b.constant(np.int64(position)), axis=0)])
    assert operators(simplify(graph)) == expected


@pytest.mark.parametrize("position", [1, -2])
def test_a_position_that_may_be_outside_stays(position: int) -> None:
    b = GraphBuilder("outside")
    graph = b.finish([b.add("gather", b.input("x", (n, 3)), b.constant(np.int64(position)))])
    assert operators(simplify(graph)) == ["gather"]


def test_reshapes_and_identities_of_sizes_go() -> None:
    b = GraphBuilder("reshapes")
    x = b.input("x", (n, m, 2))
    y = b.add("reshape", b.add("reshape", x, shape=(n * m, 2)), shape=(n, m, 2))
    y = b.add("slice", b.add("relu", y), starts=(0,), ends=(1 << 40,), axes=(1,))
    y = b.add("transpose", b.add("transpose", y, perm=(1, 0, 2)), perm=(1, 0, 2))
    assert operators(simplify(b.finish([y]))) == ["relu"]
    b = GraphBuilder("turned")
    x = b.input("x", (n, m))  # n may be 1, and nothing moves then; but it need not be
    assert operators(simplify(b.finish([b.add("transpose", x, perm=(1, 0))]))) == ["transpose"]


def test_halves_of_any_size_are_computed_in_floats() -> None:
    b = GraphBuilder("halves")
    graph = b.finish([b.add("exp", b.input("x", (n, 3), DType.F16))])
    assert operators(compute_float16_as_float32(graph)) == ["cast", "exp", "cast"]


def test_rounding_needs_one_scale_for_all() -> None:
    b = GraphBuilder("codes")
    x, scale = b.input("x", (2, n)), b.input("scale", (n,))
    codes = b.add("quantize_linear", x, scale, axis=1)
    graph = b.finish([b.add("dequantize_linear", codes, scale, axis=1)])
    assert round_in_floats(graph) == (graph, 0)


def test_channels_that_are_a_size_stay_plain() -> None:
    for channels, is_blocked in ((16, True), (16 * n, False)):
        b = GraphBuilder("channels")
        x = b.input("x", (n, channels, m + 4, m + 4))
        y = b.add("max_pool", b.add("relu", x), kernel=(3, 3), pads=(1, 1, 1, 1))
        w = b.constant(np.ones((16, 16, 3, 3), np.float32))
        z = y if channels != 16 else b.add("conv", b.add("conv", y, w), w)
        graph = choose_layouts(b.finish([b.add("relu", z)]), TARGET)
        assert bool(graph.layouts) == is_blocked


def test_views_begin_at_numbers() -> None:
    b = GraphBuilder("views")
    x = b.add("relu", b.input("x", (2 * m, 16)))
    first = b.add("slice", x, starts=(0,), ends=(m,), axes=(0,))
    second = b.add("slice", x, starts=(4,), ends=(m,), axes=(0,))
    third = b.add("slice", x, starts=(m,), ends=(2 * m,), axes=(0,))
    graph = b.finish([b.add("reshape", x, shape=(m, 2, 16)), first, second, third])
    offsets = [s.offset_bytes for s in partition(graph).steps if isinstance(s, AliasCall)]
    assert sorted(offsets) == [0, 0, 256]
    assert sorted(steps(graph)) == ["AliasCall", "AliasCall", "AliasCall", "relu", "slice"]


def test_parts_that_begin_at_a_size_are_copied() -> None:
    def joined(rows: tuple) -> list[str]:
        b = GraphBuilder("joined")
        parts = [b.add("relu", b.input(f"x{at}", (count, 16))) for at, count in enumerate(rows)]
        return steps(b.finish([b.add("concat", *parts, axis=0)]))

    assert joined((4, 8, n)) == ["relu", "relu", "relu", ConcatInPlace.__name__]
    assert joined((n, 4)) == ["relu_relu_concat"]
