"""Borders that lie only along taps: what is padded is not copied."""

from __future__ import annotations

import pytest
from tests.draws import random_source
from tests.targets import AVX2, AVX512, native_target
from tests.unit.tuning.compiled import check_schedule, weights, workloads

from tensorwright.base import CpuTarget
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.schedule import ComputeInline, SkipZeros, format_trace, state_of
from tensorwright.tuning.space import Sketch, space_of

pytestmark = pytest.mark.target


def convolution(kernel: tuple[int, ...], *, of_relu: bool = False) -> Graph:
    """A convolution whose border is as wide as half of its kernel, of 20 channels."""
    b = GraphBuilder("convolution")
    size = (4, 6, 8)[3 - len(kernel) :]
    x = b.input("x", (1, 20, *size))
    half = tuple(extent // 2 for extent in kernel)
    y = b.add("relu", x) if of_relu else x
    y = b.add("conv", y, b.constant(weights(8, 20, *kernel)), pads=(*half, *half))
    return b.finish([b.add("sigmoid", y)])


def first_sketch(graph: Graph, target: CpuTarget) -> Sketch:
    return space_of(state_of(workloads(graph, target)[0][0]), target).sketches[0]


def copies(sketch: Sketch) -> bool:
    inlined = {step.stage for step in sketch.trace if isinstance(step, ComputeInline)}
    return "conv_pad" not in inlined


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda target: target.name)
def test_what_is_padded_along_depth_is_read_where_it_lies(target: CpuTarget) -> None:
    sketch = first_sketch(convolution((3, 1, 1)), target)
    assert not copies(sketch)
    assert [step.axis for step in sketch.trace if isinstance(step, SkipZeros)] == ["kd"]


def test_both_compete() -> None:
    space = space_of(state_of(workloads(convolution((3, 1, 1)), AVX2)[0][0]), AVX2)
    by_rule = [sketch for sketch in space.sketches if sketch.name.startswith("tile, ")]
    assert len([sketch for sketch in by_rule if "border copied" in sketch.name]) * 2 == len(by_rule)
    assert all(copies(sketch) == ("border copied" in sketch.name) for sketch in by_rule)


@pytest.mark.parametrize("kernel", [(1, 3, 1), (1, 1, 3), (3, 3, 3)])
def test_what_is_padded_along_a_tile_is_copied(kernel: tuple[int, ...]) -> None:
    assert copies(first_sketch(convolution(kernel), AVX512))


def test_what_is_computed_before_is_computed_once() -> None:
    assert copies(first_sketch(convolution((3, 1, 1), of_relu=True), AVX512))


@pytest.mark.parametrize("kernel", [(3, 1, 1), (5, 1), (3, 3, 1)])
@pytest.mark.drawn
def test_values(kernel: tuple[int, ...]) -> None:
    target = native_target()
    (case,) = workloads(convolution(kernel), target)[:1]
    sketches = space_of(state_of(case[0]), target).sketches
    for sketch in (sketches[0], *random_source(kernel).sample(sketches[1:], len(sketches) // 3)):
        check_schedule(case, format_trace(sketch.bound(sketch.defaults)), target)
