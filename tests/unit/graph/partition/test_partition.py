"""Partitions: equal to the interpreter, with the kernels that a reader expects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.targets import AVX512
from tests.unit.graph import small_networks as networks
from tests.unit.graph.partition.partition_runner import check_partition
from tests.unit.graph.random_graphs import graphs
from tests.unit.graph.small_networks import NETWORKS, Maker

from tensorwright.base import cpu_target
from tensorwright.graph import (
    AliasCall,
    Graph,
    GraphBuilder,
    Layout,
    Limits,
    Node,
    OpaqueCall,
    choose_layouts,
    elide_concats,
    partition,
    rename_tensors,
    verify,
    verify_partition,
)

Network = Callable[[], Graph]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("target", ["", "x86-64-avx2", "x86-64-avx512"])
def test_networks_compute_what_the_interpreter_does(network: Network, target: str) -> None:
    graph = network()
    if target:
        graph = choose_layouts(graph, cpu_target(target))
    check_partition(partition(graph))


@settings(max_examples=30)
@given(graph=graphs())
def test_random_graphs_compute_what_the_interpreter_does(graph: Graph) -> None:
    check_partition(partition(graph))


@pytest.mark.parametrize("network", NETWORKS)
def test_steps_can_run_in_their_order(network: Network) -> None:
    graph = choose_layouts(network(), AVX512)
    verify_partition(partition(graph))


@settings(max_examples=20)
@given(network=st.sampled_from(NETWORKS), seed=st.integers(0, 99))
def test_any_layouts_give_the_same_results(network: Network, seed: int) -> None:
    """Layouts at random, also of inputs and outputs; what the host touches stays plain."""
    graph = network()
    generator = np.random.default_rng(seed)
    plain = {name for node in graph.nodes if node.operator == "topk" for name in node.inputs}
    plain |= {name for node in graph.nodes if node.operator == "topk" for name in node.outputs}
    layouts: dict[str, Layout] = {}
    for name, type_ in graph.types.items():
        rank = len(type_.shape)
        if name in plain or generator.random() < 0.3:
            continue
        order = tuple(map(int, generator.permutation(rank))) if generator.random() < 0.3 else ()
        axis = int(generator.integers(max(rank, 1)))
        fitting = [block for block in (2, 4, 8) if rank and type_.shape[axis] % block == 0]
        block = int(generator.choice(fitting)) if fitting else 1
        layouts[name] = Layout(axis, block, order) if block > 1 else Layout(order=order)
    check_partition(partition(verify(replace(graph, layouts=layouts))))


def _reordered(graph: Graph) -> Graph:
    """The nodes in another topological order: the last that can run comes first."""
    waiting = list(graph.nodes)
    known = {*graph.inputs, *graph.constants}
    order: list[Node] = []
    while waiting:
        node = next(node for node in reversed(waiting) if set(node.inputs) <= known)
        waiting.remove(node)
        known.update(node.outputs)
        order.append(node)
    return replace(graph, nodes=tuple(order))


@pytest.mark.parametrize("network", NETWORKS)
def test_keys_survive_other_names_and_another_order(network: Network) -> None:
    graph = choose_layouts(network(), AVX512)
    expected = sorted(call.workload.key for call in partition(graph).kernels)
    names: Mapping[str, str] = {name: f"t{at}" for at, name in enumerate(reversed(graph.types))}
    for other in (_reordered(graph), rename_tensors(graph, names)):
        again = choose_layouts(replace(other, layouts={}), AVX512)
        assert sorted(call.workload.key for call in partition(again).kernels) == expected


@pytest.mark.parametrize(
    ("network", "kernels"),
    [
        (networks.chain, 3),
        (networks.basic_block, 8),  # stem, 2, 3 with the projection, pooling, classifier
        (networks.depthwise, 5),
        (networks.dense_block, 9),  # no concatenation among them
        (networks.fire, 5),
        (networks.softmax, 1),
        (networks.layer_norm, 1),
        (networks.encoder, 10),  # 3 projections, scores, mix, 3 dense ones, 2 normalisations
    ],
)
def test_known_structures_have_so_many_kernels(network: Network, kernels: int) -> None:
    for graph in (network(), choose_layouts(network(), AVX512)):
        assert len(partition(graph).kernels) == kernels


@pytest.mark.parametrize("network", [networks.dense_block, networks.encoder, networks.pieces])
def test_listing(network: Network, golden: Callable[..., None]) -> None:
    golden(str(partition(choose_layouts(network(), AVX512))))


def test_equal_workloads_are_one_object() -> None:
    parts = partition(networks.encoder())
    first, second = (call.workload for call in parts.kernels if "sqrt" in str(call.nodes))
    assert first is second
    assert parts.count(first) == 2


def test_a_result_with_two_readers_ends_its_group() -> None:
    m = Maker("fork")
    x = m.conv(m.image(), 16)
    graph = m.finish(m.add("relu", x), m.add("neg", x))
    assert [call.workload.name for call in partition(graph).kernels] == ["conv2d", "relu", "neg"]


def test_a_result_that_is_an_output_ends_its_group() -> None:
    m = Maker("shown")
    x = m.conv(m.image(), 16)
    graph = m.finish(x, m.add("relu", x))
    assert [call.workload.name for call in partition(graph).kernels] == ["conv2d", "relu"]


def test_a_gate_that_pools_the_result_stays_outside() -> None:
    m = Maker("squeeze_and_excite")
    x = m.conv(m.image(), 16)
    gate = m.add("sigmoid", m.conv(m.add("global_average_pool", x), 16, kernel=1))
    graph = m.finish(m.add("mul", x, gate))
    names = [call.workload.name for call in partition(graph).kernels]
    assert names == ["conv2d", "global_average_pool", "conv2d_sigmoid", "mul"]
    check_partition(partition(graph))


def test_a_dense_product_takes_the_normalisation_behind_it_only_by_option() -> None:
    m = Maker("dense")
    x = m.builder.input("x", (4, 8))
    y = m.add("layer_norm", m.add("matmul", x, m.weight(8, 8)), m.weight(8))
    graph = m.finish(y)
    assert len(partition(graph).kernels) == 2
    joined = partition(graph, Limits(dense_with_rows=True))
    assert [call.workload.name for call in joined.kernels] == ["matmul_layer_norm"]
    check_partition(joined)


def test_limits_bound_a_group() -> None:
    b = GraphBuilder("long")
    x = b.input("x", (4,))
    for _ in range(25):
        x = b.add("add", b.add("neg", x), x)
    for limits in (Limits(), Limits(nodes=7), Limits(nodes=1)):
        parts = partition(b.finish([x]), limits)
        assert max(len(call.nodes) for call in parts.kernels) <= limits.nodes
        check_partition(parts)


def test_many_inputs_bound_a_group() -> None:
    b = GraphBuilder("wide")
    total = b.input("x", (4,))
    for at in range(30):
        total = b.add("add", total, b.input(f"x{at}", (4,)))
    parts = partition(b.finish([total]))
    assert len(parts.kernels) > 1
    assert all(len(call.inputs) <= Limits().inputs for call in parts.kernels)
    check_partition(parts)


def test_a_reshape_joins_where_the_group_goes_on_behind_it() -> None:
    b = GraphBuilder("reshapes")
    x, y = b.input("x", (4, 6)), b.input("y", (6, 4))
    w = b.constant(np.ones((6, 6), np.float32))
    inner = b.add("add", b.add("reshape", b.add("matmul", x, w), shape=(6, 4)), y)
    last = b.add("reshape", inner, shape=(24,))
    parts = partition(b.finish([last]))
    assert [len(call.nodes) for call in parts.kernels] == [3]
    assert [type(step) for step in parts.steps][-1] is AliasCall
    check_partition(parts)


@pytest.mark.parametrize(("steps", "is_view"), [((1,), True), ((2,), False), ((-1,), False)])
def test_a_slice_is_a_view_only_if_it_leaves_nothing_out(
    steps: tuple[int, ...], is_view: bool
) -> None:
    b = GraphBuilder("rows")
    x = b.input("x", (8, 16))
    first, last = (7, 0) if steps == (-1,) else (0, 7)
    rows = b.add("slice", x, starts=(first,), ends=(last,), axes=(0,), steps=steps)
    parts = partition(
        b.finish([rows, b.add("matmul", rows, b.constant(np.eye(16, 4, dtype="f4")))])
    )
    assert any(isinstance(step, AliasCall) for step in parts.steps) is is_view
    check_partition(parts)


def test_nested_concats_are_placed_at_offsets() -> None:
    found = elide_concats(networks.dense_block())
    offsets = [[offset for _, offset in concat.parts] for concat in found]
    plane = 6 * 6 * 4
    assert offsets == [[0, 32 * plane], [0, 48 * plane], [0, 64 * plane]]
    assert found[1].parts[0][0] == found[0].output


@pytest.mark.parametrize(
    "case", ["input", "output", "twice", "inner_axis", "unaligned", "two_wholes", "batch"]
)
def test_a_concat_that_cannot_be_placed_is_a_kernel(case: str) -> None:
    b = GraphBuilder(case)
    batch = 2 if case == "batch" else 1
    size = 3 if case == "unaligned" else 4
    x = b.input("x", (batch, 16 if case != "unaligned" else 15, size, size))
    y, z = b.add("exp", x), b.add("tanh", x)
    if case == "input":
        y = x
    if case == "twice":
        z = y
    axis = 2 if case == "inner_axis" else 1
    whole = b.add("concat", y, z, axis=axis)
    outputs = [b.add("neg", whole)]
    if case == "output":
        outputs.append(y)
    if case == "two_wholes":
        outputs.append(b.add("relu", b.add("concat", z, y, axis=1)))
    parts = partition(b.finish(outputs))
    assert len(elide_concats(parts.graph)) == (case == "two_wholes")
    check_partition(parts)


def test_a_concat_of_blocked_tensors_selects_whole_blocks() -> None:
    b = GraphBuilder("blocked")
    x = b.input("x", (2, 32, 3, 3))
    whole = b.add("concat", b.add("exp", x), b.add("neg", x), axis=1)
    graph = b.finish([b.add("relu", whole)])
    blocked = Layout(axis=1, block=16)
    layouts = dict.fromkeys([name for node in graph.nodes for name in node.outputs], blocked)
    parts = partition(replace(graph, layouts=layouts))
    assert "select(c_o < 2, " in str(parts.workloads[-1])
    check_partition(parts)


def test_pieces_are_aliases() -> None:
    b = GraphBuilder("pieces")
    x = b.input("x", (1, 32, 4, 4))
    first, second = b.apply("split", (x,), sizes=(8, 24), axis=1)
    third = b.add("slice", x, starts=(16,), ends=(100,), axes=(1,))
    parts = partition(b.finish([b.add("neg", y) for y in (first, second, third)]))
    aliases = [step for step in parts.steps if isinstance(step, AliasCall)]
    assert [alias.offset_bytes for alias in aliases] == [0, 8 * 64, 16 * 64]
    check_partition(parts)


def test_opaque_nodes_are_calls_of_their_own() -> None:
    parts = partition(networks.pieces())
    assert sum(isinstance(step, OpaqueCall) for step in parts.steps) == 1


def test_rearrangements_behind_each_other_are_not_computed_ever_more_often() -> None:
    b = GraphBuilder("orders")
    x, order = b.input("x", (4, 3)), b.constant(np.array([2, 0, 3, 1]))
    for _ in range(12):
        x = b.add("add", b.add("gather", x, order, axis=0), x)
    parts = partition(b.finish([x]))
    assert len(parts.steps) == 3
    check_partition(parts)
