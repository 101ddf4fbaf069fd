"""Products of codes as sums of floats: the same numbers, where they are floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder, interpret, simplify, verify

RANDOM = np.random.default_rng(3)
X = RANDOM.integers(0, 256, (2, 8, 6, 6)).astype(np.uint8)
ROWS = RANDOM.integers(0, 256, (5, 200)).astype(np.uint8)


def bytes_of(*shape: int, largest: int = 128) -> NDArray[np.int8]:
    return RANDOM.integers(-largest, largest, shape).astype(np.int8)


def convolution(zeros: tuple[NDArray[Any], ...], uses: int = 1) -> Graph:
    b = GraphBuilder()
    x = b.input("x", X.shape, DType.U8)
    parts = [b.constant(each) for each in (bytes_of(6, 8, 3, 3), *zeros)]
    sums = b.add("conv_integer", x, *parts, pads=(1, 1, 1, 1))
    return b.finish([b.add("cast", sums, to=DType.F32), *[b.add("abs", sums)] * (uses - 1)])


def product(weights: NDArray[Any], zeros: tuple[NDArray[Any], ...] = ()) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (5, len(weights)), DType.U8)
    sums = b.add("matmul_integer", x, b.constant(weights), *map(b.constant, zeros))
    return b.finish([b.add("cast", sums, to=DType.F32)])


def becomes_floats(graph: Graph, x: NDArray[Any]) -> None:
    """No integer is left but those given, and the numbers are the same."""
    simple = verify(simplify(graph))
    assert {node.operator for node in simple.nodes} <= {"cast", "sub", "conv", "matmul", "reshape"}
    (expected,), (found,) = (interpret(each, {"x": x}).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "zeros",
    [
        (),
        (np.array(7, np.uint8),),
        (np.array([200], np.uint8), np.array(-3, np.int8)),
        (np.array(0, np.uint8), bytes_of(6)),
    ],
)
def test_convolutions(zeros: tuple[NDArray[Any], ...]) -> None:
    becomes_floats(convolution(zeros), X)


@pytest.mark.parametrize(
    "zeros",
    [(), (np.array(9, np.uint8), np.array(5, np.int8)), (np.array(9, np.uint8), bytes_of(7))],
)
def test_products(zeros: tuple[NDArray[Any], ...]) -> None:
    becomes_floats(product(bytes_of(200, 7), zeros), ROWS)


def test_sums_that_floats_would_round_stay_integers() -> None:
    operators = [n.operator for n in simplify(product(np.full((600, 4), 127, np.int8))).nodes]
    assert operators == ["matmul_integer", "cast"]


def test_sums_that_are_read_as_integers_stay_so() -> None:
    assert "conv_integer" in [n.operator for n in simplify(convolution((), uses=2)).nodes]


def test_a_zero_point_for_each_row_stays() -> None:
    zeros = (RANDOM.integers(0, 9, 5).astype(np.uint8),)
    assert "matmul_integer" in [
        n.operator for n in simplify(product(bytes_of(200, 4), zeros)).nodes
    ]


@pytest.mark.parametrize("zero", [(), (np.array(30, np.uint8),)])
def test_codes_that_are_only_multiplied_are_not_made(zero: tuple[NDArray[Any], ...]) -> None:
    b = GraphBuilder()
    x, scale = b.input("x", (5, 200)), b.constant(np.array(0.02, np.float32))
    zeros = tuple(map(b.constant, zero))
    codes = b.add("quantize_linear", x, scale, *zeros)
    sums = b.add("matmul_integer", codes, b.constant(bytes_of(200, 7)), *zeros)
    graph = b.finish([b.add("cast", sums, to=DType.F32)])
    simple = verify(simplify(graph))
    assert {kind.dtype for kind in simple.types.values()} == {DType.F32}
    rows = {"x": RANDOM.standard_normal((5, 200)).astype(np.float32)}
    (expected,), (found,) = (interpret(each, rows).values() for each in (graph, simple))
    np.testing.assert_array_equal(found, expected)
