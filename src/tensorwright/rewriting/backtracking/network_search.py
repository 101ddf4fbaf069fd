"""Backtracking search over a network: its terms become a graph, and the best graphs become terms.

The search does not touch the e-graph.  The moves that led to the returned graphs are then repeated
in the e-graph as applications of rules, so that they can be certified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tensorwright.processes import never
from tensorwright.rewriting.backtracking.draft_graph import DraftGraph, PlacedNode
from tensorwright.rewriting.backtracking.moves import Move, Moves
from tensorwright.rewriting.backtracking.search import BacktrackingLimits, Visited, backtrack
from tensorwright.rewriting.egraph import Head, Id, Match, Rewrite, Runner, StopReason
from tensorwright.rewriting.networks import (
    Network,
    NetworkRules,
    NetworkSaturation,
    OperatorCosts,
    TypedOperator,
)
from tensorwright.rewriting.traversal import arguments_first


@dataclass(frozen=True, slots=True)
class BacktrackedNetwork:
    """The result of a search.

    outputs   of the cheapest graphs, the cheapest first: the node of each output of the network
    costs     what the operators of each cost together, in seconds
    stop      why it ended           seen   graphs that were made
    """

    outputs: tuple[tuple[Id, ...], ...]
    costs: tuple[float, ...]
    stop: StopReason
    seen: int


def backtrack_network(
    saturation: NetworkSaturation,
    rules: NetworkRules,
    costs: OperatorCosts,
    limits: BacktrackingLimits | None = None,
    outputs: tuple[Id, ...] | None = None,
    should_stop: Callable[[], bool] = never,
) -> BacktrackedNetwork:
    """Search for cheaper graphs than that of some outputs; the network's own if none are given.

    saturation    of the network; new terms are made equal in its e-graph
    should_stop   asked between graphs
    """
    network, runner = saturation.network, saturation.runner
    moves = Moves(runner, rules.plain, rules.merges, _prices(network, costs), _is_open(network))
    start, terms = _started(network, moves, outputs or network.outputs)
    searched = backtrack(start, moves, limits or BacktrackingLimits(), should_stop)
    chosen: list[tuple[Id, ...]] = []
    kept: list[float] = []
    for each in searched.best:
        made = _applied(network, runner, moves, start, terms, each)
        if made is not None:
            chosen.append(made)
            kept.append(each.cost)
    return BacktrackedNetwork(tuple(chosen), tuple(kept), searched.stop, searched.seen)


def _prices(
    network: Network, costs: OperatorCosts
) -> Callable[[Head, tuple[int, ...], int], float]:
    """The cost of a head at arguments with some data; remembered."""
    terms = network.terms
    prices: dict[tuple[int, ...], float] = {}

    def price(head: Head, below: tuple[int, ...], own: int) -> float:
        key = (head, *below)
        if key not in prices:
            operator, params = terms.parts(head)
            args = tuple(map(terms.data_at, below))
            prices[key] = costs.seconds(TypedOperator(operator, params, args, terms.data_at(own)))
        return prices[key]

    return price


def _is_open(network: Network) -> Callable[[int], bool]:
    """Whether rules can gain at a tensor: constants are computed once."""
    return lambda data: not network.terms.data_at(data).is_constant


def _started(
    network: Network, moves: Moves, outputs: tuple[Id, ...]
) -> tuple[DraftGraph, dict[Id, Id]]:
    """The graph of some outputs, and the node of each place."""
    terms, graph = network.terms, DraftGraph()
    places: dict[Id, Id] = {}
    for name in arguments_first(outputs, terms.children):
        children = tuple(places[child] for child in terms.children(name))
        head = terms.head_of(name)
        node = moves.placed(graph, head, children, terms.data_number(name))
        places[name] = graph.add(node)
    graph.finish(places[name] for name in outputs)
    graph.changed.clear()
    named = {position: name for name, position in places.items()}
    return graph, named


def _applied(
    network: Network,
    runner: Runner[Any],
    moves: Moves,
    start: DraftGraph,
    terms: Mapping[Id, Id],
    visited: Visited,
) -> tuple[Id, ...] | None:
    """Repeat in the e-graph the moves that led to a graph, and add its terms; return the nodes of
    its outputs.  None where a term is not in the e-graph or not equal.
    """
    graph, named = start, dict(terms)
    for move in visited.moves():
        _apply(runner, moves, graph, named, move)
        after = moves.make(graph, move)
        if after is None:
            return None
        for position in after.in_order():
            if position not in named:
                made = _written(network, named, after.nodes[position])
                if made is None:
                    return None
                named[position] = made
        graph = after
    written: dict[Id, Id] = {}
    for position in graph.in_order():
        made = _written(network, written, graph.nodes[position])
        if made is None or not network.terms.are_equal(made, named[position]):
            return None
        written[position] = made
    outputs = tuple(written[root] for root in graph.roots)
    is_same = map(network.terms.are_equal, outputs, network.outputs)
    return outputs if all(is_same) else None


def _apply(
    runner: Runner[Any], moves: Moves, graph: DraftGraph, named: Mapping[Id, Id], move: Move
) -> None:
    """Make the terms of a move equal; first those at which operands are swapped."""
    for position in move.match.swaps:
        node = graph.nodes[position]
        operator, _ = runner.graph.parts(node.head)
        swap = moves.commutative[operator]
        below = tuple(named[child] for child in node.children)
        runner.apply(swap, Match(_by_variable(swap, below), ()))
    nodes = tuple(named[position] for position in move.match.nodes)
    runner.apply(move.rewrite, move.match._replace(nodes=nodes, swaps=()))


def _by_variable(swap: Rewrite, operands: tuple[Id, ...]) -> tuple[Id, ...]:
    """Operands in the order of the variables of a rule that swaps them."""
    (left,) = swap.left
    assert not isinstance(left, int), "both sides are applications"
    pairs = zip(left.args, operands, strict=True)
    return tuple(
        node for _, node in sorted((at, node) for at, node in pairs if isinstance(at, int))
    )


def _written(network: Network, named: Mapping[Id, Id], node: PlacedNode) -> Id | None:
    """The node of the e-graph for the node of a place."""
    return network.terms.put(node.head, tuple(named[child] for child in node.children))
