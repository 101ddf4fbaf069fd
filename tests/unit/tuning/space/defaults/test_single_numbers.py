"""Stages without an axis: scales, sums of everything, dot products. Every sketch takes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.targets import native_target
from tests.unit.tuning.compiled import check_network, check_schedule, weights, workloads

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.space import space_of

pytestmark = pytest.mark.target

TARGET = native_target()


def codes(b: GraphBuilder, x: str) -> tuple[str, str, str]:
    """Bytes by a scale that the network computes; their zero point and their scale."""
    low, scale = b.input("low", ()), b.input("scale", ())
    zero = b.add("round", b.add("clip", b.add("div", low, scale), min=0.0, max=255.0))
    shifted = b.add("add", b.add("round", b.add("div", x, scale)), zero)
    whole = b.add("cast", b.add("clip", shifted, min=0.0, max=255.0), to=DType.U8)
    return whole, b.add("cast", zero, to=DType.U8), scale


def integers(size: int, channels: int) -> Graph:
    """A convolution of codes; two of them add up, so that its sums stay integers."""
    b = GraphBuilder("integers")
    whole, zero, scale = codes(b, b.input("x", (1, channels, 20, 20)))
    w = b.constant((weights(32, channels, size, size) * 100).astype(np.int8))
    sums = b.add("conv_integer", whole, w, zero, pads=(size // 2,) * 4)
    both = b.add("cast", b.add("add", sums, sums), to=DType.F32)
    return b.finish([b.add("relu", b.add("mul", both, scale))])


def floats(size: int, channels: int) -> Graph:
    """The same, of which the sums become floats at once."""
    b = GraphBuilder("floats")
    whole, zero, scale = codes(b, b.input("x", (1, channels, 20, 20)))
    w = b.constant((weights(32, channels, size, size) * 100).astype(np.int8))
    sums = b.add("conv_integer", whole, w, zero, pads=(size // 2,) * 4)
    return b.finish([b.add("mul", b.add("cast", sums, to=DType.F32), scale)])


def product_of_codes() -> Graph:
    b = GraphBuilder("codes")
    whole, zero, scale = codes(b, b.input("x", (48, 64)))
    w = b.constant((weights(64, 40) * 100).astype(np.int8))
    sums = b.add("cast", b.add("matmul_integer", whole, w, zero), to=DType.F32)
    return b.finish([b.add("mul", sums, scale)])


def dot_product() -> Graph:
    b = GraphBuilder("dot")
    dot = b.add("einsum", b.input("x", (300,)), b.input("y", (300,)), equation="i,i->")
    return b.finish([b.add("mul", b.input("z", (8, 40)), dot)])


def scaled_by_a_norm() -> Graph:
    b = GraphBuilder("norm")
    x = b.input("x", (30, 40))
    norm = b.add("reduce_l2", x, axes=(0, 1), keepdims=False)
    product = b.add("matmul", b.add("div", x, norm), b.constant(weights(40, 32)))
    return b.finish([b.add("softmax", b.add("mul", product, norm), axis=1)])


NETWORKS: dict[str, Callable[[], Graph]] = {
    "integers 7x7": lambda: integers(7, 8),
    "integers 3x3": lambda: integers(3, 32),
    "floats 7x7": lambda: floats(7, 8),
    "floats 3x3": lambda: floats(3, 32),
    "product": product_of_codes,
    "dot": dot_product,
    "norm": scaled_by_a_norm,
}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())
def test_by_rule(network: Callable[[], Graph]) -> None:
    check_network(network())


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())
def test_every_sketch(network: Callable[[], Graph]) -> None:
    for case in workloads(network(), TARGET):
        space = space_of(state_of(case[0]), TARGET)
        assert space.sketches
        check_schedule(case, format_trace(space.default_trace), TARGET)
