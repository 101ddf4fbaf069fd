"""A 1 x 1 convolution on a graphics processor, derived: vectors of both operands are fetched."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.grids import CUDA_BACKEND, SM_80, missing_compiler, run_all_on_cpu
from tests.unit.schedule.expressions import Expression
from tests.unit.tuning.space.test_thread_tiling import pointwise_convolution

from tensorwright.loop import LoopProgram, launches_of, lower
from tensorwright.schedule import ForKind, replay
from tensorwright.tuning.space.derived import derived_sketches


def fetching_in_vectors(channels: int, filters: int) -> tuple[Expression, LoopProgram]:
    """A program of the derived space: blocks hold the whole image of 7 x 7."""
    expression = pointwise_convolution(channels, filters, 7)
    wanted = {"y_h_threads": 7, "y_h_elements": 1, "y_v_threads": 7, "y_v_elements": 1}
    wanted |= {"y_x_vector": 4, "y_w_vector": 4}
    sketches = derived_sketches(expression.state, SM_80, most=128)
    sketch = next(each for each in sketches if each.name == "y in blocks of threads")
    decisions = sketch.defaults | wanted
    assert sketch.genes_of(decisions) is not None
    assert sketch.is_valid(decisions)
    return expression, lower(replay(expression.state, sketch.bound(decisions)))


def test_blocks_fetch_both_operands_in_vectors_and_threads_add_the_bias() -> None:
    """Of 2048 > 512 channels: blocks and threads bound, vectors of both operands into shared
    memory, bias and ReLU where a thread stores.
    """
    _, program = fetching_in_vectors(2048, 512)
    (launch,) = launches_of(program).nests
    assert launch.extent(ForKind.THREAD_X) == 392
    assert [each.name for each in launch.shared] == ["x_y_cache", "w_y_cache"]
    text = CUDA_BACKEND.emit(program, SM_80).text
    assert "blockIdx.x" in text
    for operand in ("x", "w"):
        fetch = rf"\*\(float4 \*\)&{operand}_y_cache\[.*\] = \(\*\(const float4 \*\)&{operand}\["
        assert re.search(fetch, text)
    assert re.search(r"relu\[.*\] = max_f32\(\(y\[.*\] \+ bias\[.*\]\), 0.0f\);", text)


def test_it_is_right() -> None:
    if missing_compiler():
        pytest.skip(missing_compiler())
    expression, program = fetching_in_vectors(32, 16)
    arrays = expression.arrays()
    (results,) = run_all_on_cpu([program], [arrays])
    np.testing.assert_array_equal(results["relu"], expression.answers(arrays)["relu"])
