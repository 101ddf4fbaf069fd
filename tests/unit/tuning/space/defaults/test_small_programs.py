"""The rules on programs that are smaller than a tile, or whose results are spread again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.targets import AVX512, native_target
from tests.unit.tuning.compiled import check_network, weights

from tensorwright.artifacts import assemble_workload, build_cached
from tensorwright.base import DType
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    choose_layouts,
    partition,
    program,
    reference,
    simplify,
)
from tensorwright.schedule import initial_state, state_of
from tensorwright.tuning.space import space_of

pytestmark = pytest.mark.target


def in_one_tile() -> Graph:
    """A sum along windows whose result is smaller than a vector: there is no loop over tiles."""
    b = GraphBuilder("in_one_tile")
    return b.finish([b.add("cumsum", b.input("x", (5,)), axis=0)])


def spread_again() -> Graph:
    """A reduction that its only reader spreads over the axis that it folded."""
    b = GraphBuilder("spread_again")
    return b.finish([b.add("lp_normalization", b.input("x", (6, 40)), axis=1)])


def fed_in_a_block() -> Graph:
    """A product one of whose operands is computed, and whose result is used twice, by rows."""
    b = GraphBuilder("fed_in_a_block")
    x = b.input("x", (3, 5))
    gate = b.add("sigmoid", b.add("mul", x, x))
    y = b.add("tanh", b.add("matmul", b.add("mul", gate, x), b.constant(weights(5, 5))))
    return b.finish([b.add("add", b.add("mul", gate, b.add("sub", x, y)), y)])


def enlarged() -> Graph:
    """Four reads of four reads, each with a long weight: too much to compute twice."""
    b = GraphBuilder("enlarged")
    x = b.input("x", (1, 1, 5, 7))
    return b.finish([b.add("resize", x, sizes=(1, 1, 11, 13), mode="cubic")])


GRAPHS = [in_one_tile, spread_again, fed_in_a_block, enlarged]


@pytest.mark.parametrize("make", GRAPHS)
def test_values(make: Callable[[], Graph]) -> None:
    check_network(make())


def rule_of(graph: Graph) -> list[str]:
    target = AVX512
    parts = partition(choose_layouts(simplify(graph), target))
    states = [state_of(w) for w in parts.workloads]
    return [space_of(state, target).sketches[0].name for state in states]


def test_a_reduction_that_is_spread_again_is_computed_by_rows() -> None:
    assert rule_of(spread_again()) == ["rows"]


def test_long_expressions_are_not_computed_again_by_each_reader() -> None:
    target = AVX512
    parts = partition(choose_layouts(simplify(enlarged()), target))
    (workload,) = parts.workloads
    space = space_of(state_of(workload), target)
    assert "inline" not in str(space.default_trace)


def test_narrow_floats_leave_no_names_of_the_graph_in_a_workload() -> None:
    def key(name: str) -> str:
        b = GraphBuilder("narrow")
        x = b.input(name, (4, 8), DType.F16)
        parts = partition(b.finish([b.add("softmax", x, axis=1)]))
        return parts.workloads[0].key

    assert key("x") == key("Attention.1/odd name")


@pytest.mark.parametrize("make", GRAPHS)
def test_values_of_every_sketch(make: Callable[[], Graph]) -> None:
    graph = make()
    target = native_target()
    parts = partition(choose_layouts(simplify(graph), target))
    for each in parts.workloads:
        workload = program(each.outputs)  # its constants are inputs, and not packed
        inputs = [
            weights(*(n for n in tensor.shape if isinstance(n, int))) for tensor in workload.inputs
        ]
        expected = reference(workload, inputs)
        space = space_of(initial_state(workload.outputs), target)
        for sketch in space.sketches:
            built = build_cached(workload, sketch.bound(sketch.defaults), target)
            executable = assemble_workload(workload, built, target, 2)
            found = executable.run(
                {t.name: a for t, a in zip(workload.inputs, inputs, strict=True)}
            )
            for tensor, array in zip(workload.outputs, expected, strict=True):
                assert np.abs(found[tensor.name] - array).max() <= 1e-5 * np.abs(array).max()
