"""Products of one tensor as one: the same values, fewer kernels, where prices say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.targets import AVX2
from tests.unit.graph.prices import Prices

from tensorwright.base import DType, override
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    interpret,
    join_products,
    random_inputs,
    verify,
)
from tensorwright.ops import pack_pairs
from tensorwright.pipeline import cut, import_graph, in_place
from tensorwright_lab.zoo.language_models import Decoder, write_decoder

RANDOM = np.random.default_rng(7)
ROWS, INNER = 3, 64
KINDS = ("f32", "bf16", "bytes", "widened", "4 bits", "8 bits", "zeros")


def weights(
    b: GraphBuilder, kind: str, columns: int
) -> tuple[str, tuple[str, ...], dict[str, int]]:
    """An operator that multiplies rows, its constants and attributes."""
    if kind in ("f32", "bf16"):
        array = RANDOM.standard_normal((INNER, columns)).astype(np.float32)
        if kind == "f32":
            return "matmul", (b.constant(array),), {}
        short = b.constant(array.astype(DType.BF16.numpy))
        return "matmul", (b.add("cast", short, to=DType.F32),), {}
    if kind == "bytes":
        codes = RANDOM.integers(-128, 128, (INNER, columns), dtype=np.int8)
        return "matmul_integer", (b.constant(codes),), {}
    bits = 8 if kind == "8 bits" else 4
    words = RANDOM.integers(-(1 << 31), 1 << 31, (INNER * bits // 32, columns)).astype(np.int32)
    scales = RANDOM.standard_normal((2, columns)).astype(np.float32)
    if kind == "widened":
        return "matmul", (b.add("dequantize_blocks", *map(b.constant, (words, scales))),), {}
    zeros = (RANDOM.integers(-8, 8, (2, columns), dtype=np.int8),) if kind == "zeros" else ()
    held = (pack_pairs(words, bits), scales, *zeros)
    return "matmul_blocks", tuple(map(b.constant, held)), {"bits": bits}


def products(kind: str, columns: tuple[int, ...], others: int = 0) -> Graph:
    """Products of one tensor, each with a sum behind it, and `others` of another tensor."""
    b = GraphBuilder("products")
    dtype = DType.U8 if kind == "bytes" else DType.F32
    x, y = b.input("x", (2, ROWS, INNER), dtype), b.input("y", (2, ROWS, INNER), dtype)
    results = []
    for at, count in enumerate((*columns, *columns[:1] * others)):
        operator, held, how = weights(b, kind, count)
        made = b.add(operator, x if at < len(columns) else y, *held, **how)
        results.append(b.add("abs", made))
    return b.finish(results)


def same(graph: Graph, joined: Graph) -> None:
    verify(joined)
    arrays = random_inputs(graph, seed=3)
    for one, other in zip(interpret(graph, arrays), interpret(joined, arrays), strict=True):
        np.testing.assert_array_equal(one, other)


def dear_products() -> Prices:
    return Prices(lambda workload: 1.0 + 9.0 * workload.name.count("matmul"))


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_one_tensor_are_one(kind: str) -> None:
    graph = products(kind, (16, 8, 24), others=1)
    joined = join_products(graph, dear_products())
    operators = [node.operator for node in joined.nodes]
    assert operators.count(graph.nodes[-2].operator) == 2, "one of x, one of y"
    same(graph, joined)


@pytest.mark.parametrize("kind", KINDS)
def test_prices_keep_products_apart_where_there_are_any(kind: str) -> None:
    graph = products(kind, (16, 8))
    for price in (Prices(lambda workload: 1.0), Prices(lambda workload: None), None):
        is_joined = join_products(graph, price) is not graph
        assert is_joined is (kind in ("4 bits", "8 bits", "zeros")), "these have no prices"


def test_products_alike_are_priced_once() -> None:
    b = GraphBuilder("layers")
    x = b.input("x", (2, ROWS, INNER))
    for _ in range(3):
        first, second = (
            b.add(operator, x, *held)
            for operator, held, _ in (weights(b, "f32", INNER) for _ in range(2))
        )
        x = b.add("add", first, second)
    graph, price = b.finish([x]), dear_products()
    joined = join_products(graph, price)
    assert len(joined.nodes) == len(graph.nodes) + 3  # two products: one, and two slices
    assert price.asked.total() == len(price.asked) <= 4
    same(graph, joined)


def test_a_layer_of_a_decoder_has_few_kernels(tmp_path: Path) -> None:
    """Queries, keys and values of the norm; turned queries, keys, and values in the caches;
    attention; sum; gate and up of the norm; down.
    """
    sizes = Decoder("llama", 320, 128, 1, 4, 2, 256, size=32, longest=64)
    counts = []
    with override(assume="avx2", default_schedule="rule"):
        for depth in (2, 3):
            write_decoder(tmp_path / "model.gguf", replace(sizes, depth=depth), "int4")
            parts = cut(import_graph(tmp_path / "model.gguf"), AVX2)
            steps = in_place(parts.graph, AVX2, None)
            assert steps is not None
            counts.append(len(steps[0].kernels))
    assert counts[1] - counts[0] == 8
