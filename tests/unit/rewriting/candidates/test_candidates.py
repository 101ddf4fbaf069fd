"""Candidates of both searches, ranked by their programs, which correct the costs of operators."""

from __future__ import annotations

import pytest
from tests.unit.test_graph_search import chain_of_products

from tensorwright.base import Target
from tensorwright.graph import Graph, simplify
from tensorwright.pipeline import open_pricing
from tensorwright.rewriting import parse_rules
from tensorwright.rewriting.candidates import (
    CandidateSearch,
    CostKind,
    SearchKind,
    find_candidates,
)
from tensorwright.rewriting.egraph import BudgetSpent, Saturated
from tensorwright.rewriting.networks import (
    Corrections,
    NetworkExtraction,
    PricedKernel,
    ProgramPrices,
    choice_of,
    network_rules,
    read_network,
    write_network,
    write_outline,
)

RULES = network_rules(parse_rules(["a: matmul(?x, matmul(?y, ?z)) == matmul(matmul(?x, ?y), ?z)"]))


def prices() -> ProgramPrices:
    target = Target.parse("x86-64-avx2")
    pricing = open_pricing(target, 2)
    assert pricing is not None
    return ProgramPrices(target, pricing)


@pytest.mark.parametrize("kind", SearchKind)
@pytest.mark.parametrize("cost", CostKind)
def test_every_search_finds_the_one_product(kind: SearchKind, cost: CostKind) -> None:
    graph = simplify(chain_of_products())
    network = read_network(graph, with_proofs=True)
    found = find_candidates(network, RULES, prices(), CandidateSearch(kind, cost))
    best = simplify(write_network(network, found.found[0].choice))
    assert [node.operator for node in best.nodes] == ["matmul", "relu"]
    assert (found.found[0].programs_s is None) == (cost is CostKind.OPERATORS)
    wanted = {SearchKind.SATURATE, SearchKind.BACKTRACK} if kind is SearchKind.BOTH else {kind}
    assert set(found.stops) == wanted
    assert all(isinstance(stop, Saturated | BudgetSpent) for stop in found.stops.values())


def test_no_graph_is_listed_twice_and_they_are_ranked() -> None:
    graph = simplify(chain_of_products())
    network = read_network(graph, with_proofs=True)
    found = find_candidates(network, RULES, prices(), CandidateSearch()).found
    costs = [float("inf") if each.programs_s is None else each.programs_s for each in found]
    assert costs == sorted(costs)
    assert costs[0] < float("inf")
    texts = [str(write_network(network, each.choice)) for each in found]
    assert len(set(texts)) == len(texts)


def test_an_interrupt_hands_back_what_was_found() -> None:
    network = read_network(simplify(chain_of_products()), with_proofs=True)
    found = find_candidates(network, RULES, prices(), CandidateSearch(), lambda: True)
    limits = [stop.limit for stop in found.stops.values() if isinstance(stop, BudgetSpent)]
    assert limits == ["interrupt", "interrupt"]
    assert found.found


def with_time(graph: Graph, seconds: float) -> tuple[float, float]:
    """What the operators of a network cost together, before and after its one kernel is priced."""
    network, costs = read_network(graph), prices()
    choice = choice_of(network, network.outputs)
    written = write_outline(network, choice)
    corrections = Corrections(network, costs)
    before = sum(NetworkExtraction(network, costs, corrections).problem.cost)
    names = tuple(name for node in written.graph.nodes for name in node.outputs)
    corrections.add(choice, written, [PricedKernel(seconds, names)])
    return before, sum(NetworkExtraction(network, costs, corrections).problem.cost)


def test_the_time_of_a_kernel_is_what_its_operators_cost_together() -> None:
    before, after = with_time(simplify(chain_of_products()), 0.25)
    assert before < 0.01
    assert after == pytest.approx(0.25)
