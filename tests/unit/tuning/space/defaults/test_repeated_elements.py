"""Rows whose neighbours read few elements: how wide the rule makes the vectors of resized rows."""

import pytest
from tests.targets import AVX2, AVX512
from tests.unit.tuning.compiled import check_network

from tensorwright.base import CpuTarget, DType
from tensorwright.expr import Load, Placeholder, Var, floor_div, maximum, minimum, mod
from tensorwright.graph import Graph, GraphBuilder, choose_layouts, partition, simplify
from tensorwright.schedule import format_trace, state_of
from tensorwright.tuning.space import default_trace
from tensorwright.tuning.space.accesses import repetition_along

pytestmark = pytest.mark.target


def enlarged(scale: int, mode: str = "linear", columns: int = 32) -> Graph:
    """An image whose rows and columns are enlarged."""
    b = GraphBuilder("enlarged")
    x = b.input("x", (1, 3, 5, columns))
    return b.finish([b.add("resize", x, sizes=(1, 3, 5 * scale, columns * scale), mode=mode)])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scale", [2, 3, 5, 16])
def test_values(scale: int, mode: str) -> None:
    check_network(enlarged(scale, mode))


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=str)
@pytest.mark.parametrize(("scale", "vectors"), [(2, 1), (3, 3), (5, 5), (11, 1)])
def test_vectors_side_by_side_read_the_same_again(
    target: CpuTarget, scale: int, vectors: int
) -> None:
    parts = partition(choose_layouts(simplify(enlarged(scale)), target))
    (workload,) = parts.workloads
    lanes = target.vector_bytes // 4
    assert f"[{vectors * lanes}])" in format_trace(default_trace(state_of(workload), target))


def test_divisors_are_sought_inside_of_minima_and_sums() -> None:
    x, i, j = Placeholder("x", (9, 99), DType.F32), Var("i"), Var("j")
    clamped = minimum(maximum(floor_div(i + 1, 4) - 1, 0), 98)
    assert repetition_along([Load(x, (j, clamped))], i) == 4
    assert repetition_along([Load(x, (mod(j, 5), clamped)), Load(x, (mod(i, 6), j))], i) == 12
    assert repetition_along([Load(x, (mod(j, 5), clamped))], j) == 5
    assert repetition_along([Load(x, (j, i))], i) == 1
