"""What CUDA's text is by rule: a product that fetches ahead, C12 of AutoTVM by two algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.grids import CUDA_BACKEND, SM_90A, gpu_target
from tests.unit.schedule.expressions import Expression, conv, matmul

from tensorwright.artifacts.kernel import loop_program
from tensorwright.base import GpuTarget
from tensorwright.codegen.cuda import find_nvrtc
from tensorwright.graph import program
from tensorwright.tuning.space import Sketch
from tensorwright.tuning.space.derived import batched_winograd_sketches, tiled_sketches

Sketches = Callable[..., Iterator[Sketch]]
C12 = conv(7, 1, 512, 512)
CASES: dict[str, tuple[Expression, Sketches]] = {
    "product": (matmul(1024, 1024, 1024), tiled_sketches),
    "c12_direct": (C12, tiled_sketches),
    "c12_winograd": (C12, batched_winograd_sketches),
}


def text_of(name: str, target: GpuTarget) -> str:
    """The first sketch of a case that folds all terms in one launch, with its decisions by rule."""
    expression, sketches = CASES[name]
    sketch = next(each for each in sketches(expression.state, target) if "split" not in each.name)
    workload = program(expression.outputs, expression.constants)
    made = loop_program(workload, sketch.bound(sketch.defaults), target)
    return CUDA_BACKEND.emit(made, target).text


@pytest.mark.parametrize("name", CASES)
def test_text(name: str, golden: Callable[..., None]) -> None:
    golden(text_of(name, SM_90A), suffix="cu")


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_spilled(name: str) -> None:
    nvrtc = find_nvrtc()
    if nvrtc is None:
        pytest.skip("NVRTC is not installed")
    for target in (gpu_target("cuda:sm_75"), SM_90A):
        taken = nvrtc.resources(text_of(name, target), target.arch, name)
        assert len(taken) == (3 if name == "c12_winograd" else 1)
        for each in taken:
            assert (each.spilled_bytes, each.stack_bytes) == (0, 0), each
