"""Products whose lanes are no whole number of vectors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.draws import random_source
from tests.targets import AVX2, AVX512, native_target
from tests.unit.tuning.compiled import check_sketches, weights, workloads

from tensorwright.base import CpuTarget
from tensorwright.graph import Graph, GraphBuilder
from tensorwright.schedule import Split, Tail, state_of
from tensorwright.tuning.space import Sketch, space_of
from tensorwright.tuning.space.defaults.tile_sizes import leaves_masked_rest
from tensorwright.tuning.space.register_tile import tile_registers

pytestmark = pytest.mark.target


def product(columns: int) -> Graph:
    """A product of so many columns."""
    b = GraphBuilder("product")
    y = b.add("matmul", b.input("x", (26, 20)), b.constant(weights(20, columns)))
    return b.finish([b.add("relu", y)])


def image(width: int) -> Graph:
    """A convolution of one channel: the lanes are positions."""
    b = GraphBuilder("image")
    y = b.add(
        "conv", b.input("x", (1, 1, width, width)), b.constant(weights(12, 1, 5, 5)), pads=(2,) * 4
    )
    return b.finish([b.add("relu", y)])


def sketches_of(graph: Graph, target: CpuTarget) -> tuple[Sketch, ...]:
    return space_of(state_of(workloads(graph, target)[0][0]), target).sketches


def test_which_rests_are_awkward() -> None:
    awkward = [n for n in range(16, 33) if leaves_masked_rest(n, 16)]
    assert awkward == [19, 21, 22, 23, 25, 26, 27, 28, 29, 30, 31]


@pytest.mark.parametrize("lanes", [28, 44])
@pytest.mark.parametrize("make", [product, image])
def test_the_last_vector_is_shifted_back_where_it_would_be_masked(
    make: Callable[[int], Graph], lanes: int
) -> None:
    along = "j" if make is product else "w"
    for sketch in sketches_of(make(lanes), AVX512):
        splits = (step for step in sketch.trace if isinstance(step, Split))
        tails = {step.tail for step in splits if (step.stage, step.loop) == ("relu", along)}
        if "tiled" not in sketch.name:  # what is folded in memory cannot be computed twice
            assert tails == {Tail.SHIFT}


@pytest.mark.parametrize("lanes", [28, 30, 44, 60])
def test_sums_and_vectors_of_a_tile_fit_the_registers(lanes: int) -> None:
    for target in (AVX2, AVX512):
        sketch = sketches_of(image(lanes), target)[0]
        chosen = sketch.defaults
        columns = chosen.get("columns", 1) * chosen.get("more_columns", 1)
        rows = chosen.get("rows", 1) * chosen.get("more_rows", 1)
        assert columns * (rows + 1) <= tile_registers(target)


@pytest.mark.parametrize("graph", [product(28), image(28), product(44)])
@pytest.mark.drawn
def test_values(graph: Graph) -> None:
    target = native_target()
    (case,) = workloads(graph, target)[:1]
    sketches = space_of(state_of(case[0]), target).sketches
    check_sketches(case, sketches, target, random_source(4), 2)
