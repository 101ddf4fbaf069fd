"""Backtracking search: rules change the cheapest graph one at a time.

    queue    graphs with their remaining moves, by the cost that the best of these gives
    step     the best move of all graphs is made; graphs that were seen before are dropped
    alpha    a move is made only if what it leads to costs less than alpha times the best
    patience moves without a gain count as if they cost a little, less where they continue the move
             before: else graphs of equal cost would fill the queue
    promise  moves that take a reader from a costly node come first: without readers it vanishes

The graph after a move shares all with the one before but the places that the move touched. Only
there are matches and gains computed again.

Source:  Jia et al., TASO, SOSP 2019, section 5 (Algorithm 2).  There, all moves of a graph are made
         when it is taken from the queue; here each waits for its turn.  Patience and promise are
         ours.

Backtracking search over a network: its terms become a graph, and the best graphs become terms.

The search does not touch the e-graph.  The moves that led to the returned graphs are then repeated
in the e-graph as applications of rules, so that they can be certified.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tensorwright.processes import never
from tensorwright.rewriting import egraph, networks
from tensorwright.rewriting.backtracking.draft_graph import DraftGraph, PlacedNode
from tensorwright.rewriting.backtracking.moves import Change, Move, Moves, PlacedMatch
from tensorwright.rewriting.dims import arguments_first

_LEAST = 1e-9  # of the cost: less is rounding
_NEXT = 1 / 24  # of what alpha allows: a move without a gain that continues the one before
_ELSEWHERE = 1 / 6  # and another move without a gain


@dataclass(frozen=True, slots=True)
class BacktrackingLimits:
    """The limits of a search, and the moves that it does not try.

    alpha    moves to graphs that cost this many times the best are not made
    graphs   that are made                       seconds   until no further is made
    pairs    of a group that a merge is tried at
    keep     graphs that are handed back         open      that wait for further moves
    """

    alpha: float = 1.05
    graphs: int = 20_000
    seconds: float = 10.0
    pairs: int = 64
    keep: int = 4
    open: int = 400


@dataclass(eq=False, slots=True)
class Visited:
    """A graph that was made.

    cost           of its nodes together         waited    what moves without a gain count for
    before, move   the graph and the move from which it was made; None for the first
    matches        the matches at each place, once it is taken from the queue
    changes        of the cost by each move
    order          moves and what they count for, the best first; the next to be tried is `turn`
    """

    graph: DraftGraph
    cost: float
    waited: float = 0.0
    before: Visited | None = None
    move: Move | None = None
    depth: int = 0
    matches: dict[egraph.Id, tuple[PlacedMatch, ...]] = field(default_factory=dict)
    changes: dict[Move, Change] = field(default_factory=dict)
    order: list[tuple[float, Move]] = field(default_factory=list)
    turn: int = 0

    @property
    def near(self) -> frozenset[egraph.Id]:
        """The places that the last move read or changed."""
        return frozenset((*self.move.match.nodes, *self.move.roots) if self.move else ())

    def close(self) -> None:
        """Keep only how it was made; no further moves are made."""
        self.graph = DraftGraph()
        self.matches, self.changes, self.order = {}, {}, []

    def moves(self) -> tuple[Move, ...]:
        """The moves that lead to it, the first one first."""
        moves: list[Move] = []
        here = self
        while here.before is not None and here.move is not None:
            moves.append(here.move)
            here = here.before
        return tuple(reversed(moves))


class _Search:
    """The state of one search: the queue, the graphs that were seen, and the best; mutable."""

    def __init__(self, start: DraftGraph, moves: Moves, limits: BacktrackingLimits) -> None:
        self._moves = moves
        self._limits = limits
        self._seen = {start.key}
        self._first = Visited(start.copy(), start.cost)
        self._best: dict[int, Visited] = {}
        self._least = start.cost
        self._unit = max(1e-30, _LEAST * start.cost)
        self._queue: list[tuple[float, int, int, Visited]] = []
        self._count = 0

    def run(self, should_stop: Callable[[], bool]) -> tuple[tuple[Visited, ...], egraph.StopReason]:
        """The cheapest graphs, no two of the same cost, the cheapest first; and why it ended."""
        end = time.monotonic() + self._limits.seconds
        self._keep(self._first)
        self._open(self._first)
        limit = ""
        while self._queue:
            if self._count >= self._limits.graphs:
                limit = "graphs"
            elif time.monotonic() > end:
                limit = "seconds"
            elif should_stop():
                limit = "interrupt"
            if limit:
                break
            self._step()
        best = tuple(sorted(self._best.values(), key=lambda each: (each.cost, each.depth)))
        if limit:
            return best, egraph.BudgetSpent(limit, self._count, len(self._seen))
        return best, egraph.Saturated(self._count, len(self._seen))

    def _step(self) -> None:
        """Make the best move of the queue."""
        cost, _, _, own = heapq.heappop(self._queue)
        if cost >= self._limits.alpha * self._least:
            self._queue.clear()  # all others cost more
            return
        graph, (_, move) = own.graph, own.order[own.turn]
        waited = own.waited + self._waiting(own, move)
        own.turn += 1
        self._wait(own)
        made = self._moves.make(graph, move)
        if made is None or made.key in self._seen:
            return
        self._seen.add(made.key)
        if made.cost < self._least - self._unit:
            waited = 0.0
        if made.cost + waited >= self._limits.alpha * self._least:
            return
        visited = Visited(made, made.cost, waited, own, move, own.depth + 1)
        self._keep(visited)
        self._open(visited)

    def _keep(self, visited: Visited) -> None:
        """Remember a graph if it is one of the cheapest."""
        self._least = min(self._least, visited.cost)
        name = round(visited.cost / self._unit)
        self._best.setdefault(name, visited)
        if len(self._best) > self._limits.keep:
            del self._best[max(self._best)]

    def _open(self, own: Visited) -> None:
        """List the moves of a graph: those of the one before, and those near changed places."""
        graph, before = own.graph, own.before
        touched = dict.fromkeys(graph.nodes, 0) if before is None else self._above(graph)
        if before is not None:
            own.matches, own.changes = before.matches.copy(), before.changes.copy()
        for position in graph.gone:
            for match in own.matches.pop(position, ()):
                own.changes.pop(match.move, None)
        for position, distance in sorted(touched.items()):
            before_here = own.matches.pop(position, ())
            for match in before_here:
                if match.height >= distance:
                    own.changes.pop(match.move, None)
            fresh = tuple(self._moves.at(graph, position, distance))
            listed = (*(each for each in before_here if each.height < distance), *fresh)
            if listed:
                own.matches[position] = listed
            for match in fresh:
                if match.merge is None:
                    self._enter(own, match.move)
        merges = {move for move in own.changes if len(move.roots) > 1}
        members = [each for some in own.matches.values() for each in some if each.merge is not None]
        for move in self._moves.pairs(graph, members, self._limits.pairs):
            merges.discard(move)
            if move not in own.changes:
                self._enter(own, move)
        for move in merges:  # those that no longer exist, or would make a loop now
            del own.changes[move]
        own.order = [
            (change.cost + self._waiting(own, move) - change.promise, move)
            for move, change in own.changes.items()
        ]
        own.order.sort(key=lambda entry: entry[0])
        self._wait(own)

    def _enter(self, own: Visited, move: Move) -> None:
        change = self._moves.change(own.graph, move)
        if change is not None:
            own.changes[move] = change

    def _waiting(self, own: Visited, move: Move) -> float:
        """The penalty of a move without a gain."""
        if own.changes[move].cost < -self._unit:
            return 0.0
        near = own.near
        goes_on = not near.isdisjoint(move.match.nodes) or not near.isdisjoint(move.roots)
        margin = (self._limits.alpha - 1) * self._least
        return margin * (_NEXT if goes_on else _ELSEWHERE)

    def _above(self, graph: DraftGraph) -> dict[egraph.Id, int]:
        """The places whose matches may have changed, and how far they are above a change."""
        touched = dict.fromkeys(graph.changed, 0)
        edge = set(graph.changed)
        for distance in range(1, self._moves.height + 1):
            above = {reader for position in edge for reader in graph.readers[position]}
            edge = above.difference(touched)
            touched.update(dict.fromkeys(edge, distance))
        return touched

    def _wait(self, own: Visited) -> None:
        """Put a graph into the queue for its next move, if it has one."""
        if own.turn >= len(own.order):
            own.close()
            return
        counted, _ = own.order[own.turn]
        self._count += 1
        expected = own.cost + own.waited + counted
        heapq.heappush(self._queue, (expected, own.depth, self._count, own))
        if len(self._queue) > 2 * self._limits.open:  # the worse half is given up
            self._queue.sort()
            for *_, worse in self._queue[self._limits.open :]:
                worse.close()
            del self._queue[self._limits.open :]


@dataclass(frozen=True, slots=True)
class BacktrackedNetwork:
    """The result of a search.

    outputs   of the cheapest graphs, the cheapest first: the node of each output of the network
    costs     what the operators of each cost together, in seconds
    stop      why it ended           seen   graphs that were made
    """

    outputs: tuple[tuple[egraph.Id, ...], ...]
    costs: tuple[float, ...]
    stop: egraph.StopReason
    seen: int


def backtrack_network(
    saturation: networks.NetworkSaturation,
    rules: networks.NetworkRules,
    costs: networks.OperatorCosts,
    limits: BacktrackingLimits | None = None,
    outputs: tuple[egraph.Id, ...] | None = None,
    should_stop: Callable[[], bool] = never,
) -> BacktrackedNetwork:
    """Search for cheaper graphs than that of some outputs; the network's own if none are given.

    saturation    of the network; new terms are made equal in its e-graph
    should_stop   asked between graphs
    """
    network, runner = saturation.network, saturation.runner

    def is_open(data: int) -> bool:  # constants are computed once, so rules gain nothing there
        return not network.terms.data_at(data).is_constant

    moves = Moves(runner, rules.plain, rules.merges, _prices(network, costs), is_open)
    start, terms = _started(network, moves, outputs or network.outputs)
    best, stop = _Search(start, moves, limits or BacktrackingLimits()).run(should_stop)
    chosen: list[tuple[egraph.Id, ...]] = []
    kept: list[float] = []
    for each in best:
        made = _applied(network, runner, moves, start, terms, each)
        if made is not None:
            chosen.append(made)
            kept.append(each.cost)
    return BacktrackedNetwork(tuple(chosen), tuple(kept), stop, stop.nodes)


def _prices(
    network: networks.Network, costs: networks.OperatorCosts
) -> Callable[[egraph.Head, tuple[int, ...], int], float]:
    """The cost of a head at arguments with some data; remembered."""
    terms = network.terms
    prices: dict[tuple[int, ...], float] = {}

    def price(head: egraph.Head, below: tuple[int, ...], own: int) -> float:
        key = (head, *below)
        if key not in prices:
            operator, params = terms.parts(head)
            args = tuple(map(terms.data_at, below))
            prices[key] = costs.seconds(
                networks.TypedOperator(operator, params, args, terms.data_at(own))
            )
        return prices[key]

    return price


def _started(
    network: networks.Network, moves: Moves, outputs: tuple[egraph.Id, ...]
) -> tuple[DraftGraph, dict[egraph.Id, egraph.Id]]:
    """The graph of some outputs, and the node of each place."""
    terms, graph = network.terms, DraftGraph()
    places: dict[egraph.Id, egraph.Id] = {}
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
    network: networks.Network,
    runner: egraph.Runner[Any],
    moves: Moves,
    start: DraftGraph,
    terms: Mapping[egraph.Id, egraph.Id],
    visited: Visited,
) -> tuple[egraph.Id, ...] | None:
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
    written: dict[egraph.Id, egraph.Id] = {}
    for position in graph.in_order():
        made = _written(network, written, graph.nodes[position])
        if made is None or not network.terms.are_equal(made, named[position]):
            return None
        written[position] = made
    outputs = tuple(written[root] for root in graph.roots)
    is_same = map(network.terms.are_equal, outputs, network.outputs)
    return outputs if all(is_same) else None


def _apply(
    runner: egraph.Runner[Any],
    moves: Moves,
    graph: DraftGraph,
    named: Mapping[egraph.Id, egraph.Id],
    move: Move,
) -> None:
    """Make the terms of a move equal; first those at which operands are swapped."""
    for position in move.match.swaps:
        node = graph.nodes[position]
        operator, _ = runner.graph.parts(node.head)
        swap = moves.commutative[operator]
        below = tuple(named[child] for child in node.children)
        runner.apply(swap, egraph.Match(_by_variable(swap, below), ()))
    nodes = tuple(named[position] for position in move.match.nodes)
    runner.apply(move.rewrite, move.match._replace(nodes=nodes, swaps=()))


def _by_variable(swap: egraph.Rewrite, operands: tuple[egraph.Id, ...]) -> tuple[egraph.Id, ...]:
    """Operands in the order of the variables of a rule that swaps them."""
    (left,) = swap.left
    assert not isinstance(left, int), "both sides are applications"
    pairs = zip(left.args, operands, strict=True)
    return tuple(
        node for _, node in sorted((at, node) for at, node in pairs if isinstance(at, int))
    )


def _written(
    network: networks.Network, named: Mapping[egraph.Id, egraph.Id], node: PlacedNode
) -> egraph.Id | None:
    """The node of the e-graph for the node of a place."""
    return network.terms.put(node.head, tuple(named[child] for child in node.children))
