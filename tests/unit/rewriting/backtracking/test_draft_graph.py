"""Graphs that are changed place by place, and the search over them."""

from __future__ import annotations

import numpy as np

from tensorwright.graph import Graph, GraphBuilder
from tensorwright.rewriting import parse_rules
from tensorwright.rewriting.backtracking import BacktrackingLimits, backtrack_network
from tensorwright.rewriting.backtracking.draft_graph import DraftGraph, PlacedNode
from tensorwright.rewriting.egraph import BudgetSpent, Head, Saturated
from tensorwright.rewriting.networks import (
    Roofline,
    choice_of,
    network_rules,
    read_network,
    unsaturated,
    write_network,
)

X, F, G, H, PAIR = (Head(n) for n in range(5))


def node(graph: DraftGraph, head: Head, *children: int, cost: float = 1.0) -> PlacedNode:
    marks = (graph.nodes[child].mark for child in children)
    return PlacedNode(head, children, 0, hash((head, *marks)), cost)


def placed() -> tuple[DraftGraph, dict[str, int]]:
    """pair(f(g(x)), g(f(x)))"""
    graph = DraftGraph()
    at = {"x": graph.add(node(graph, X, cost=0.0))}
    at["gx"] = graph.add(node(graph, G, at["x"]))
    at["fx"] = graph.add(node(graph, F, at["x"]))
    at["fgx"] = graph.add(node(graph, F, at["gx"]))
    at["gfx"] = graph.add(node(graph, G, at["fx"]))
    at["pair"] = graph.add(node(graph, PAIR, at["fgx"], at["gfx"]))
    graph.finish([at["pair"]])
    return graph, at


def is_whole(graph: DraftGraph) -> bool:
    """Whether readers, cost and places are what the nodes say, and nothing is left over."""
    order = list(graph.in_order())
    readers: dict[int, set[int]] = {place: set() for place in order}
    for place in order:
        for child in graph.nodes[place].children:
            readers[child].add(place)
    held = [(graph.nodes[place].head, graph.nodes[place].children) for place in order]
    return (
        set(order) == set(graph.nodes)
        and {place: set(those) for place, those in graph.readers.items()} == readers
        and len(set(held)) == len(held)
        and np.isclose(graph.cost, sum(graph.nodes[place].cost for place in order))
    )


def test_alike_nodes_are_one_and_unread_ones_go() -> None:
    graph, at = placed()
    assert graph.add(node(graph, F, at["x"])) == at["fx"]
    made = graph.copy()
    made.replace(at["gfx"], node(made, F, at["gx"]))
    assert is_whole(made)
    assert made.nodes[at["pair"]].children == (at["fgx"], at["fgx"])
    assert made.gone == {at["fx"], at["gfx"]}
    assert made.changed == {at["pair"]}
    assert graph.cost == 5
    assert made.cost == 3
    assert is_whole(graph), "the one that was copied is as it was"


def test_what_becomes_alike_above_a_change_is_one() -> None:
    graph, at = placed()
    graph.redirect(at["gx"], at["x"])
    assert is_whole(graph)
    assert graph.nodes[at["pair"]].children == (at["fx"], at["gfx"])
    graph.redirect(at["gfx"], at["fx"])
    assert graph.nodes[at["pair"]].children == (at["fx"], at["fx"])
    assert graph.cost == 2


def test_graphs_are_told_apart_by_what_they_hold_and_not_by_the_way() -> None:
    graph, at = placed()
    one, other = graph.copy(), graph.copy()
    assert one.key == graph.key
    one.replace(at["fgx"], node(one, H, at["gx"]))
    assert one.key != graph.key
    one.replace(at["gfx"], node(one, H, at["fx"]))
    other.replace(at["gfx"], node(other, H, at["fx"]))
    assert one.key != other.key
    other.replace(at["fgx"], node(other, H, at["gx"]))
    assert one.key == other.key


def weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def rounds_of_products(width: int) -> Graph:
    """Two products of one, each of which could do without it; neither gains alone."""
    b = GraphBuilder("shared")
    y = b.add("matmul", b.input("x", (4, 8)), b.constant(weights(8, width)))
    names = [b.add("matmul", y, b.constant(weights(width, 8 + n))) for n in range(2)]
    return b.finish(tuple(names))


def test_moves_that_gain_only_together_are_found() -> None:
    rules = network_rules(
        parse_rules(["a: matmul(?x, matmul(?y, ?z)) == matmul(matmul(?x, ?y), ?z)"])
    )
    costs = Roofline(1e9, 1e9)
    graph = rounds_of_products(9)
    found = unsaturated(read_network(graph))
    result = backtrack_network(found, rules, costs)
    best = write_network(found.network, choice_of(found.network, result.outputs[0]))
    assert isinstance(result.stop, Saturated)
    matrices = [each for each in best.nodes if set(each.inputs) & {"x"}]
    assert [each.operator for each in matrices] == ["matmul", "matmul"]
    assert result.costs[0] < costs_of_source(graph, costs)


def costs_of_source(graph: Graph, costs: Roofline) -> float:
    none = backtrack_network(unsaturated(read_network(graph)), network_rules(()), costs)
    assert none.seen == 1
    return none.costs[0]


def test_operands_are_swapped_where_that_helps() -> None:
    rules = network_rules(
        parse_rules(
            [
                "c: ewadd(?x, ?y) == ewadd(?y, ?x)",
                "d: ewadd(ewmul(?x, ?y), ewmul(?x, ?z)) == ewmul(?x, ewadd(?y, ?z))",
                "e: ewmul(?x, ?y) == ewmul(?y, ?x)",
            ]
        )
    )
    b = GraphBuilder("sum")
    x, y, z = (b.input(name, (64, 64)) for name in "xyz")
    graph = b.finish((b.add("add", b.add("mul", y, x), b.add("mul", x, z)),))
    found = unsaturated(read_network(graph, with_proofs=True))
    result = backtrack_network(found, rules, Roofline())
    best = write_network(found.network, choice_of(found.network, result.outputs[0]))
    assert sorted(each.operator for each in best.nodes) == ["add", "mul"]


def test_limits_are_named() -> None:
    rules = network_rules(
        parse_rules(["a: matmul(?x, matmul(?y, ?z)) == matmul(matmul(?x, ?y), ?z)"])
    )
    found = unsaturated(read_network(rounds_of_products(9)))
    result = backtrack_network(found, rules, Roofline(), BacktrackingLimits(graphs=1))
    assert isinstance(result.stop, BudgetSpent)
    assert result.stop.limit == "graphs"
