"""Random plausible networks: every family can be drawn, and is the same for the same seed."""

from __future__ import annotations

import pytest
from tests.draws import first_seed

from tensorwright.base import cpu_target
from tensorwright.graph import verify
from tensorwright.pipeline import prepare
from tensorwright_lab.zoo.plausible import FAMILIES, JUDGING_FAMILIES, draw_network

pytestmark = pytest.mark.usefixtures("by_rule")
_TARGET = cpu_target("x86-64-avx2")


@pytest.mark.drawn
@pytest.mark.parametrize("family", [*FAMILIES, *JUDGING_FAMILIES])
def test_every_family_becomes_workloads(family: str) -> None:
    for seed in range(first_seed(), first_seed() + 3):
        graph = draw_network(seed, [family])
        verify(graph)
        assert graph.name == f"{family}_{seed}"
    # A network may be views alone, which need no kernel: not all of them are.
    graphs = (draw_network(seed, [family]) for seed in range(8))
    assert any(prepare(verify(graph), _TARGET).workloads for graph in graphs)


def test_equal_seeds_give_equal_networks() -> None:
    for seed in range(20):
        assert str(draw_network(seed)) == str(draw_network(seed))


def test_what_judges_is_drawn_only_by_name() -> None:
    assert JUDGING_FAMILIES.keys().isdisjoint(FAMILIES)
    names = {draw_network(seed).name.rsplit("_", 1)[0] for seed in range(300)}
    assert names <= FAMILIES.keys()


def test_signals_reach_far_and_are_padded_in_all_ways() -> None:
    graphs = [draw_network(seed, ["signals"]) for seed in range(300)]
    nodes = [node for graph in graphs for node in graph.nodes]
    dilations = {node.attribute_map["dilations"] for node in nodes if node.operator == "conv"}
    assert {(1,), (4096,)} <= dilations
    modes = {node.attribute_map["mode"] for node in nodes if node.operator == "pad"}
    assert modes == {"constant", "reflect", "wrap"}
    operators = {node.operator for node in nodes}
    assert {"concat", "conv_transpose", "erf", "prelu", "sin", "tanh", "sigmoid"} <= operators


def test_seeds_give_families_and_sizes_of_all_kinds() -> None:
    names = {draw_network(seed).name.rsplit("_", 1)[0] for seed in range(200)}
    assert len(names) > 0.8 * len(FAMILIES)
