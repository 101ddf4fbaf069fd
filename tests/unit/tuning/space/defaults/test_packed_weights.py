"""Weights that stay packed as codes of few bits: schedules, memory, and results."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from tests.draws import some_of

import tensorwright
from tensorwright.base import CpuTarget, cpu_target
from tensorwright.graph import Graph, GraphBuilder, interpret
from tensorwright.ops import Array, pack_codes
from tensorwright.pipeline import prepare
from tensorwright.schedule import (
    AtRoot,
    ComputeAt,
    FactorOut,
    PackConstant,
    Tensorize,
    replay,
    state_of,
)
from tensorwright.tuning.space import default_trace, sketches_of

AVX2 = cpu_target("x86-64-avx2")


def network(
    rows: int,
    inner: int,
    columns: int,
    block: int = 32,
    *,
    zeros: bool = False,
    bits: int = 4,
    rounded: bool = False,
) -> tuple[Graph, dict[str, Array]]:
    """relu(x w + bias) with packed weights, and an input."""
    chance = np.random.default_rng(3)
    half = 1 << (bits - 1)
    b = GraphBuilder("packed")
    shape = inner // block, columns
    operands = [pack_codes(chance.integers(-half, half, (inner, columns)), bits)]
    operands.append(chance.uniform(0.5, 1, shape).astype(np.float32))
    if zeros:
        operands.append(chance.integers(-half, half, shape).astype(np.int8))
    weights = b.add("dequantize_blocks", *map(b.constant, operands), bits=bits, is_rounded=rounded)
    product = b.add("matmul", b.input("x", (rows, inner)), weights)
    bias = b.constant(chance.standard_normal(columns).astype(np.float32))
    graph = b.finish([b.add("relu", b.add("add", product, bias))])
    return graph, {"x": chance.standard_normal((rows, inner)).astype(np.float32)}


PRODUCTS = (
    (1, 96, 48, 32, 4),
    (1, 96, 37, 16, 4),
    (1, 64, 40, 64, 4),
    (2, 128, 24, 16, 8),
    (3, 96, 64, 32, 4),
    (4, 128, 96, 128, 4),
    (5, 96, 40, 32, 4),
    (7, 96, 61, 32, 4),
    (9, 96, 61, 32, 4),
    (33, 128, 50, 64, 4),
)
"""Rows, terms and columns of a product; codes of a block, and their bits."""


@pytest.mark.parametrize(
    ("product", "zeros", "rounded"),
    some_of(itertools.product(PRODUCTS, (False, True), (False, True)), 12, "packed"),
)
@pytest.mark.drawn
def test_results(product: tuple[int, ...], zeros: bool, rounded: bool) -> None:
    *sizes, bits = product
    graph, inputs = network(*sizes, zeros=zeros, bits=bits, rounded=rounded)
    (expected,) = interpret(graph, inputs).values()
    (found,) = tensorwright.compile(graph).run(inputs).values()
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error <= (3e-4 if rounded else 2e-5)


@pytest.mark.parametrize(
    ("target", "rows", "columns", "has_pairs"),
    [
        ("x86-64-avx2", 4, 64, True),
        ("x86-64-avx512", 1, 64, True),
        ("x86-64-avx2", 8, 64, True),
        ("x86-64-avx2", 64, 64, True),
        ("x86-64-avx2", 1, 60, False),
        ("x86-64-sse2", 1, 64, False),
        ("aarch64-neon", 1, 64, False),
    ],
)
def test_rounded_rows_are_multiplied_in_pairs(
    target: str, rows: int, columns: int, has_pairs: bool
) -> None:
    graph, _ = network(rows, 256, columns, rounded=True)
    (workload,) = prepare(graph, cpu_target(target)).workloads
    trace = default_trace(state_of(workload), cpu_target(target))
    assert any(isinstance(step, Tensorize) for step in trace) is has_pairs


@pytest.mark.parametrize("is_read_twice", [False, True])
def test_rows_are_normalised_where_they_are_rounded(is_read_twice: bool) -> None:
    b = GraphBuilder("normalised")
    chance = np.random.default_rng(5)
    words = b.constant(pack_codes(chance.integers(-8, 8, (64, 64)), 4))
    scales = b.constant(chance.uniform(0.5, 1, (2, 64)).astype(np.float32))
    weights = b.add("dequantize_blocks", words, scales, is_rounded=True)
    factors = b.constant(chance.uniform(0.5, 1, 64).astype(np.float32))
    rows = b.add("rms_norm", b.input("x", (3, 64)), factors)
    product = b.add("matmul", rows, weights)
    graph = b.finish([product, rows] if is_read_twice else [product])
    assert len(prepare(graph, AVX2).workloads) == 1 + is_read_twice
    inputs = {"x": chance.standard_normal((3, 64)).astype(np.float32)}
    expected, *_ = interpret(graph, inputs).values()
    found, *_ = tensorwright.compile(graph).run(inputs).values()
    assert np.abs(found - expected).max() <= 3e-4 * np.abs(expected).max()


def test_one_row_multiplies_sums_of_blocks() -> None:
    graph, _ = network(1, 256, 512)
    (workload,) = prepare(graph, AVX2).workloads
    trace = default_trace(state_of(workload), AVX2)
    assert any(isinstance(step, FactorOut) for step in trace)
    packed = {step.tensor for step in trace if isinstance(step, PackConstant)}
    assert len(packed) == 2


@pytest.mark.parametrize("target", [AVX2, cpu_target("x86-64-avx512"), cpu_target("aarch64-neon")])
def test_many_rows_take_a_panel_apart_once(target: CpuTarget) -> None:
    graph, _ = network(64, 256, 512)
    (workload,) = prepare(graph, target).workloads
    trace = default_trace(state_of(workload), target)
    placed = {step.stage for step in trace if isinstance(step, ComputeAt)}
    assert any(name.startswith("dequantize_blocks") for name in placed)


@pytest.mark.parametrize("rows", [1, 9, 64])
def test_no_schedule_stores_all_numbers(rows: int) -> None:
    graph, _ = network(rows, 256, 512)
    (workload,) = prepare(graph, AVX2).workloads
    state = state_of(workload)
    sketches = list(sketches_of(state, AVX2))
    assert len(sketches) > 1
    for sketch in sketches:
        after = replay(state, sketch.bound(sketch.defaults))
        stored = [stage for stage in after.stages if isinstance(stage.placement, AtRoot)]
        assert all(not stage.name.startswith("dequantize_blocks") for stage in stored), sketch


@pytest.mark.parametrize("rows", [1, 8])
def test_a_saved_executable_is_as_small_as_the_codes(tmp_path: Path, rows: int) -> None:
    graph, inputs = network(rows, 1024, 1024)
    executable = tensorwright.compile(graph)
    path = tmp_path / "packed.tw"
    executable.save(path)
    packed = 1024 * 1024 // 2 + 1024 * 1024 // 32 * 4
    assert path.stat().st_size < 1.2 * packed
    (expected,) = executable.run(inputs).values()
    (found,) = tensorwright.load(path).run(inputs).values()
    np.testing.assert_array_equal(found, expected)
