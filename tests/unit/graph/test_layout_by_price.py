"""Layouts where the cost leaves a question open, by made-up prices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.targets import AVX512, native_target
from tests.unit.graph.partition.partition_runner import check_partition, random_inputs
from tests.unit.graph.prices import Prices
from tests.unit.graph.small_networks import NETWORKS, Maker

from tensorwright.base import DType, collect_dumps
from tensorwright.graph import (
    Graph,
    Layout,
    Workload,
    choose_layouts,
    interpret,
    partition,
    simplify,
    verify,
)
from tensorwright.graph.imports import load_onnx
from tensorwright.pipeline import finish
from tensorwright.records import open_store
from tensorwright_lab.zoo import load_light

WHOLE = Layout(axis=1, block=54)


def dimensions(workload: Workload) -> int:
    """Blocked tensors have one more."""
    types = (*workload.input_types, *workload.output_types)
    return sum(len(type_.shape) for type_ in types)


def liking_plain() -> Prices:
    return Prices(lambda workload: 2.0 ** dimensions(workload))


def liking_blocks() -> Prices:
    return Prices(lambda workload: 2.0 ** -dimensions(workload))


def odd(channels: int = 54) -> tuple[Graph, tuple[str, ...]]:
    """Convolutions with channels that no block divides, and their results."""
    m = Maker("odd")
    x = m.add("relu", m.conv(m.image(), 32))
    first = m.add("relu", m.conv(x, channels, kernel=1))
    second = m.add("relu", m.conv(first, channels, groups=channels))
    y = m.conv(second, 32)
    return m.finish(m.add("global_average_pool", y)), (first, second)


def test_channels_that_no_block_divides_are_one_block_where_that_is_faster() -> None:
    graph, inner = odd()
    by_cost = choose_layouts(graph, AVX512)
    assert not set(inner) & by_cost.layouts.keys()
    blocked = choose_layouts(graph, AVX512, liking_blocks())
    assert {blocked.layouts[name] for name in inner} == {WHOLE}
    plain = choose_layouts(graph, AVX512, liking_plain())
    assert not set(inner) & plain.layouts.keys()
    for chosen in (blocked, plain):
        check_partition(partition(verify(chosen)))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("prices", [liking_plain, liking_blocks])
def test_networks_keep_their_meaning(
    network: Callable[[], Graph], prices: Callable[[], Prices]
) -> None:
    for target in (AVX512, native_target()):
        chosen = choose_layouts(network(), target, prices())
        check_partition(partition(verify(chosen)))
        for name in (*chosen.inputs, *chosen.outputs, *chosen.constants):
            assert name not in chosen.layouts


@pytest.mark.parametrize("network", NETWORKS)
def test_the_cost_stands_where_there_is_no_price(network: Callable[[], Graph]) -> None:
    expected = choose_layouts(network(), AVX512).layouts
    for prices in (None, Prices(lambda workload: None), Prices(lambda workload: 1.0)):
        found = choose_layouts(network(), AVX512, prices).layouts
        assert dict(found) == dict(expected)


def test_a_residual_network_has_no_open_question() -> None:
    prices = liking_plain()
    choose_layouts(simplify(load_onnx(load_light("resnet50"))), AVX512, prices)
    assert not prices.asked


def test_no_workload_is_priced_twice() -> None:
    prices = liking_blocks()
    choose_layouts(odd()[0], AVX512, prices)
    assert prices.asked
    assert set(prices.asked.values()) == {1}


def test_decisions_are_shown() -> None:
    with collect_dumps(("layouts",)) as dumps:
        choose_layouts(odd()[0], AVX512, liking_blocks())
    (text,) = (each.text for each in dumps if each.name == "decisions")
    first, *lines = text.splitlines()
    assert first == f"{len(lines)} open questions about layouts, 1 changes"
    assert any(line.endswith(f": {WHOLE}") for line in lines), text


def test_compiled_code_of_one_odd_block(tmp_path: Path) -> None:
    target = native_target()
    channels = 3 * target.lanes(DType.F32) + target.lanes(DType.F32) // 2 - 2
    graph, inner = odd(channels)
    chosen = choose_layouts(graph, target, liking_blocks())
    assert {chosen.layouts[name].block for name in inner} == {channels}
    inputs = random_inputs(graph)
    expected = interpret(graph, inputs)
    with open_store(tmp_path / "records.db", create=True) as store:
        for name, array in finish(partition(chosen), target, 1, store).run(inputs).items():
            np.testing.assert_allclose(array, expected[name], rtol=2e-4, atol=2e-5)
