"""Attention as one kernel: what the row rule makes of it, and that it means the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.draws import some_of
from tests.targets import AVX2, AVX512, native_target
from tests.unit.tuning.compiled import check_sketches, workloads

import tensorwright as tw
from tensorwright.expr import substitute
from tensorwright.graph import Graph, GraphBuilder, partition, simplify
from tensorwright.schedule import FactorOut, Fuse, analyse, ends_at_mask, replay, state_of
from tensorwright.tuning.space import heuristic_sketches

Array = NDArray[Any]


def attention(
    queries: int,
    keys: int,
    heads: int = 2,
    shared: int = 1,
    mask: Array | None = None,
    **given: Any,
) -> Graph:
    """The operator; `shared` heads of queries use one of keys."""
    b = GraphBuilder("attention")
    of_keys = (1, heads // shared, keys, 24)
    inputs = [b.input("q", (1, heads, queries, 24)), b.input("k", of_keys), b.input("v", of_keys)]
    if mask is not None:
        inputs.append(b.constant(mask))
    return b.finish([b.add("attention", *inputs, **given)])


def pieces(queries: int, keys: int, *, is_masked: bool = False) -> Graph:
    """As networks write it: products, scale, a mask that is data, softmax, heads side by side."""
    b = GraphBuilder("pieces")
    q, v = b.input("q", (2, 3, queries, 24)), b.input("v", (2, 3, keys, 20))
    k = b.add("transpose", b.input("k", (2, 3, keys, 24)), perm=(0, 1, 3, 2))
    scores = b.add("mul", b.add("matmul", q, k), b.constant(np.full((1,), 0.2, np.float32)))
    if is_masked:
        scores = b.add("add", scores, b.input("mask", (2, 1, queries, keys)))
    mixed = b.add("matmul", b.add("softmax", scores), v)
    return b.finish([b.add("transpose", mixed, perm=(0, 2, 1, 3))])


def window(queries: int, keys: int, width: int, *, empty: tuple[int, ...] = ()) -> Array:
    """Each query sees the keys around it; some see none."""
    far = np.abs(np.arange(queries)[:, None] - np.arange(keys))
    seen = far < width
    seen[list(empty)] = False
    return seen[None, None]


OPERATORS = {
    "plain": attention(37, 45),
    "one_key": attention(9, 1),
    "one_query": attention(1, 45),
    "causal": attention(37, 37, causal=True),
    "causal_with_rests": attention(150, 150, causal=True),
    "causal_behind_others": attention(21, 150, heads=6, shared=3, causal=True, continues=True),
    "soft_cap": attention(19, 45, softcap=3.0, scale=0.7),
    "grouped_heads": attention(19, 45, heads=6, shared=3),
    "window": attention(37, 37, mask=window(37, 37, 5)),
    "rows_without_keys": attention(20, 33, mask=window(20, 33, 9, empty=(0, 13))),
    "rows_without_keys_are_zero": attention(
        20, 33, mask=window(20, 33, 9, empty=(0, 13)), nan_weights="zero_without_keys"
    ),
    "weights_are_numbers": attention(
        20, 33, mask=window(20, 33, 9, empty=(0, 13)), nan_weights="zero"
    ),
    "bias": attention(
        8, 50, mask=np.random.default_rng(0).normal(size=(1, 2, 8, 50)).astype(np.float32)
    ),
}


@pytest.mark.target
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", some_of(OPERATORS, 7, "attention"))
@pytest.mark.drawn
def test_values(name: str) -> None:
    target = native_target()
    (case,) = workloads(OPERATORS[name], target)
    sketches = heuristic_sketches(state_of(case[0]), target)
    check_sketches(case, sketches, target, random.Random(name))


def softmax(x: Array) -> Array:
    powers: Array = np.exp(x - x.max(-1, keepdims=True))
    total: Array = powers.sum(-1, keepdims=True)
    return powers / total


@pytest.mark.target
@pytest.mark.parametrize(
    ("queries", "keys", "is_masked"),
    [(37, 45, True), (64, 64, False), (150, 150, True), (5, 1, False), (1, 40, True)],
)
def test_compiled_networks(queries: int, keys: int, is_masked: bool) -> None:
    graph = pieces(queries, keys, is_masked=is_masked)
    generator = np.random.default_rng(0)
    inputs = {
        name: generator.normal(size=type_.extents).astype(np.float32)
        for name, type_ in graph.input_types.items()
    }
    if is_masked:
        inputs["mask"][:, :, ::3, : keys // 2] = -np.inf
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    scores = wide["q"] @ wide["k"].transpose(0, 1, 3, 2) * np.float32(0.2) + wide.get("mask", 0.0)
    expected = (softmax(scores) @ wide["v"]).transpose(0, 2, 1, 3)
    (found,) = tw.compile(graph).run(inputs).values()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def test_results_are_divided_not_weights() -> None:
    for graph, keys_beyond in ((attention(40, 40), True), (attention(40, 8), False)):
        ((workload, _),) = workloads(graph, AVX512)
        trace = heuristic_sketches(state_of(workload), AVX512)[0].trace
        assert (FactorOut("attention") in trace) == keys_beyond


def test_heads_side_by_side_are_rows_of_heads() -> None:
    """The blocks follow the heads, whose keys they share, not the order of the result."""
    parts = partition(simplify(pieces(40, 40)), price=lambda workload: 1.0)
    (workload,) = parts.workloads
    (sketch,) = heuristic_sketches(state_of(workload), AVX512)
    loops = next(step.loops for step in sketch.trace if isinstance(step, Fuse))
    axes = {axis.name: axis.extent for axis in workload.outputs[0].axes}
    assert [axes[name] for name in loops[:2]] == [2, 3]
    assert workload.outputs[0].shape == (2, 40, 3, 20)


def test_causal_blocks_end_at_their_last_row() -> None:
    """Scores, their greatest, exponentials, sums and products by values end at one position."""
    (case,) = workloads(attention(64, 128, causal=True, continues=True), AVX2)
    sketch = heuristic_sketches(state_of(case[0]), AVX2)[0]
    state = replay(state_of(case[0]), sketch.bound(sketch.defaults))
    (host,) = (stage for stage in state.stages if stage.masked_in)
    analysis = analyse(state)
    ends = ends_at_mask(state, analysis, host.name, host.masked_in)
    assert {stage for stage, _ in ends} == {
        *("attention_products", "attention_weights_max_rf", "attention_weights_exp"),
        *("attention_weights_sum_rf", "attention_sums_cache"),
    }
    row = analysis.nests[host.name].variables[host.masked_in]
    first = {loop: substitute(extent, {row: 0}) for (_, loop), extent in ends.items()}
    assert first == {"j_0": 5, "rw_o": 10, "w_o": 10, "s": 80}  # of 128, for rows that see 70


def test_one_query_reads_each_key_once() -> None:
    """Scores fold in registers, position by position; a tile has the heads that share values."""
    (case,) = workloads(attention(1, 512, heads=9, shared=3), AVX2)
    sketches = heuristic_sketches(state_of(case[0]), AVX2)
    steps = [str(step) for step in sketches[0].bound(sketches[0].defaults)]
    assert "reorder(attention_products, [j, h, b, i, e_i])" in steps
    assert "compute_at(attention_products_rf, attention_products, h)" in steps
    assert "split(attention, h, [3])" in steps
    check_sketches(case, sketches[:2], AVX2, random.Random(1))
