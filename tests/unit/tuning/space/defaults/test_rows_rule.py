"""What the row rule decides: copies of operands in another order, and how many rows a block has."""

from __future__ import annotations

import numpy as np
import pytest
from tests.draws import random_source
from tests.targets import AVX2, AVX512, native_target
from tests.unit.tuning.compiled import Case, check_schedule, check_sketches, weights, workloads
from tests.unit.tuning.helpers import workload_of

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.expr import (
    Fn,
    apply,
    compute,
    max_over,
    placeholder,
    reduce_axis,
    select,
    sum_over,
    topological_order,
)
from tensorwright.graph import Graph, GraphBuilder, KernelCall, partition, simplify
from tensorwright.tuning.space import Sketch, heuristic_sketches


def first_sketch(operator: str, *shapes: tuple[int, ...]) -> Sketch:
    builder = GraphBuilder(operator)
    inputs = [builder.input(f"x{n}", shape) for n, shape in enumerate(shapes)]
    graph = builder.finish((builder.add(operator, *inputs),))
    (step,) = partition(simplify(graph)).steps
    assert isinstance(step, KernelCall)
    workload = step.workload
    return heuristic_sketches(schedule.state_of(workload), AVX512)[0]


@pytest.mark.parametrize(("heads", "is_per_head"), [(8, True), (2, False)])
def test_keys_are_turned_once_per_head_or_before(heads: int, is_per_head: bool) -> None:
    sketch = first_sketch("attention", *((1, heads, 64, 32),) * 3)
    (turning,) = (step for step in sketch.trace if isinstance(step, schedule.CacheRead))
    assert (turning.tensor, turning.order) == ("x_1", (0, 1, 3, 2))
    parallel = [step.loop for step in sketch.trace if isinstance(step, schedule.Parallel)]
    places = {
        step.stage: step.loop for step in sketch.trace if isinstance(step, schedule.ComputeAt)
    }
    assert places.get(turning.copy) == ("b_h" if is_per_head else None)
    assert ("b_h" in parallel) == is_per_head


def test_blocks_of_rows_where_a_product_comes_last() -> None:
    sketch = first_sketch("attention", *((1, 2, 37, 32),) * 3)
    assert sketch.defaults["block"] == 8


@pytest.mark.target
@pytest.mark.parametrize("shape", [(8, 13, 1248), (3, 96, 13, 13)])
def test_few_rows_over_long_ones_leave_the_last_axis_to_the_lanes(shape: tuple[int, ...]) -> None:
    """A product with a transpose: all of its axes are rows of one stage."""
    b = GraphBuilder("few_rows")
    x, y = b.input("x", shape), b.input("y", shape)
    equation = "bhw,bxw->bhx" if len(shape) == 3 else "bchw,bcxw->bhx"
    graph = b.finish([b.add("einsum", x, y, equation=equation)])
    ((workload, _),) = workloads(graph, AVX2)
    steps = heuristic_sketches(schedule.state_of(workload), AVX2)[0].trace
    assert "vectorize(einsum_cache, x_i)" in map(str, steps)
    target = native_target()
    (case,) = workloads(graph, target)
    sketch = heuristic_sketches(schedule.state_of(case[0]), target)[0]  # warns of illegal steps
    check_schedule(case, schedule.format_trace(sketch.bound(sketch.defaults)), target)


@pytest.mark.target
@pytest.mark.parametrize(("axis", "position"), [(1, "d"), (2, "h")])
def test_running_sums_are_written_out(axis: int, position: str) -> None:
    b = GraphBuilder("running")
    graph = b.finish([b.add("cumsum", b.input("x", (3, 20, 56, 24)), axis=axis)])
    target = native_target()
    (case,) = workloads(graph, target)
    sketch = heuristic_sketches(schedule.state_of(case[0]), target)[0]
    trace = schedule.format_trace(sketch.bound(sketch.defaults))
    for loop in (position, "k"):
        assert f"unroll(cumsum_own, {loop})" in trace
    check_schedule(case, trace, target)


def test_one_query_turns_nothing() -> None:
    sketch = first_sketch("attention", (1, 8, 1, 32), (1, 8, 64, 32), (1, 8, 64, 32))
    assert not any(isinstance(step, schedule.CacheRead) for step in sketch.trace)


@pytest.mark.parametrize(("shape", "block"), [((64, 256), 4), ((32, 256), 2), ((64, 4096), 1)])
def test_rows_of_a_block_fit_the_cache_and_feed_the_threads(
    shape: tuple[int, int], block: int
) -> None:
    sketch = first_sketch("softmax", shape)
    assert sketch.defaults == {"block": block}
    unrolled = {
        (step.stage, step.loop) for step in sketch.trace if isinstance(step, schedule.Unroll)
    }
    assert unrolled == {("softmax_max_rf", "i"), ("softmax_sum_rf", "i")}


