"""Codes from product to product: stored, moved and joined as bytes, made without a division."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.targets import AVX2, AVX512

from tensorwright.base import DType
from tensorwright.graph import Graph, GraphBuilder, interpret, run_target_passes, simplify, verify

RANDOM = np.random.default_rng(5)
VNNI = replace(AVX512, features=(*AVX512.features, "avx512vnni"))
IMAGE = {"x": RANDOM.standard_normal((1, 16, 6, 6)).astype(np.float32)}


class Quantised:
    """A network in which numbers between nodes are those of codes."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()

    def rounded(self, name: str, step: float = 0.125, zero: int = 0) -> str:
        parts = [self._constant(step, np.float32), self._constant(zero, np.uint8)]
        codes = self.builder.add("quantize_linear", name, *parts)
        return self.builder.add("dequantize_linear", codes, *parts)

    def convolution(self, name: str, columns: int = 16) -> str:
        b = self.builder
        weights = b.constant(RANDOM.integers(-9, 9, (columns, 16, 1, 1)).astype(np.int8))
        bias = b.constant(RANDOM.standard_normal(columns).astype(np.float32))
        w = b.add("dequantize_linear", weights, self._constant(0.03125, np.float32))
        return b.add("conv", name, w, bias)

    def _constant(self, value: float, kind: Any) -> str:
        return self.builder.constant(np.asarray(value, kind))

    def finish(self, *names: str) -> Graph:
        pooled = [self.builder.add("global_average_pool", name) for name in names]
        return self.builder.finish(pooled)


def residual(zero: int) -> Graph:
    made = Quantised()
    x = made.rounded(made.builder.input("x", IMAGE["x"].shape), zero=100)
    first = made.rounded(made.builder.add("relu", made.convolution(x)))
    second = made.rounded(made.convolution(first), zero=zero)
    total = made.rounded(made.builder.add("relu", made.builder.add("add", second, first)), 0.25)
    return made.finish(made.convolution(total))


def joined(step: float) -> Graph:
    made = Quantised()
    x = made.rounded(made.builder.input("x", IMAGE["x"].shape), zero=100)
    y = made.rounded(made.builder.add("relu", made.convolution(x)))
    parts = [made.builder.add("relu", made.convolution(y, 8)) for _ in range(2)]
    rounded = [made.rounded(parts[0], 0.25), made.rounded(parts[1], step)]
    whole = made.rounded(made.builder.add("concat", *rounded, axis=1), 0.25)
    pooled = made.rounded(
        made.builder.add("max_pool", whole, kernel=(3, 3), pads=(1, 1, 1, 1)), 0.25
    )
    return made.finish(made.convolution(pooled))


def lowered(graph: Graph, target: Any = VNNI) -> Graph:
    return verify(run_target_passes(simplify(graph), target))


def results(graph: Graph) -> list[NDArray[Any]]:
    return [*interpret(graph, IMAGE).values()]


def operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


@pytest.mark.parametrize("zero", [0, 90])
def test_a_residual_is_stored_as_codes_and_scaled_with_what_it_is_added_to(zero: int) -> None:
    graph = residual(zero)
    simple = lowered(graph)
    made = operators(simple)
    assert made.count("div") == 1  # of the input
    assert made.count("relu") == made.count("quantize_linear") == 0
    (read,) = (node for node in simple.nodes if node.operator == "dequantize_linear")
    assert simple.types[read.inputs[0]].dtype is DType.U8
    for expected, found in zip(results(graph), results(simple), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("step", [0.25, 0.5])
def test_codes_are_joined_and_pooled(step: float) -> None:
    graph = joined(step)
    simple = lowered(graph)
    moved = [node for node in simple.nodes if node.operator in ("concat", "max_pool")]
    assert [simple.types[node.outputs[0]].dtype for node in moved] == [DType.U8] * 2
    assert operators(simple).count("round") == (4 if step == 0.25 else 5)
    for expected, found in zip(results(graph), results(simple), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_where_bytes_are_not_multiplied_nothing_is_stored_as_codes() -> None:
    kinds = {each.dtype for each in lowered(residual(0), AVX2).types.values()}
    assert DType.U8 not in kinds
