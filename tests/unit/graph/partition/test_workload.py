"""Workloads: physical shapes, simplified indices, names and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.graph.partition.partition_runner import to_plain
from tests.unit.graph.small_networks import Maker

from tensorwright.base import DType, InternalError, UsageError
from tensorwright.expr import Compute, compute, loads_of, named_size, placeholder
from tensorwright.graph import (
    PLAIN,
    Graph,
    GraphBuilder,
    Layout,
    build_workload,
    physical_shape,
    program,
    reference,
    run_node,
    to_physical,
)

BLOCKED = Layout(axis=1, block=16)


def _convolution(x: Layout = BLOCKED, y: Layout = BLOCKED) -> Graph:
    m = Maker("convolution")
    out = m.add("relu", m.conv(m.image(32), 32))
    graph = m.finish(out)
    made = [name for node in graph.nodes for name in node.outputs]
    return replace(graph, layouts={"x": x, **dict.fromkeys(made, y)})


@st.composite
def _laid_out(draw: st.DrawFn) -> tuple[tuple[int, ...], Layout]:
    rank = draw(st.integers(1, 5))
    shape = [draw(st.integers(1, 3)) for _ in range(rank)]
    order = draw(st.sampled_from([(), tuple(draw(st.permutations(range(rank))))]))
    if draw(st.booleans()):
        axis, block = draw(st.integers(0, rank - 1)), draw(st.sampled_from([2, 4]))
        shape[axis] *= block
        return tuple(shape), Layout(axis, block, order)
    return tuple(shape), Layout(order=order)


@settings(max_examples=30)
@given(_laid_out())
def test_physical_arrays_convert_back(case: tuple[tuple[int, ...], Layout]) -> None:
    shape, layout = case
    array = np.arange(np.prod(shape)).reshape(shape)
    physical = to_physical(array, layout)
    assert physical.shape == physical_shape(shape, layout)
    assert np.array_equal(to_plain(physical, layout), array)


def test_a_blocked_array_has_its_block_last() -> None:
    array = np.arange(2 * 32 * 3).reshape(2, 32, 3)
    physical = to_physical(array, BLOCKED)
    assert physical.shape == (2, 2, 3, 16)
    assert physical[1, 1, 2, 5] == array[1, 16 + 5, 2]


@settings(max_examples=20)
@given(case=_laid_out(), other=_laid_out())
def test_any_layout_can_be_read_and_written(
    case: tuple[tuple[int, ...], Layout], other: tuple[tuple[int, ...], Layout]
) -> None:
    shape, layout = case
    b = GraphBuilder("pad")
    pads = (0,) * len(shape) + (1,) + (0,) * (len(shape) - 1)
    y = b.add("pad", b.add("exp", b.input("x", shape)), pads=pads)
    graph = b.finish([y])
    target = other[1] if len(other[0]) == len(shape) else PLAIN
    if target.block > 1 and graph.types[y].shape[target.axis] % target.block:
        target = PLAIN
    layouts = {"x": layout, graph.nodes[0].outputs[0]: layout, y: target}
    bound = build_workload(replace(graph, layouts=layouts), graph.nodes)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    (found,) = reference(bound.workload, [to_physical(x, layout)])
    expected = np.pad(np.exp(x), [(0, int(at == 0)) for at in range(len(shape))])
    np.testing.assert_allclose(to_plain(found, target), expected, rtol=1e-6)


def test_a_blocked_convolution(golden: Callable[..., None]) -> None:
    graph = _convolution()
    golden(str(build_workload(graph, graph.nodes).workload))


def test_a_convolution_between_layouts(golden: Callable[..., None]) -> None:
    graph = _convolution(PLAIN, Layout(axis=1, block=8))
    golden(str(build_workload(graph, graph.nodes).workload))


def test_axes_are_divided_only_along_reductions() -> None:
    graph = _convolution()
    for stage in build_workload(graph, graph.nodes).workload.stages:
        own = {axis.name for axis in stage.axes}
        for load in loads_of(stage.body):
            for index in map(str, load.indices):
                divided = {name for name in own if f"{name}//" in index or f"{name}%" in index}
                assert not divided


@pytest.mark.parametrize(("pads", "rank"), [((0,) * 4, 5), ((1,) * 4, 7)])
def test_phases_are_blocked_like_the_output(pads: tuple[int, ...], rank: int) -> None:
    """As axes of their own, or several times the channels where they read the same inputs."""
    m = Maker("transposed")
    weights = m.weight(16, 32, 4, 4)
    image = m.image()
    y = m.add("conv_transpose", image, weights, strides=(2, 2), pads=pads)
    graph = replace(m.finish(y), layouts={image: BLOCKED, y: BLOCKED})
    workload = build_workload(graph, graph.nodes).workload
    phases = next(stage for stage in workload.stages if stage.reduction is not None)
    assert len(phases.axes) == rank
    assert [axis.name for axis in phases.axes][-1] == "oc_i"
    x = np.random.default_rng(0).normal(size=(1, 16, 6, 6)).astype(np.float32)
    (found,) = reference(workload, [to_physical(x, BLOCKED), graph.constants["constant_0"]])
    (expected,) = run_node(graph.nodes[0], [x, graph.constants["constant_0"]])
    np.testing.assert_allclose(to_plain(found, BLOCKED), expected, rtol=1e-4, atol=1e-4)


def test_names_are_unique_and_independent_of_the_graph() -> None:
    graph = _convolution()
    workload = build_workload(graph, graph.nodes).workload
    names = [tensor.name for tensor in (*workload.inputs, *workload.stages)]
    assert names == ["x", "w", "w_1", "conv_pad", "conv", "conv_bias", "relu"]
    assert workload.constants == {"w", "w_1"}


def test_constants_of_one_element_are_numbers() -> None:
    b = GraphBuilder("numbers")
    x = b.input("x", (2, 3), DType.I64)
    y = b.add("mul", x, b.constant(np.array([[7]])))
    row = b.add("gather", y, b.constant(np.int64(-1)), axis=1)
    graph = b.finish([row])
    bound = build_workload(graph, graph.nodes)
    assert bound.inputs == ("x",)
    (found,) = reference(bound.workload, [np.arange(6).reshape(2, 3)])
    assert found.tolist() == [14, 35]


def test_the_key_tells_apart_the_bounds_of_sizes() -> None:
    """A schedule of rows in 1..8 need not be legal, or fast, for rows in 1..512."""

    def key(**bounds: int) -> str:
        n = named_size("n", **bounds)
        x = placeholder("x", (n, 4))
        return program([compute("y", (n, 4), lambda i, j: x[i, j] * 2.0)]).key

    bounds = ({}, {"greatest": 8}, {"greatest": 512}, {"least": 8, "greatest": 512})
    keys = {key(**each) for each in (*bounds, {"least": 8, "greatest": 512, "divisor": 8})}
    assert len(keys) == 5
    assert key(greatest=8) == key(greatest=8)


def test_the_key_tells_apart_what_kernels_depend_on() -> None:
    def key(graph: Graph) -> str:
        return build_workload(graph, graph.nodes).workload.key

    def product(constant: bool, width: int = 4, number: float = 2.0) -> Graph:
        b = GraphBuilder("product")
        x = b.input("x", (3, width))
        ones = np.ones((width, 5), np.float32)
        w = b.constant(ones) if constant else b.input("w", (width, 5))
        scaled = b.add("mul", b.add("matmul", x, w), b.constant(np.float32(number)))
        return b.finish([scaled])

    same = key(product(constant=True))
    assert len(same) == 16
    assert same == key(product(constant=True))
    others = [
        product(constant=False),
        product(constant=True, width=6),
        product(constant=True, number=3.0),
    ]
    assert len({same, *map(key, others)}) == 4
    keys = {key(_convolution(x, y)) for x in (BLOCKED, PLAIN) for y in (BLOCKED, PLAIN)}
    assert len(keys) == 4


def test_several_outputs() -> None:
    b = GraphBuilder("parts")
    x = b.input("x", (2, 6))
    b.apply("split", (x,), sizes=(2, 4), axis=1)
    graph = b.finish([])
    workload = build_workload(graph, graph.nodes).workload
    array = np.arange(12, dtype=np.float32).reshape(2, 6)
    first, second = reference(workload, [array])
    assert np.array_equal(np.concatenate([first, second], 1), array)
    assert [type_.shape for type_ in workload.output_types] == [(2, 2), (2, 4)]


def test_stages_are_in_order() -> None:
    graph = _convolution()
    known: set[object] = set(build_workload(graph, graph.nodes).workload.inputs)
    bound = build_workload(graph, graph.nodes)
    known = set(bound.workload.inputs)
    for stage in bound.workload.stages:
        assert {load.source for load in loads_of(stage.body)} <= known
        assert isinstance(stage, Compute)
        known.add(stage)


def test_opaque_nodes_have_no_workload() -> None:
    b = GraphBuilder("host")
    b.apply("topk", (b.input("x", (5,)),), k=2)
    graph = b.finish([])
    with pytest.raises(InternalError, match="no tensor expression"):
        build_workload(graph, graph.nodes)


def test_an_expression_of_ones_own_keeps_its_names() -> None:
    a, b = placeholder("a", (3,)), placeholder("b", (3,))
    total = compute("total", (3,), lambda i: a[i] + b[i])
    workload = program([total], frozenset({"b"}))
    assert (workload.name, workload.inputs, workload.outputs) == ("total", (a, b), (total,))
    assert workload.key == program([total], frozenset({"b"})).key
    assert workload.key != program([total]).key
    (found,) = reference(workload, [np.ones(3, np.float32), np.ones(3, np.float32)])
    assert found.tolist() == [2, 2, 2]


def test_an_expression_needs_different_names() -> None:
    a, b = placeholder("a", (3,)), placeholder("a", (3,))
    total = compute("total", (3,), lambda i: a[i] + b[i])
    with pytest.raises(UsageError, match="two tensors are called a"):
        program([total])
    with pytest.raises(UsageError, match="c is not one of its placeholders"):
        program([compute("one", (3,), lambda i: a[i] + 1.0)], frozenset({"c"}))


def _scaled(factors: tuple[float, float]) -> Graph:
    """Two pieces that differ in their names and, perhaps, in a constant of one element."""
    builder = GraphBuilder("scaled")
    x = builder.input("x", (4, 16))
    for number, factor in enumerate(factors):
        scale = builder.constant(np.float32(factor), f"scale_{number}")
        x = builder.add("relu", builder.add("mul", x, scale))
    return builder.finish([x])


def test_equal_pieces_of_a_network_are_one_workload_bound_to_other_tensors() -> None:
    graph = _scaled((2.0, 2.0))
    first, second = (build_workload(graph, graph.nodes[at : at + 2]) for at in (0, 2))
    assert first.workload is second.workload
    assert first.inputs == ("x",)
    assert second.inputs == first.outputs
    assert second.outputs == graph.outputs


@pytest.mark.parametrize("factors", [(2.0, 3.0), (0.0, -0.0)])
def test_pieces_with_other_numbers_are_other_workloads(factors: tuple[float, float]) -> None:
    graph = _scaled(factors)
    first, second = (build_workload(graph, graph.nodes[at : at + 2]) for at in (0, 2))
    assert first.workload.key != second.workload.key
