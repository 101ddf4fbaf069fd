"""Open graphs through all stages: with numbers put in, the steps compute what the graph does.

Random networks are those of the laboratory, with one or two extents of their inputs made open.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

import numpy as np
import pytest
from tests.draws import first_seed
from tests.targets import AVX512
from tests.unit.graph import open_networks
from tests.unit.graph.onnx.torch_networks import NETWORKS as EXPORTED
from tests.unit.graph.onnx.torch_networks import exported
from tests.unit.graph.open_networks import NETWORKS
from tests.unit.graph.partition.partition_runner import run_partition
from tests.unit.graph.prices import Prices

from tensorwright.base import CpuTarget, cpu_target
from tensorwright.graph import (
    Graph,
    Partition,
    Workload,
    bind_partition,
    bind_sizes,
    check_memory,
    choose_layouts,
    compute_float16_as_float32,
    interpret,
    partition,
    random_inputs,
    run_target_passes,
    simplify,
    verify_partition,
)
from tensorwright.graph.imports import load_onnx
from tensorwright_lab.zoo.plausible import opening
from tensorwright_lab.zoo.plausible.drawer import Drawer
from tensorwright_lab.zoo.plausible.networks import FAMILIES

AVX2 = cpu_target("x86-64-avx2")
_SEEDS = 2  # of each family
_MOST_ELEMENTS = 1_000_000


def stepped(graph: Graph, target: CpuTarget = AVX2, price: Prices | None = None) -> Partition:
    """The steps of a graph after all stages."""
    simple = run_target_passes(simplify(compute_float16_as_float32(graph)), target)
    laid_out = choose_layouts(simple, target, price)
    return verify_partition(check_memory(partition(laid_out, price=price)))


def check(graph: Graph, parts: Partition, values: dict[str, int], seed: int) -> None:
    """Compare with the interpreter for three numbers of each size."""
    chance = random.Random(seed)
    kept = {size.name for size in parts.graph.sizes}
    choices = {size.name: opening.near(size, values[size.name], chance) for size in graph.sizes}
    for trial in range(3):
        given = {name: numbers[trial] for name, numbers in choices.items()}
        inputs = random_inputs(bind_sizes(graph, given), trial)
        expected = interpret(graph, inputs)
        bound = bind_partition(parts, {name: v for name, v in given.items() if name in kept})
        for name, array in run_partition(bound, inputs).items():
            text = f"{name} with {given}"
            np.testing.assert_allclose(array, expected[name], rtol=2e-3, atol=2e-4, err_msg=text)


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_compute_what_the_interpreter_does(network: Callable[[], Graph]) -> None:
    graph = network()
    values = {size.name: (size.least + 2) * size.divisor for size in graph.sizes}
    check(graph, stepped(graph), values, 0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.drawn
def test_random_networks_compute_what_the_interpreter_does(family: str) -> None:
    tried = 0
    for seed in range(first_seed(), first_seed() + 10 * _SEEDS):
        chance = random.Random(f"{family} {seed}")
        drawn = FAMILIES[family](Drawer(f"{family}_{seed}", f"{family} {seed}", work=1e5))
        if opening.work_of(drawn) > _MOST_ELEMENTS:
            continue
        try:
            graph, values = opening.with_open_extents(drawn, chance)
        except opening.CannotOpenError:
            continue
        check(graph, stepped(graph), values, seed)
        tried += 1
        if tried == _SEEDS:
            return
    assert tried, "no network of the family has an open form"


def _drawn_price(workload: Workload) -> float:
    """A price without sense, that is the same for the same workload."""
    assert not workload.sizes, "a price is asked for numbers"
    return 1.0 + int(hashlib.sha256(workload.key.encode()).hexdigest()[:4], 16)


@pytest.mark.parametrize("network", [open_networks.any_images, open_networks.encoder])
def test_any_prices_give_the_same_results(network: Callable[[], Graph]) -> None:
    graph = network()
    prices = Prices(_drawn_price)
    values = {size.name: (size.least + 1) * size.divisor for size in graph.sizes}
    check(graph, stepped(graph, AVX512, prices), values, 1)
    assert prices.asked


@pytest.mark.parametrize("network", NETWORKS)
def test_an_open_network_is_cut_as_one_of_numbers(network: Callable[[], Graph]) -> None:
    """But for tables and views at places that sizes decide, which are kernels of their own."""
    graph = network()
    static = stepped(bind_sizes(graph, {s.name: (s.least + 2) * s.divisor for s in graph.sizes}))
    names = [call.workload.name for call in stepped(graph).kernels]
    for call in static.kernels:
        if call.workload.name in names:
            names.remove(call.workload.name)
    assert len(names) <= 2, names


@pytest.mark.parametrize("name", EXPORTED)
def test_exported_networks_compute_what_the_interpreter_does(name: str) -> None:
    network = EXPORTED[name]
    graph = load_onnx(exported(network), sizes=network.sizes)
    parts = stepped(graph)
    for values in network.points:
        inputs = random_inputs(bind_sizes(graph, values))
        expected = interpret(graph, inputs)
        for output, array in run_partition(bind_partition(parts, values), inputs).items():
            np.testing.assert_allclose(array, expected[output], rtol=1e-3, atol=1e-4)
