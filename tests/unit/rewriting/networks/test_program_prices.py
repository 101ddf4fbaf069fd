"""What networks cost as programs: every step once, and memory as a bound from below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tensorwright.base import DType, cpu_target
from tensorwright.graph import Graph, GraphBuilder, Workload, simplify
from tensorwright.machine import NOMINAL, Machine, Rates, machine_of
from tensorwright.rewriting import networks

TARGET = cpu_target("x86-64-avx2")
WEIGHT_BYTES = 4 * 64 * 64


USUAL = machine_of(TARGET, 1)


def flat(workload: Workload) -> float:
    """Every workload takes as long."""
    return 1e-5 + NOMINAL.call_s


def machine(bytes_per_s: float, cache_bytes: int) -> Machine:
    """One of whose memory and last cache so much is known."""
    return machine_of(replace(TARGET, l3_bytes=cache_bytes), 1, Rates(1e11, bytes_per_s))


def products(weights: Sequence[int]) -> Graph:
    """A chain of products with weights, which are called by numbers."""
    b = GraphBuilder("products")
    last = b.input("x", (4, 64), DType.F32)
    made = {
        number: b.constant(np.full((64, 64), number + 1, np.float32), f"w{number}")
        for number in dict.fromkeys(weights)
    }
    for number in weights:
        last = b.add("relu", b.add("matmul", last, made[number]))
    return simplify(b.finish([last]))


def seconds(graph: Graph, machine: Machine) -> list[float]:
    found = networks.ProgramPrices(machine, flat).kernels_of(graph)
    assert found is not None
    return [each.seconds for each in found]


def test_weights_that_no_cache_keeps_are_read_in_every_run() -> None:
    memory = machine(WEIGHT_BYTES / 1e-3, 2 * WEIGHT_BYTES)
    assert seconds(products([0, 1, 2]), memory) == pytest.approx([1e-3 + NOMINAL.call_s] * 3)


def test_weights_that_stay_in_the_cache_bound_nothing() -> None:
    memory = machine(WEIGHT_BYTES / 1e-3, 3 * WEIGHT_BYTES)
    assert seconds(products([0, 1, 2]), memory) == seconds(products([0, 1, 2]), USUAL)


def test_weights_are_read_once_however_many_kernels_need_them() -> None:
    memory = machine(WEIGHT_BYTES / 1e-3, WEIGHT_BYTES)
    found = seconds(products([0, 1, 0, 1]), memory)
    assert found == pytest.approx([1e-3 + NOMINAL.call_s] * 2 + [1e-5 + NOMINAL.call_s] * 2)


def test_a_faster_memory_bounds_nothing() -> None:
    memory = machine(WEIGHT_BYTES / 1e-9, 0)
    assert seconds(products([0, 1]), memory) == seconds(products([0, 1]), USUAL)


def biased() -> Graph:
    """A convolution whose bias becomes its own operand when the network is simplified."""
    b = GraphBuilder("biased")
    x = b.input("x", (1, 4, 8, 8), DType.F32)
    w = b.constant(np.ones((4, 4, 3, 3), np.float32), "w")
    bias = b.constant(np.arange(4, dtype=np.float32), "bias")
    made = b.add("conv", x, w, bias, pads=(1, 1, 1, 1))
    return simplify(b.finish([b.add("relu", made)]))


def test_kernels_are_what_all_operators_of_a_network_cost() -> None:
    graph = biased()
    network, costs = networks.read_network(graph), networks.Roofline()
    choice = networks.choice_of(network, network.outputs)
    written = networks.write_outline(network, choice)
    kernels = networks.ProgramPrices(USUAL, flat).kernels_of(simplify(written.graph))
    assert kernels is not None
    corrections = networks.Corrections(network, costs)
    priced = corrections.add(choice, written, kernels)
    total = math.fsum(each.seconds for each in kernels)
    assert "conv2d" in {use.operator for use, _ in priced}
    assert math.fsum(share for _, share in priced) == pytest.approx(total)
    assert networks.choice_seconds(network, choice, costs, corrections) == pytest.approx(total)
