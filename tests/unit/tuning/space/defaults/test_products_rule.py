"""Programs of several products that are put together at the end."""

from __future__ import annotations

import numpy as np
import pytest
from tests.draws import random_source
from tests.targets import AVX512, native_target
from tests.unit.tuning.compiled import check_sketches, weights

from tensorwright.expr import Compute, compute, placeholder, reduce_axis, select, sum_over
from tensorwright.graph import program
from tensorwright.schedule import ComputeAt, Unroll, Vectorize, state_of
from tensorwright.tuning.space import heuristic_sketches

pytestmark = pytest.mark.target
ROWS, TERMS, COLUMNS = 72, 20, 40


def interleaved() -> Compute:
    """The even positions from one product, the odd ones from another, whose factor is turned."""
    x = placeholder("x", (2, ROWS, TERMS))
    w, v = placeholder("w", (TERMS, COLUMNS)), placeholder("v", (COLUMNS, TERMS))
    k, m = reduce_axis("k", TERMS), reduce_axis("m", TERMS)
    even = compute("even", (2, ROWS, COLUMNS), lambda b, i, j: sum_over(x[b, i, k] * w[k, j], k))
    odd = compute("odd", (2, ROWS, COLUMNS), lambda b, i, j: sum_over(x[b, i, m] * v[j, m], m))
    return compute(
        "both",
        (2, 2 * ROWS, COLUMNS),
        lambda b, i, j: select(i % 2 < 1, even[b, i // 2, j], odd[b, i // 2, j]),
    )


@pytest.mark.drawn
def test_values() -> None:
    target = native_target()
    workload = program(interleaved(), constants=("w",))
    arrays = tuple(weights(*map(int, map(str, each.shape))) for each in workload.inputs)
    sketches = heuristic_sketches(state_of(workload), target)
    check_sketches((workload, arrays), sketches, target, random_source(2))


def test_each_is_tiled_by_itself() -> None:
    sketch = heuristic_sketches(state_of(program(interleaved())), AVX512)[0]
    hosts = {step.stage: step.host for step in sketch.trace if isinstance(step, ComputeAt)}
    assert hosts == {"even_cache": "even", "odd_cache": "odd"}
    vectors = {step.stage for step in sketch.trace if isinstance(step, Vectorize)}
    assert {"even_cache", "odd_cache", "both"} <= vectors
    unrolled = {step.stage for step in sketch.trace if isinstance(step, Unroll)}
    assert {"even_cache", "odd_cache"} <= unrolled
    names = [name for choice in sketch.choices for name in choice.names]
    assert len(set(names)) == len(names)
    assert {"even_rows", "odd_rows"} <= set(names)
    assert np.prod([sketch.defaults[f"even_{each}"] for each in ("rows", "columns")]) <= 32
