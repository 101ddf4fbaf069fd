"""A graph that is changed by rules: each state of the search has one.

    place 3: matmul(1, 2)          place 4: relu(3)           place 5: ewadd(4, 0)
    replace(4, sigmoid, (3,))      place 4 is sigmoid(3) now; 5 is not touched
    redirect(4, 3)                 5 is ewadd(3, 0); 4 is gone, since nobody reads it

A place holds an application over other places. It names a tensor while rules change its
computation.  No two places hold the same application: where a change would make two alike, one of
them is removed.  The time of a change depends on what it touches alone, and a copy copies a few
dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tensorwright.rewriting.dims import arguments_first
from tensorwright.rewriting.egraph import Head, Id


class PlacedNode(NamedTuple):
    """The content of a place.

    head      the operator with its parameters          children   the places that it reads
    data      the number of the data of the tensor
    mark      a number of the tensor, equal in all graphs in which it was first computed alike
    cost      what it costs
    """

    head: Head
    children: tuple[Id, ...]
    data: int
    mark: int
    cost: float


class DraftGraph:
    """Places, who reads them, and the sum of their costs.

    changed    places that are new or hold something else than in the graph that was copied
    gone       those that it had besides
    """

    def __init__(self) -> None:
        self.nodes: dict[Id, PlacedNode] = {}
        self.readers: dict[Id, frozenset[Id]] = {}
        self.roots: tuple[Id, ...] = ()
        self.cost = 0.0
        self.key = 0
        self.changed: set[Id] = set()
        self.gone: set[Id] = set()
        self._alike: dict[tuple[int, ...], Id] = {}
        self._next = 0

    def copy(self) -> DraftGraph:
        """An equal graph, in which nothing has changed yet."""
        other = DraftGraph()
        other.nodes, other.readers = self.nodes.copy(), self.readers.copy()
        other.roots, other.cost, other.key = self.roots, self.cost, self.key
        other._alike, other._next = self._alike.copy(), self._next
        return other

    def add(self, node: PlacedNode) -> Id:
        """The place that holds a node; a new one where none does."""
        held = (node.head, *node.children)
        position = self._alike.get(held)
        if position is None:
            position = Id(self._next)
            self._next += 1
            self.readers[position] = frozenset()
            self._hold(position, node)
        return position

    def place_of(self, head: Head, children: Iterable[Id]) -> Id | None:
        """The place that holds a head over some places."""
        return self._alike.get((head, *children))

    def finish(self, roots: Iterable[Id]) -> None:
        """Set the places of the outputs; remove the places that they do not need."""
        self.roots = tuple(roots)
        for position in sorted(self.nodes, reverse=True):
            self._remove_unread(position)

    def replace(self, position: Id, node: PlacedNode) -> None:
        """Let a place hold another node, which does not need the place itself."""
        twin = self._alike.get((node.head, *node.children))
        if twin is not None:
            self.redirect(position, twin)
            return
        before = self.nodes[position]
        self._release(position)
        self._hold(position, node._replace(mark=before.mark))
        for child in before.children:
            self._remove_unread(child)

    def redirect(self, position: Id, other: Id) -> None:
        """Let all readers of a place read another place, which does not need it."""
        if position == other:
            return
        if position in self.roots:
            self.roots = tuple(other if root == position else root for root in self.roots)
        for reader in sorted(self.readers[position]):
            if reader not in self.nodes or position not in self.nodes[reader].children:
                continue  # it was removed because another reader became alike
            node = self.nodes[reader]
            children = tuple(other if child == position else child for child in node.children)
            twin = self._alike.get((node.head, *children))
            if twin is not None:
                self.redirect(reader, twin)
                continue
            self._release(reader)
            self._hold(reader, node._replace(children=children))
        self._remove_unread(position)

    def needs(self, places: Iterable[Id], wanted: frozenset[Id], turns: Mapping[Id, int]) -> bool:
        """Whether some places are, or need, one of the wanted places.

        turns   the number of each place in an order like `in_order`
        """
        first = min(turns[position] for position in wanted)
        stack = [position for position in places if turns[position] >= first]
        seen = set(stack)
        while stack:
            position = stack.pop()
            if position in wanted:
                return True
            for child in self.nodes[position].children:
                if turns[child] >= first and child not in seen:
                    seen.add(child)
                    stack.append(child)
        return False

    def in_order(self) -> Iterator[Id]:
        """All places, each after those that it reads."""
        return arguments_first(self.roots, lambda position: self.nodes[position].children)

    def _hold(self, position: Id, node: PlacedNode) -> None:
        self.nodes[position] = node
        self._alike[(node.head, *node.children)] = position
        self.cost += node.cost
        self.key ^= self._number(node)
        self.changed.add(position)
        self.gone.discard(position)
        for child in node.children:
            self.readers[child] |= {position}

    def _release(self, position: Id) -> None:
        """Remove the node of a place."""
        node = self.nodes[position]
        del self._alike[(node.head, *node.children)]
        self.cost -= node.cost
        self.key ^= self._number(node)
        for child in node.children:
            self.readers[child] -= {position}

    def _remove_unread(self, position: Id) -> None:
        """Remove a place without readers, and the places that only it read."""
        stack = [position]
        while stack:
            name = stack.pop()
            if name not in self.nodes or self.readers[name] or name in self.roots:
                continue
            below = self.nodes[name].children
            self._release(name)
            del self.nodes[name], self.readers[name]
            self.gone.add(name)
            self.changed.discard(name)
            stack += below

    def _number(self, node: PlacedNode) -> int:
        marks = tuple(self.nodes[child].mark for child in node.children)
        return hash((node.mark, node.head, marks))
