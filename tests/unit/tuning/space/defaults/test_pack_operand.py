"""Which operands of a product are copied into panels, and where."""

from __future__ import annotations

import pytest
from tests.targets import AVX2, AVX512

from tensorwright.base import CpuTarget
from tensorwright.expr import Compute, compute, placeholder, reduce_axis, sum_over
from tensorwright.schedule import CacheRead, ComputeAt, Parallel, initial_state
from tensorwright.tuning.space import Sketch, heuristic_sketches


def product(rows: int, inner: int, columns: int) -> Compute:
    a, b = placeholder("a", (rows, inner)), placeholder("b", (inner, columns))
    k = reduce_axis("k", inner)
    return compute("c", (rows, columns), lambda i, j: sum_over(a[i, k] * b[k, j], k))


def first_sketch(
    output: Compute, constants: frozenset[str] = frozenset(), target: CpuTarget = AVX512
) -> Sketch:
    return heuristic_sketches(initial_state((output,), constants), target)[0]


def test_columns_of_an_activation_are_copied_once_per_column_of_tiles() -> None:
    sketch = first_sketch(product(256, 512, 1024))
    (copying,) = (step for step in sketch.trace if isinstance(step, CacheRead))
    assert copying.tensor == "b"
    (parallel,) = (step for step in sketch.trace if isinstance(step, Parallel))
    places = {step.stage: step.loop for step in sketch.trace if isinstance(step, ComputeAt)}
    assert places[copying.copy] == parallel.loop == "j_0"
    assert places["c_cache"] == "i_o"


@pytest.mark.parametrize(
    ("shape", "constants"),
    [
        ((256, 512, 512), frozenset[str]()),  # rows lie close enough
        ((256, 64, 1024), frozenset[str]()),  # few rows
        ((8, 512, 1024), frozenset[str]()),  # few uses
        ((256, 512, 1024), frozenset({"b"})),  # packed for good
    ],
)
def test_other_operands_stay(shape: tuple[int, int, int], constants: frozenset[str]) -> None:
    trace = first_sketch(product(*shape), constants).trace
    assert not any(isinstance(step, CacheRead) for step in trace)


@pytest.mark.parametrize(
    ("shape", "is_copied"),
    [
        ((256, 512, 512), True),  # all rows lie in two sets of the first cache
        ((256, 512, 500), False),  # no two neighbours do
        ((256, 64, 256), False),  # few of them, in more sets
    ],
)
def test_narrow_vectors_read_copies_of_rows_that_share_sets(
    shape: tuple[int, int, int], is_copied: bool
) -> None:
    trace = first_sketch(product(*shape), target=AVX2).trace
    assert any(isinstance(step, CacheRead) for step in trace) == is_copied


@pytest.mark.parametrize(
    ("shape", "order"),
    [((1500, 1500, 64), "rows outside"), ((64, 1500, 64), "columns outside")],
)
def test_rows_beyond_the_cache_are_read_once(shape: tuple[int, int, int], order: str) -> None:
    assert first_sketch(product(*shape)).name == f"tile, {order}"
