"""Candidates of both searches, ranked by their programs, which correct the costs of operators."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.test_graph_search import chain_of_products

from tensorwright.base import DType, cpu_target
from tensorwright.graph import Graph, GraphBuilder, simplify
from tensorwright.pipeline import open_price
from tensorwright.rewriting import networks, parse_rules
from tensorwright.rewriting.candidates import (
    Candidates,
    CandidateSearch,
    CostKind,
    SearchKind,
    find_candidates,
)
from tensorwright.rewriting.egraph import BudgetSpent, Saturated
from tensorwright.runtime.measuring import this_machine

RULES = networks.network_rules(
    parse_rules(["a: matmul(?x, matmul(?y, ?z)) == matmul(matmul(?x, ?y), ?z)"])
)


def prices() -> networks.ProgramPrices:
    target = cpu_target("x86-64-avx2")
    price = open_price(target, 2)
    assert price is not None
    return networks.ProgramPrices(this_machine(target, 2), price)


@pytest.mark.parametrize("kind", SearchKind)
@pytest.mark.parametrize("cost", CostKind)
def test_every_search_finds_the_one_product(kind: SearchKind, cost: CostKind) -> None:
    graph = simplify(chain_of_products())
    network = networks.read_network(graph, with_proofs=True)
    found = find_candidates(network, RULES, prices(), CandidateSearch(kind, cost))
    best = simplify(
        networks.write_network(network, networks.choice_of(network, found.ranked[0].outputs))
    )
    assert [node.operator for node in best.nodes] == ["matmul", "relu"]
    assert (found.ranked[0].programs_s is None) == (cost is CostKind.OPERATORS)
    wanted = {SearchKind.SATURATE, SearchKind.BACKTRACK} if kind is SearchKind.BOTH else {kind}
    assert set(found.stops) == wanted
    assert all(isinstance(stop, Saturated | BudgetSpent) for stop in found.stops.values())


def test_no_graph_is_listed_twice_and_they_are_ranked() -> None:
    graph = simplify(chain_of_products())
    network = networks.read_network(graph, with_proofs=True)
    found = find_candidates(network, RULES, prices(), CandidateSearch()).ranked
    costs = [float("inf") if each.programs_s is None else each.programs_s for each in found]
    assert costs == sorted(costs)
    assert costs[0] < float("inf")
    texts = [
        str(networks.write_network(network, networks.choice_of(network, each.outputs)))
        for each in found
    ]
    assert len(set(texts)) == len(texts)


def test_an_interrupt_hands_back_what_was_found() -> None:
    network = networks.read_network(simplify(chain_of_products()), with_proofs=True)
    found = find_candidates(network, RULES, prices(), CandidateSearch(), lambda: True)
    limits = [stop.limit for stop in found.stops.values() if isinstance(stop, BudgetSpent)]
    assert limits == ["interrupt", "interrupt"]
    assert found.ranked


class Counted(networks.ProgramPrices):
    """Prices that count the graphs and the single operators of which they are asked."""

    graphs = 0
    operators = 0

    def kernels_of(self, graph: Graph) -> tuple[networks.PricedKernel, ...] | None:
        self.graphs += 1
        return networks.ProgramPrices.kernels_of(self, graph)

    def seconds(self, use: networks.TypedOperator) -> float:
        self.operators += 1
        return networks.ProgramPrices.seconds(self, use)


def counted(graph: Graph, how: CandidateSearch) -> tuple[Counted, Candidates]:
    """What a search asked, and what it found."""
    usual = prices()
    asked = Counted(usual.machine, usual.price)
    network = networks.read_network(simplify(graph), with_proofs=True)
    return asked, find_candidates(network, RULES, asked, how)


def test_no_operator_is_priced_alone_and_the_network_once() -> None:
    asked, found = counted(chain_of_products(), CandidateSearch())
    priced = [each for each in found.ranked if each.programs_s is not None]
    assert asked.operators == 0
    assert asked.graphs == 1 + len(priced)
    assert found.network_s is not None
    assert found.network_s > min(each.programs_s or 0.0 for each in priced)


def test_what_cannot_gain_is_not_priced() -> None:
    b = GraphBuilder("one")
    x = b.input("x", (16, 32), DType.F32)
    product = b.add("matmul", x, b.constant(np.ones((32, 32), np.float32), "w"))
    asked, found = counted(b.finish([b.add("relu", product)]), CandidateSearch())
    assert asked.graphs == 1
    assert all(each.programs_s is None for each in found.ranked)


def test_without_time_the_best_so_far_is_priced_and_no_other() -> None:
    asked, found = counted(chain_of_products(), CandidateSearch(seconds=0.0))
    assert asked.graphs <= 2
    assert SearchKind.SATURATE in found.stops


def with_time(graph: Graph, seconds: float) -> tuple[float, float]:
    """What the operators of a network cost together, before and after its one kernel is priced."""
    network, costs = networks.read_network(graph), prices()
    choice = networks.choice_of(network, network.outputs)
    written = networks.write_outline(network, choice)
    corrections = networks.Corrections(network, costs)
    before = sum(networks.NetworkExtraction(network, costs, corrections).problem.cost)
    names = tuple(name for node in written.graph.nodes for name in node.outputs)
    corrections.add(choice, written, [networks.PricedKernel(seconds, names)])
    return before, sum(networks.NetworkExtraction(network, costs, corrections).problem.cost)


def test_the_time_of_a_kernel_is_what_its_operators_cost_together() -> None:
    before, after = with_time(simplify(chain_of_products()), 0.25)
    assert before < 0.01
    assert after == pytest.approx(0.25)
