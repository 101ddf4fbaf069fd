"""What shares a kernel, by made-up prices: the partition follows them, and its meaning stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from tests.targets import AVX512, native_target
from tests.unit.graph import small_networks as networks
from tests.unit.graph.partition.partition_runner import check_partition, random_inputs
from tests.unit.graph.prices import Prices
from tests.unit.graph.random_graphs import graphs
from tests.unit.graph.small_networks import NETWORKS, Maker

from tensorwright.base import collect_dumps
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    Layout,
    Partition,
    choose_layouts,
    interpret,
    likely_workloads,
    partition,
    rename_tensors,
    simplify,
    verify_partition,
)
from tensorwright.graph.imports import load_onnx
from tensorwright.pipeline import finish
from tensorwright.records import open_store
from tensorwright_lab.zoo import load_light

Network = Callable[[], Graph]


def fusing() -> Prices:
    """Every kernel costs the same: the fewer, the better."""
    return Prices(lambda workload: 1.0)


def parting() -> Prices:
    """A kernel costs the square of its stages: the smaller, the better."""
    return Prices(lambda workload: float(len(workload.stages) ** 2))


def names(parts: Partition) -> list[str]:
    return [call.workload.name for call in parts.kernels]


@pytest.mark.parametrize("network", NETWORKS)
def test_likely_workloads_are_those_of_the_criteria_and_of_open_questions(network: Network) -> None:
    graph = choose_layouts(network(), AVX512)
    free = Prices(lambda workload: 0.0)
    assert partition(graph, price=free).workloads == partition(graph).workloads
    likely = [each.key for each in likely_workloads(graph)]
    assert len(likely) == len(set(likely))
    assert set(likely) == {*free.asked, *(each.key for each in partition(graph).workloads)}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("prices", [fusing, parting])
def test_networks_keep_their_meaning(network: Network, prices: Callable[[], Prices]) -> None:
    for graph in (network(), choose_layouts(network(), AVX512)):
        parts = verify_partition(partition(graph, price=prices()))
        check_partition(parts)


@settings(max_examples=30)
@given(graph=graphs())
def test_random_graphs_keep_their_meaning(graph: Graph) -> None:
    for prices in (fusing(), parting()):
        check_partition(verify_partition(partition(graph, price=prices)))


@pytest.mark.parametrize("network", NETWORKS)
def test_the_rules_stand_where_there_is_no_price(network: Network) -> None:
    graph = choose_layouts(network(), AVX512)
    expected = partition(graph).steps
    for prices in (None, Prices(lambda workload: None), Prices(lambda workload: 0.0, step=0.0)):
        found = partition(graph, price=prices).steps
        assert list(map(str, found)) == list(map(str, expected))


@pytest.mark.parametrize("network", NETWORKS)
def test_no_workload_is_priced_twice_and_few_are_priced(network: Network) -> None:
    graph = choose_layouts(network(), AVX512)
    for prices in (fusing(), parting()):
        parts = partition(graph, price=prices)
        assert set(prices.asked.values()) <= {1}
        assert len(prices.asked) <= 6 * len(parts.workloads)


def test_a_residual_network_asks_almost_nothing() -> None:
    graph = choose_layouts(simplify(load_onnx(load_light("resnet50"))), AVX512)
    prices = parting()
    partition(graph, price=prices)
    assert len(prices.asked) <= 3


@pytest.mark.parametrize("prices", [fusing, parting])
def test_decisions_do_not_depend_on_names(prices: Callable[[], Prices]) -> None:
    graph = choose_layouts(networks.encoder(), AVX512)
    other = rename_tensors(graph, {name: f"t{at}" for at, name in enumerate(graph.types)})
    first, second = (partition(each, price=prices()) for each in (graph, other))
    assert [w.key for w in first.workloads] == [w.key for w in second.workloads]


def patches() -> Graph:
    """A convolution of patches whose result is laid out as rows of tokens."""
    m = Maker("patches")
    x = m.builder.input("x", (1, 3, 8, 8))
    y = m.add("conv", x, m.weight(16, 3, 4, 4), strides=(4, 4))
    y = m.add("reshape", y, shape=(1, 16, 4))
    return m.finish(m.add("transpose", y, perm=(0, 2, 1)))


def attention() -> Graph:
    """Scores of activations, as the rules keep them: product, scale and softmax."""
    b = GraphBuilder("attention")
    q, k = b.input("q", (2, 6, 8)), b.input("k", (2, 8, 6))
    scores = b.add("mul", b.add("matmul", q, k), b.constant(np.full((1,), 0.5, np.float32)))
    return b.finish([b.add("softmax", scores, axis=-1)])


def attention_of(values: str = "v", *, fold: str = "softmax") -> Graph:
    """Scores that are folded and weigh values, whose heads lie side by side in the result."""
    m = Maker("attention")
    b = m.builder
    q, k, v = b.input("q", (1, 2, 6, 8)), b.input("k", (1, 2, 8, 6)), b.input("v", (1, 2, 6, 6))
    weights = m.add(fold, m.add("matmul", q, k))
    left, right = (weights, v) if values == "v" else (v, weights)
    return m.finish(m.add("transpose", m.add("matmul", left, right), perm=(0, 2, 1, 3)))


def gated() -> Graph:
    """A product that computes what it reads."""
    m = Maker("gated")
    x = m.builder.input("x", (4, 8))
    gate = m.add("mul", x, m.add("sigmoid", x))
    return m.finish(m.add("matmul", gate, m.weight(8, 8)))


def normalised() -> Graph:
    """A product with a constant, and the normalisation of its rows."""
    m = Maker("normalised")
    x = m.builder.input("x", (4, 8))
    return m.finish(m.add("layer_norm", m.add("matmul", x, m.weight(8, 8)), m.weight(8)))


def pooled() -> Graph:
    """Overlapping windows over something computed."""
    m = Maker("pooled")
    x = m.builder.input("x", (1, 4, 8, 8))
    y = m.add("relu", x)
    return m.finish(m.add("max_pool", y, kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1)))


def turned() -> Graph:
    """Normalised rows, stored in another order."""
    m = Maker("turned")
    x = m.builder.input("x", (4, 8))
    y = m.add("layer_norm", x, m.weight(8))
    return m.finish(m.add("transpose", y, perm=(1, 0)))


@pytest.mark.parametrize(
    ("network", "fused", "parted"),
    [
        (patches, ["conv2d_transpose"], ["conv2d", "transpose"]),
        (attention, ["matmul_mul_softmax"], ["matmul_mul", "softmax"]),
        (
            attention_of,
            ["matmul_softmax_matmul_transpose"],
            ["matmul", "softmax", "matmul", "transpose"],
        ),
        (gated, ["sigmoid_mul_matmul"], ["sigmoid_mul", "matmul"]),
        (normalised, ["matmul_layer_norm"], ["matmul", "layer_norm"]),
        (pooled, ["relu_max_pool"], ["relu", "max_pool"]),
        (turned, ["layer_norm_transpose"], ["layer_norm", "transpose"]),
    ],
)
def test_prices_decide_open_questions(
    network: Network, fused: list[str], parted: list[str]
) -> None:
    graph = network()
    assert names(partition(graph, price=fusing())) == fused
    assert names(partition(graph, price=parting())) == parted


@pytest.mark.parametrize(("one_s", "is_one"), [(1.9, True), (2.0, False)])
def test_attention_is_one_kernel_without_a_margin(one_s: float, is_one: bool) -> None:
    seconds = {"matmul_softmax_matmul_transpose": one_s, "matmul": 9.0, "softmax": 9.0}
    prices = Prices(lambda workload: seconds.get(workload.name, 1.0))
    assert (len(partition(attention_of(), price=prices).kernels) == 1) == is_one


@pytest.mark.parametrize(
    "graph", [attention_of("weights"), attention_of(fold="relu")], ids=["right", "unfolded"]
)
def test_products_of_what_is_no_row_are_apart(graph: Graph) -> None:
    assert len(partition(graph, price=fusing()).kernels) == 2


def test_a_step_counts() -> None:
    """Two kernels that are faster together than one, but by less than a step takes."""
    seconds = {"conv2d_transpose": 3.0, "conv2d": 1.0, "transpose": 1.0}
    for step, expected in ((0.0, ["conv2d", "transpose"]), (1.0, ["conv2d_transpose"])):
        prices = Prices(lambda workload: seconds[workload.name], step=step)
        assert names(partition(patches(), price=prices)) == expected


def test_the_second_kernel_is_not_priced_where_the_first_is_too_slow() -> None:
    seconds = {"conv2d_transpose": 1.0, "conv2d": 1.0, "transpose": 0.1}
    prices = Prices(lambda workload: seconds[workload.name])
    assert names(partition(patches(), price=prices)) == ["conv2d_transpose"]
    assert len(prices.asked) == 2


def test_what_others_read_is_not_cut_off() -> None:
    """A residual that the rest of the group reads, too, ends no kernel of its own."""
    m = Maker("residual")
    x = m.add("relu", m.builder.input("x", (4, 8)))
    y = m.add("add", m.add("matmul", x, m.weight(8, 8)), x)
    check_partition(partition(m.finish(y), price=parting()))
    check_partition(partition(m.finish(y), price=fusing()))


def test_decisions_are_shown() -> None:
    with collect_dumps(("partition",)) as dumps:
        partition(patches(), price=parting())
    (text,) = (each.text for each in dumps if each.name == "decisions")
    assert text.splitlines()[0] == "1 open questions about fusion, 1 changes"
    assert "result in another order: conv2d | transpose" in text
    assert text.endswith("two kernels")


@pytest.mark.parametrize("prices", [fusing, parting])
@pytest.mark.parametrize(
    "network",
    [patches, attention, attention_of, gated, normalised, pooled, turned, networks.encoder],
)
def test_compiled_code_follows(
    network: Network, prices: Callable[[], Prices], tmp_path: Path
) -> None:
    target = native_target()
    graph = choose_layouts(network(), target)
    parts = partition(graph, price=prices())
    inputs = random_inputs(graph)
    expected = interpret(graph, inputs)
    with open_store(tmp_path / "records.db", create=True) as store:
        for name, array in finish(parts, target, 1, store).run(inputs).items():
            np.testing.assert_allclose(array, expected[name], rtol=2e-4, atol=2e-5)


def test_layouts_are_open_questions_like_transpositions() -> None:
    """A blocked convolution whose sum is stored plain: a reader of its own may turn it."""
    m = Maker("stored")
    x = m.conv(m.image(), 16)
    graph = m.finish(m.add("add", x, m.builder.input("y", m.builder.shape_of(x))))
    blocked = replace(graph, layouts={x: Layout(axis=1, block=16)})
    for prices, expected in ((fusing(), ["conv2d_add"]), (parting(), ["conv2d", "add"])):
        parts = partition(blocked, price=prices)
        check_partition(parts)
        assert names(parts) == expected
        assert len(partition(graph, price=parting()).kernels) == 1
