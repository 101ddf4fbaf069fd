"""What the row rule decides: copies of operands in another order, and how many rows a block has."""

from __future__ import annotations

import pytest
from tests.targets import AVX512

from tensorwright.graph import GraphBuilder, KernelCall, partition, simplify
from tensorwright.schedule import CacheRead, ComputeAt, Parallel, Unroll, state_of
from tensorwright.tuning.space import Sketch, rule_sketches


def first_sketch(operator: str, *shapes: tuple[int, ...]) -> Sketch:
    builder = GraphBuilder(operator)
    inputs = [builder.input(f"x{n}", shape) for n, shape in enumerate(shapes)]
    graph = builder.finish((builder.add(operator, *inputs),))
    (step,) = partition(simplify(graph)).steps
    assert isinstance(step, KernelCall)
    workload = step.workload
    return rule_sketches(state_of(workload), AVX512)[0]


@pytest.mark.parametrize(("heads", "is_per_head"), [(8, True), (2, False)])
def test_keys_are_turned_once_per_head_or_before(heads: int, is_per_head: bool) -> None:
    sketch = first_sketch("attention", *((1, heads, 64, 32),) * 3)
    (turning,) = (step for step in sketch.trace if isinstance(step, CacheRead))
    assert (turning.tensor, turning.order) == ("x_1", (0, 1, 3, 2))
    parallel = [step.loop for step in sketch.trace if isinstance(step, Parallel)]
    places = {step.stage: step.loop for step in sketch.trace if isinstance(step, ComputeAt)}
    assert places.get(turning.copy) == ("b_h" if is_per_head else None)
    assert ("b_h" in parallel) == is_per_head


def test_one_query_turns_nothing() -> None:
    sketch = first_sketch("attention", (1, 8, 1, 32), (1, 8, 64, 32), (1, 8, 64, 32))
    assert not any(isinstance(step, CacheRead) for step in sketch.trace)


@pytest.mark.parametrize(("shape", "block"), [((64, 256), 4), ((32, 256), 2), ((64, 4096), 1)])
def test_rows_of_a_block_fit_the_cache_and_feed_the_threads(
    shape: tuple[int, int], block: int
) -> None:
    sketch = first_sketch("softmax", shape)
    assert sketch.defaults == {"block": block}
    unrolled = {(step.stage, step.loop) for step in sketch.trace if isinstance(step, Unroll)}
    assert unrolled == {("softmax_max_rf", "i"), ("softmax_sum_rf", "i")}