def scores(rows: int, keys: int = 40) -> Graph:
    """Attention scores: a product and its softmax along each row."""
    b = GraphBuilder("scores")
    turned = b.add("transpose", b.input("k", (2, keys, 16)), perm=(0, 2, 1))
    return b.finish([b.add("softmax", b.add("matmul", b.input("q", (2, rows, 16)), turned))])


@pytest.mark.parametrize(("rows", "block"), [(37, 8), (48, 8), (5, 5), (22, 8), (35, 7)])
def test_awkward_numbers_of_rows_have_blocks(rows: int, block: int) -> None:
    ((workload, _),) = workloads(scores(rows), AVX512)
    sketch = heuristic_sketches(schedule.state_of(workload), AVX512)[0]
    assert sketch.defaults["block"] == block
    splits = {(s.stage, s.loop): s.tail for s in sketch.trace if isinstance(s, schedule.Split)}
    tail = schedule.Tail.GUARD if rows == 48 else schedule.Tail.SHIFT
    assert splits["softmax", workload.outputs[0].axes[-2].name] == tail


@pytest.mark.parametrize("rows", [37, 64, 128])
def test_blocks_fill_the_registers_beside_columns(rows: int) -> None:
    ((workload, _),) = workloads(scores(rows), AVX2)
    assert heuristic_sketches(schedule.state_of(workload), AVX2)[0].defaults["block"] == 6


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda target: target.name)
@pytest.mark.parametrize("keys", [40, 49, 77, 250])
def test_sums_of_scores_are_whole_vectors(keys: int, target: CpuTarget) -> None:
    ((workload, _),) = workloads(scores(37, keys), target)
    splits = {
        (step.stage, step.loop): step.tail
        for step in heuristic_sketches(schedule.state_of(workload), target)[0].trace
        if isinstance(step, schedule.Split)
    }
    is_whole = keys % (target.vector_bytes // 4) == 0
    assert splits["matmul", "j"] is (schedule.Tail.GUARD if is_whole else schedule.Tail.SHIFT)


@pytest.mark.target
@pytest.mark.parametrize(("rows", "keys"), [(37, 40), (48, 40), (5, 40), (37, 77), (6, 49)])
@pytest.mark.drawn
def test_values_of_scores(rows: int, keys: int) -> None:
    target = native_target()
    (case,) = workloads(scores(rows, keys), target)
    sketches = heuristic_sketches(schedule.state_of(case[0]), target)
    check_sketches(case, sketches, target, random_source(rows), 2)


@pytest.mark.target
def test_values_of_attention_with_awkward_rows() -> None:
    b = GraphBuilder("attention")
    inputs = [b.input(name, (1, 2, 37, 24)) for name in ("q", "k", "v")]
    target = native_target()
    for case in workloads(b.finish([b.add("attention", *inputs)]), target):
        for sketch in heuristic_sketches(schedule.state_of(case[0]), target):
            check_schedule(case, schedule.format_trace(sketch.bound(sketch.defaults)), target)


def test_scores_with_masks_stay_in_blocks() -> None:
    b = GraphBuilder("masked")
    keys = b.add("transpose", b.input("k", (8, 49, 32)), perm=(0, 2, 1))
    y = b.add("matmul", b.input("q", (8, 49, 32)), keys)
    y = b.add("add", y, b.constant(np.zeros((1, 49, 49), np.float32)))
    y = b.add("softmax", b.add("add", y, b.constant(np.ones((8, 49, 49), np.float32))))
    ((workload, _),) = workloads(b.finish([y]), AVX512)
    assert [each.name for each in heuristic_sketches(schedule.state_of(workload), AVX512)] == [
        "rows"
    ]


def shifted_product(rows: int, columns: int, terms: int) -> Case:
    """A product whose rows are shifted by their maximum: two folds that need all of a row."""
    x, w = placeholder("x", (rows, terms)), placeholder("w", (columns, terms))
    k, r = reduce_axis("k", terms), reduce_axis("r", columns)
    product = compute("product", (rows, columns), lambda i, j: sum_over(x[i, k] * w[j, k], k))
    most = compute("most", (rows, 1), lambda i, j: max_over(product[i, r], r))
    shifted = compute("shifted", (rows, columns), lambda i, j: product[i, j] - most[i, 0])
    workload = workload_of(shifted, constants=frozenset({"w"}))
    return workload, (weights(rows, terms), weights(columns, terms))


@pytest.mark.target
@pytest.mark.parametrize(("columns", "is_packed"), [(48, True), (37, True), (3, False)])
def test_constants_across_the_columns_are_packed(columns: int, is_packed: bool) -> None:
    target = native_target()
    case = shifted_product(2, columns, 72)
    (sketch,) = heuristic_sketches(schedule.state_of(case[0]), target)
    trace = sketch.bound(sketch.defaults)
    packed = [step.tensor for step in trace if isinstance(step, schedule.PackConstant)]
    assert packed == (["w"] if is_packed else [])
    check_schedule(case, schedule.format_trace(trace), target)


def rotated_scores(rows: int, width: int) -> Case:
    """The softmax's maximum of scores of rotated keys: the product reads each key at two places."""
    q, keys = placeholder("q", (rows, width)), placeholder("keys", (rows, width))
    half, k, r = width // 2, reduce_axis("k", width), reduce_axis("r", rows)
    scores = compute(
        "scores",
        (rows, rows),
        lambda i, j: sum_over(
            q[i, k] * (keys[j, k] + select(k < half, keys[j, k + half] * 2.0, keys[j, k - half])),
            k,
        ),
    )
    most = compute("most", (rows, 1), lambda i, j: max_over(scores[i, r], r))
    shifted = compute("shifted", (rows, rows), lambda i, j: scores[i, j] - most[i, 0])
    arrays = {"q": weights(rows, width), "keys": weights(width, rows).T.copy()}
    workload = workload_of(shifted)
    inputs = (tensor for tensor in topological_order(shifted) if tensor.name in arrays)
    return workload, tuple(arrays[tensor.name] for tensor in inputs)


def rotated_softmax(heads: int, rows: int, width: int) -> Case:
    """The whole softmax of such scores, of several heads and with angles."""
    shape = (heads, rows, width)
    q, keys, turn = placeholder("q", shape), placeholder("keys", shape), placeholder("turn", shape)
    half, k, r, t = (
        width // 2,
        reduce_axis("k", width),
        reduce_axis("r", rows),
        reduce_axis("t", rows),
    )
    scores = compute(
        "scores",
        (heads, rows, rows),
        lambda h, i, j: sum_over(
            q[h, i, k]
            * (
                keys[h, j, k]
                + select(k < half, keys[h, j, k + half], keys[h, j, k - half]) * turn[h, j, k]
            ),
            k,
        ),
    )
    most = compute("most", (heads, rows, 1), lambda h, i, j: max_over(scores[h, i, r], r))
    powers = compute(
        "powers", scores.shape, lambda h, i, j: apply(Fn.EXP, scores[h, i, j] - most[h, i, 0])
    )
    total = compute("total", (heads, rows, 1), lambda h, i, j: sum_over(powers[h, i, t], t))
    out = compute("out", scores.shape, lambda h, i, j: powers[h, i, j] / total[h, i, 0])
    workload = workload_of(out)
    arrays = {"q": weights(*shape), "keys": weights(*shape), "turn": weights(*shape)}
    inputs = (tensor for tensor in topological_order(out) if tensor.name in arrays)
    return workload, tuple(arrays[tensor.name] for tensor in inputs)


@pytest.mark.target
@pytest.mark.parametrize(
    "case",
    [
        shifted_product(4, 100, 64),
        shifted_product(2, 300, 96),
        rotated_scores(24, 16),
        rotated_softmax(2, 24, 16),
    ],
    ids=["product", "wide product", "rotated", "rotated softmax"],
)
def test_all_steps_of_all_sketches_are_legal(case: Case) -> None:
    target = native_target()
    for sketch in heuristic_sketches(schedule.state_of(case[0]), target):  # warns of an illegal one
        check_schedule(case, schedule.format_trace(sketch.bound(sketch.defaults)), target)


def mean_of_images(height: int, width: int) -> Graph:
    b = GraphBuilder("mean_of_images")
    return b.finish([b.add("reduce_mean", b.input("x", (3, 5, height, width)), axes=(2, 3))])


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda target: target.name)
def test_rows_too_short_for_vectors_are_folded_as_one_run(target: CpuTarget) -> None:
    """Global pooling of 7x7 pixels: 49 neighbours."""
    ((workload, _),) = workloads(mean_of_images(7, 7), target)
    trace = schedule.format_trace(heuristic_sketches(schedule.state_of(workload), target)[0].trace)
    lanes = target.vector_bytes // 4
    sum_name = workload.stages[0].name
    assert f"split({sum_name}, rh_rw, [{lanes}])" in trace
    assert f"vectorize({sum_name}_rf, rh_rw_i)" in trace


@pytest.mark.target
@pytest.mark.parametrize("shape", [(7, 7), (14, 14), (3, 40), (2, 3), (9, 5)])
def test_values_of_short_rows(shape: tuple[int, int]) -> None:
    target = native_target()
    (case,) = workloads(mean_of_images(*shape), target)
    for sketch in heuristic_sketches(schedule.state_of(case[0]), target):
        check_schedule(case, schedule.format_trace(sketch.bound(sketch.defaults)), target)
