"""Where rules can change a graph, and by how much its cost would change.

    graph     4: ewadd(3, 2)    3: ewmul(0, 1)    2: ewmul(0, 5)
    rule      ewadd(ewmul(?x, ?y), ewmul(?x, ?z)) == ewmul(?x, ewadd(?y, ?z))
    move      at 4, with x = 0, y = 1, z = 5: one operator less

A graph has one node for each tensor, so a pattern matches at a place in one way, up to the order of
operands: an operator that a rule says is commutative is tried with both, and the move says at which
places they were swapped.  So no move only swaps operands.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from tensorwright.rewriting import egraph
from tensorwright.rewriting.backtracking.draft_graph import DraftGraph, PlacedNode
from tensorwright.rewriting.terms import Apply, Input

Prices = Callable[[egraph.Head, tuple[int, ...], int], float]
"""The cost of a head at arguments with some data, and the number of its result's data."""


class Move(NamedTuple):
    """An instance of a rewrite in a graph.

    match    what its variables stand for; nodes are places
    roots    the places that change                  side   which side of the rule they become
    """

    rewrite: egraph.Rewrite
    match: egraph.Match
    roots: tuple[egraph.Id, ...]
    side: int


@dataclass(frozen=True, slots=True, eq=False)
class PlacedMatch:
    """A match of a pattern at a place, alone or as a root of a merge.

    height   how many levels below the place the pattern reaches
    """

    move: Move
    merge: egraph.Merge | None
    height: int

    @property
    def bound(self) -> egraph.Bound:
        """The values of the variables of a merge's root."""
        assert self.merge is not None, "only roots of merges are paired"
        return self.move.match.bound(self.merge.root.variables)


class Change(NamedTuple):
    """The change of a graph's cost by a move.

    cost      what is added
    promise   the move's share of the cost of places that it no longer reads but others do: when the
    last reader has gone, so has the cost

    Source:  Mishchenko, Chatterjee, Brayton, FPGA 2006, section 3 (area flow).
    """

    cost: float
    promise: float


@dataclass(frozen=True, slots=True)
class _Entry:
    """A pattern to look for, and the rewrite that it triggers."""

    pattern: egraph.RootPattern
    rewrite: egraph.Rewrite
    side: int
    merge: egraph.Merge | None


@dataclass(frozen=True, slots=True)
class _Places:
    """A graph for a matcher: each place is its own class."""

    nodes: Mapping[egraph.Id, PlacedNode]
    commutative: Container[str]

    def head_of(self, name: egraph.Id) -> egraph.Head:
        return self.nodes[name].head

    def children(self, name: egraph.Id) -> tuple[egraph.Id, ...]:
        return self.nodes[name].children

    def find(self, name: egraph.Id) -> egraph.Id:
        return name

    def members(self, name: egraph.Id, operator: str) -> tuple[egraph.Id]:
        return (name,)


