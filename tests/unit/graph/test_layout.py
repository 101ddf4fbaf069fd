"""Layouts: blocked where convolutions gain, plain where nobody does, never wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.targets import AVX2, AVX512
from tests.unit.graph import small_networks as networks
from tests.unit.graph.partition.partition_runner import check_partition
from tests.unit.graph.small_networks import NETWORKS, Maker

from tensorwright.base import CpuTarget
from tensorwright.graph import (
    PLAIN,
    Graph,
    GraphBuilder,
    Layout,
    choose_layouts,
    conversions,
    describe_layouts,
    layout_cost,
    partition,
    verify,
)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("target", [AVX2, AVX512], ids=str)
def test_layouts_fit_and_cost_no_more_than_plain(
    network: Callable[[], Graph], target: CpuTarget
) -> None:
    graph = network()
    chosen = choose_layouts(graph, target)
    verify(chosen)
    assert layout_cost(chosen, target) <= layout_cost(graph, target)
    assert choose_layouts(chosen, target).layouts == chosen.layouts
    for name in (*graph.inputs, *graph.outputs, *graph.constants):
        assert name not in chosen.layouts


@pytest.mark.parametrize(("target", "block"), [(AVX2, 8), (AVX512, 16)], ids=str)
def test_residual_networks_are_blocked_by_whole_vectors(target: CpuTarget, block: int) -> None:
    chosen = choose_layouts(networks.basic_block(), target)
    assert set(chosen.layouts.values()) == {Layout(axis=1, block=block)}
    inner = {name for node in chosen.nodes for name in node.outputs if "relu" in name}
    assert inner <= chosen.layouts.keys()
    assert conversions(chosen) == ()


def test_channels_that_a_vector_does_not_divide_are_one_block_or_take_half_of_one() -> None:
    m = Maker("narrow")
    x = m.add("relu", m.conv(m.image(3), 24))
    y = m.add("relu", m.conv(x, 32))
    chosen = choose_layouts(m.finish(m.add("global_average_pool", y)), AVX512)
    assert chosen.layouts[x] == Layout(axis=1, block=24)
    assert chosen.layouts[y] == Layout(axis=1, block=16)
    for channels, block in ((72, 72), (216, 216), (520, 8)):
        m = Maker("wide")
        x = m.add("relu", m.conv(m.image(3), channels))
        chosen = choose_layouts(m.finish(m.add("global_average_pool", x)), AVX512)
        assert chosen.layouts[x] == Layout(axis=1, block=block)


def test_odd_channels_stay_plain() -> None:
    m = Maker("odd")
    x = m.add("relu", m.conv(m.image(3), 7))
    assert not choose_layouts(m.finish(m.conv(x, 10)), AVX512).layouts


@pytest.mark.parametrize("network", [networks.encoder, networks.layer_norm, networks.softmax])
def test_networks_without_channels_stay_plain(network: Callable[[], Graph]) -> None:
    assert not choose_layouts(network(), AVX512).layouts


def test_what_the_host_reads_is_plain() -> None:
    m = Maker("host")
    x = m.add("relu", m.conv(m.image(), 16))
    values, _ = m.builder.apply("topk", (x,), k=2)
    chosen = choose_layouts(m.finish(m.add("relu", m.conv(values, 16))), AVX512)
    assert not {x, values} & chosen.layouts.keys()
    check_partition(partition(chosen))


def test_a_kernel_writes_in_one_layout() -> None:
    """Element-wise nodes that share a kernel with a convolution do not convert."""
    for network in NETWORKS:
        chosen = choose_layouts(network(), AVX512)
        for call in partition(chosen).kernels:
            inside = {name for node in call.nodes for name in node.outputs}
            shape = chosen.types[call.outputs[0]].shape
            after = [n for n in call.nodes if n.operator in ("relu", "clip", "add")]
            for node in after:
                for name in (*node.inputs, *node.outputs):
                    if name in inside and chosen.types[name].shape == shape:
                        wanted = chosen.layouts.get(call.outputs[0], PLAIN)
                        assert chosen.layouts.get(name, PLAIN) == wanted


def test_a_grouped_convolution_is_not_blocked_across_groups() -> None:
    m = Maker("groups")
    x = m.add("relu", m.conv(m.image(), 64, kernel=1))
    y = m.add("relu", m.conv(x, 64, groups=16))
    z = m.add("global_average_pool", m.conv(y, 64))
    chosen = choose_layouts(m.finish(z), AVX512)
    assert chosen.layouts[x].block == 16
    assert chosen.layouts.get(y, PLAIN).block in (1, 4)


def test_depthwise_convolutions_are_blocked_with_their_neighbours() -> None:
    m = Maker("inverted_residual")
    x = m.add("relu", m.conv(m.conv(m.image(), 96, kernel=1), 96, groups=96))
    x = m.conv(x, 16, kernel=1)
    chosen = choose_layouts(m.finish(m.add("global_average_pool", x)), AVX512)
    assert {layout.block for layout in chosen.layouts.values()} == {16}
    assert len(chosen.layouts) == len(chosen.nodes) - 1
    assert conversions(chosen) == ()


@pytest.mark.parametrize(("target", "block"), [(AVX2, 8), (AVX512, 16)], ids=str)
def test_channels_that_are_normalised_one_by_one_stay_blocked(
    target: CpuTarget, block: int
) -> None:
    m = Maker("instance_norm")
    x = m.conv(m.image(3), 16)
    x = m.add("instance_norm", x, m.weight(16), m.weight(16))
    x = m.conv(m.add("relu", m.norm(x)), 16)
    chosen = choose_layouts(m.finish(m.add("global_average_pool", x)), target)
    assert {layout.block for layout in chosen.layouts.values()} == {block}
    assert len(chosen.layouts) == len(chosen.nodes) - 1
    assert conversions(chosen) == ()
    check_partition(partition(chosen))


def test_remaining_conversions_are_listed() -> None:
    m = Maker("flattened")
    x = m.add("relu", m.conv(m.image(64, 8), 64))
    x = m.add("relu", m.conv(x, 64))
    graph = m.finish(m.add("reshape", x, shape=(1, 64 * 64)))
    chosen = choose_layouts(graph, AVX512)
    (left,) = conversions(chosen)
    assert (left.operand, left.source, left.target) == (x, Layout(axis=1, block=16), PLAIN)
    assert str(left) == f"node reshape_0 (reshape): {x} layout(axis=1, block=16) -> plain"


def test_description(golden: Callable[..., None]) -> None:
    golden(describe_layouts(choose_layouts(networks.grouped(), AVX512)))


def test_a_graph_without_nodes() -> None:
    b = GraphBuilder("empty")
    graph = b.finish([b.input("x", (1, 16, 4, 4))])
    assert not choose_layouts(graph, AVX512).layouts
    assert partition(graph).steps == ()