class Moves:
    """Looks for moves in graphs whose heads and data are those of an e-graph.

    prices, is_open   costs of heads; whether moves are made at places with some data
    commutative   the rewrite that swaps the operands of an operator, by its name
    height        how far below a place a change may add or remove a match there
    """

    def __init__(
        self,
        runner: egraph.Runner[Any],
        plain: Iterable[egraph.Rewrite],
        merges: Iterable[egraph.Merge],
        prices: Prices,
        is_open: Callable[[int], bool],
    ) -> None:
        listed = list(plain)
        self.commutative = {_swapped(each): each for each in listed if _swapped(each)}
        self._runner = runner
        self._terms: egraph.EGraph[Any] = runner.graph
        self._matcher: egraph.Matcher[Any] = runner.matcher
        self._prices = prices
        self._is_open = is_open
        self._by_operator: dict[str, list[_Entry]] = {}
        self._pairs: dict[tuple[PlacedMatch, PlacedMatch], Move | None] = {}
        self._by_head: dict[egraph.Head, list[_Entry]] = {}
        for rewrite in listed:
            if not _swapped(rewrite):
                self._enter(rewrite)
        for merge in merges:
            entry = _Entry(merge.root, merge.rewrite, 1, merge)
            self._by_operator.setdefault(merge.root.node.operator, []).append(entry)
        entries = [each for some in self._by_operator.values() for each in some]
        self.height = max((entry.pattern.height for entry in entries), default=0)

    def _enter(self, rewrite: egraph.Rewrite) -> None:
        for trigger in rewrite.triggers:
            (pattern,) = trigger.patterns
            sides = (rewrite.rule.left[0], rewrite.rule.right[0])
            if pattern.term in sides:
                side = 1 - sides.index(pattern.term)
                entry = _Entry(pattern, rewrite, side, None)
                self._by_operator.setdefault(pattern.node.operator, []).append(entry)

    def at(self, graph: DraftGraph, position: egraph.Id, least: int = 0) -> Iterator[PlacedMatch]:
        """The matches at a place of patterns that reach at least `least` levels below it."""
        if not self._is_open(graph.nodes[position].data):
            return
        places = _Places(graph.nodes, self.commutative)
        for entry in self._entries(graph.nodes[position].head):
            if entry.pattern.height < least:
                continue
            for match in self._matcher.at(entry.pattern, position, places):
                move = Move(entry.rewrite, match, (position,), entry.side)
                yield PlacedMatch(move, entry.merge, entry.pattern.height)

    def pairs(self, graph: DraftGraph, members: Iterable[PlacedMatch], most: int) -> Iterator[Move]:
        """The moves that merge two of some matches of merges, at most `most` of a group."""
        groups: dict[tuple[object, ...], list[PlacedMatch]] = {}
        for member in members:
            assert member.merge is not None, "only roots of merges are paired"
            bound = member.bound
            shared = tuple(bound[name] for name in member.merge.shared)
            groups.setdefault((member.merge.rewrite.number, *shared), []).append(member)
        turns = {position: turn for turn, position in enumerate(graph.in_order())} if groups else {}
        for group in groups.values():
            count = 0
            for one, other in combinations(group, 2):
                if (one, other) not in self._pairs:
                    self._pairs[one, other] = _merged(one, other)
                move = self._pairs[one, other]
                if move is not None and not graph.needs(
                    move.match.nodes, frozenset(move.roots), turns
                ):
                    yield move
                    count += 1
                if count >= most:
                    break

    def change(self, graph: DraftGraph, move: Move) -> Change | None:
        """The change of a graph's cost by a move; None where it is impossible or makes a loop."""
        plan = self._plan(graph, move)
        if plan is None:
            return None
        added, read = self._added(graph, move, plan)
        if not read.isdisjoint(move.roots):
            return None  # relu(?x) == relu(relu(?x)): it would read itself
        gone = set(move.roots)
        lost = sum(graph.nodes[position].cost for position in move.roots)
        stack = [child for position in move.roots for child in graph.nodes[position].children]
        shared: dict[egraph.Id, int] = {}
        while stack:
            name = stack.pop()
            if name in gone or name in read or name in graph.roots:
                continue
            if graph.readers[name] <= gone:
                shared.pop(name, None)
                gone.add(name)
                lost += graph.nodes[name].cost
                stack += graph.nodes[name].children
            else:
                shared[name] = len(graph.readers[name])
        promise = sum(graph.nodes[name].cost / count for name, count in shared.items())
        return Change(added - lost, promise)

    def _added(
        self, graph: DraftGraph, move: Move, plan: egraph.Plan
    ) -> tuple[float, set[egraph.Id]]:
        """The cost of a move's new nodes, and the places that they read."""
        total = 0.0
        read: set[egraph.Id] = set()
        done: dict[egraph.Template, tuple[egraph.Id | None, int]] = {}

        def visit(template: egraph.Template) -> tuple[egraph.Id | None, int]:
            nonlocal total
            if isinstance(template, int):
                position = move.match.nodes[template]
                return position, graph.nodes[position].data
            if template in done:
                return done[template]
            head, args = template
            below = [visit(arg) for arg in args]
            places = [position for position, _ in below]
            twin = graph.place_of(head, [each for each in places if each is not None])
            read.update(position for position in places if position is not None)
            if twin is not None and None not in places:
                done[template] = twin, graph.nodes[twin].data
                return done[template]
            data = self._made(head, tuple(number for _, number in below))
            total += self._prices(head, tuple(number for _, number in below), data)
            done[template] = None, data
            return done[template]

        for pair in plan:
            position, _ = visit(pair[move.side])
            if position is not None:
                read.add(position)
        return total, read

    def make(self, graph: DraftGraph, move: Move) -> DraftGraph | None:
        """The graph after a move; None where it cannot be made."""
        plan = self._plan(graph, move)
        if plan is None:
            return None
        made = graph.copy()
        for root, pair in zip(move.roots, plan, strict=True):
            if root not in made.nodes:
                return None
            template = pair[move.side]
            if isinstance(template, int):
                made.redirect(root, move.match.nodes[template])
                continue
            made.replace(root, self._node(made, move, template))
        return made

    def _node(self, graph: DraftGraph, move: Move, template: egraph.Template) -> PlacedNode:
        """The top node of a template; places are added for the nodes below."""
        assert not isinstance(template, int), "a variable is a place already"
        head, args = template
        places = tuple(
            move.match.nodes[arg]
            if isinstance(arg, int)
            else graph.add(self._node(graph, move, arg))
            for arg in args
        )
        return self.placed(graph, head, places)

    def placed(
        self,
        graph: DraftGraph,
        head: egraph.Head,
        places: tuple[egraph.Id, ...],
        data: int | None = None,
    ) -> PlacedNode:
        """The node of a head over some places; its data are made from theirs if not given."""
        below = tuple(graph.nodes[position].data for position in places)
        data = self._made(head, below) if data is None else data
        mark = hash((head, *(graph.nodes[position].mark for position in places)))
        return PlacedNode(head, places, data, mark, self._prices(head, below, data))

    def _made(self, head: egraph.Head, data: tuple[int, ...]) -> int:
        made = self._terms.made(head, data)
        assert made is not None, "a plan has well-typed terms only"
        return made

    def _plan(self, graph: DraftGraph, move: Move) -> egraph.Plan | None:
        data = tuple(graph.nodes[position].data for position in move.match.nodes)
        return self._runner.planned(move.rewrite, move.match, data)

    def _entries(self, head: egraph.Head) -> Sequence[_Entry]:
        """The entries that may match at a head, by its parameters."""
        entries = self._by_head.get(head)
        if entries is None:
            operator, _ = self._terms.parts(head)
            entries = self._by_head[head] = [
                entry
                for entry in self._by_operator.get(operator, ())
                if self._matcher.bindings(entry.pattern.node, head) is not None
            ]
        return entries


def _merged(one: PlacedMatch, other: PlacedMatch) -> Move | None:
    merge = one.merge
    assert merge is not None, "only roots of merges are paired"
    if one.move.roots == other.move.roots:
        return None
    match = merge.match(one.bound, other.bound)
    swaps = (*one.move.match.swaps, *other.move.match.swaps)
    roots = (*one.move.roots, *other.move.roots)
    return Move(merge.rewrite, match._replace(swaps=swaps), roots, 1)


def _swapped(rewrite: egraph.Rewrite) -> str:
    """The operator whose operands a rule swaps; "" for another rule."""
    (left, *more), (right, *_) = rewrite.rule.left, rewrite.rule.right
    if more or not isinstance(left, Apply) or not isinstance(right, Apply):
        return ""
    if len(left.args) != 2 or not all(isinstance(arg, Input) for arg in left.args) or left.params:
        return ""
    is_one = (left.operator, left.params) == (right.operator, right.params)
    is_swap = left.args == right.args[::-1] and left.args[0] != left.args[1]
    return left.operator if is_one and is_swap else ""
