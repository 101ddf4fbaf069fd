"""Sets of terms that are known to be equal, with the reasons why.

A node is an operator with its parameters (the head) over other nodes.  Classes of equal nodes are
kept by union-find, closed under congruence, and every union keeps its reason in a forest of proofs,
so that two equal nodes can be explained as a chain of axiom instances.  Of congruent nodes one is
alive: the others are of no use to a matcher.

Source:  Nieuwenhuis and Oliveras, Proof-producing congruence closure, RTA 2005;
         Willsey et al., egg, POPL 2021.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NewType, TypeAlias

from tensorwright.rewrite.terms import Param

__all__ = ["EGraph", "Head", "Id", "Link", "Node"]

Id = NewType("Id", int)
Head = NewType("Head", int)
"""An operator with its parameters, as a number."""
Key: TypeAlias = tuple[int, ...]
"""A head and the nodes below it."""

_CONGRUENCE = -1


@dataclass(frozen=True, slots=True)
class Node:
    """A head (operator and parameters) over nodes; `operator` is the head's name alone."""

    operator: str
    params: tuple[Param, ...]
    children: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A step of a proof: two nodes are equal by a reason, or (None) because their children are."""

    left: Id
    right: Id
    reason: int | None


class EGraph:
    """Nodes, their classes and the proofs of their equality.  Deterministic: ids count upwards.

    clock    a number of the caller's: new nodes and changes of classes are stamped with it
    version  counts nodes and unions: while it stays, so does the graph
    """

    def __init__(self) -> None:
        self.clock = 0
        self.version = 0
        self._heads: dict[tuple[str, tuple[Param, ...]], Head] = {}
        self._head_parts: list[tuple[str, tuple[Param, ...]]] = []
        self._head: list[Head] = []
        self._children: list[tuple[Id, ...]] = []
        self._born: list[int] = []
        self._exact: dict[Key, Id] = {}
        self._key: list[Key] = []
        self._canonical: dict[Key, Id] = {}
        self._is_alive: list[bool] = []
        self._leader: list[Id] = []
        self._members: dict[Id, dict[str, list[Id]]] = {}
        self._changed: dict[Id, int] = {}
        self._parents: dict[Id, list[Id]] = {}
        self._by_operator: dict[str, list[Id]] = {}
        self._proof: list[tuple[Id, int] | None] = []
        self._waiting: list[tuple[Id, Id, int]] = []

    def __len__(self) -> int:
        return len(self._head)

    def head(self, operator: str, params: tuple[Param, ...]) -> Head:
        """The number of an operator with parameters."""
        parts = (operator, params)
        known = self._heads.get(parts)
        if known is None:
            known = self._heads[parts] = Head(len(self._head_parts))
            self._head_parts.append(parts)
        return known

    def parts(self, head: Head) -> tuple[str, tuple[Param, ...]]:
        """The operator and the parameters that a head is."""
        return self._head_parts[head]

    def node(self, name: Id) -> Node:
        """The node as it was written."""
        return Node(*self._head_parts[self._head[name]], self._children[name])

    def head_of(self, name: Id) -> Head:
        """The head of a node."""
        return self._head[name]

    def children(self, name: Id) -> tuple[Id, ...]:
        """The nodes below a node, as it was written."""
        return self._children[name]

    def find(self, name: Id) -> Id:
        """The leader of the node's class."""
        leader = self._leader
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    def add(self, operator: str, params: tuple[Param, ...], children: tuple[Id, ...]) -> Id:
        """The node that is written exactly so; a new one joins the class of its congruent nodes."""
        return self.put(self.head(operator, params), children)

    def written(self, head: Head, children: Sequence[Id]) -> Id | None:
        """The node that is written exactly so, if there is one."""
        return self._exact.get((head, *children))

    def put(self, head: Head, children: tuple[Id, ...]) -> Id:
        """As `add`, by the number of the head."""
        written = (head, *children)
        known = self._exact.get(written)
        if known is not None:
            return known
        self.version += 1
        name = Id(len(self._head))
        key = (head, *map(self.find, children))
        twin = self._canonical.get(key)
        self._head.append(head)
        self._children.append(children)
        self._born.append(self.clock)
        self._exact[written] = name
        self._key.append(key)
        self._is_alive.append(twin is None)
        self._leader.append(name)
        self._members[name] = {}
        self._changed[name] = self.clock
        self._parents[name] = []
        self._proof.append(None)
        if twin is not None:
            self._waiting.append((name, twin, _CONGRUENCE))
            self._close()
            return name
        self._canonical[key] = name
        operator = self._head_parts[head][0]
        self._members[name][operator] = [name]
        self._by_operator.setdefault(operator, []).append(name)
        for child in dict.fromkeys(key[1:]):
            self._parents[Id(child)].append(name)
        return name

    def union(self, left: Id, right: Id, reason: int) -> bool:
        """Make two nodes equal for a reason (a number of the caller's); False if they were."""
        if self.find(left) == self.find(right):
            return False
        self._waiting.append((left, right, reason))
        self._close()
        return True

    def are_equal(self, left: Id, right: Id) -> bool:
        """Whether two nodes are in one class."""
        return self.find(left) == self.find(right)

    def members(self, name: Id, operator: str | None = None) -> Iterator[Id]:
        """The nodes of a class (those of one operator), one of each set of congruent ones."""
        listed = self._members[self.find(name)]
        chosen = listed.values() if operator is None else (listed.get(operator, ()),)
        return (member for each in chosen for member in each if self._is_alive[member])

    def with_operator(self, operator: str) -> tuple[Id, ...]:
        """All nodes of an operator, one of each set of congruent ones."""
        return tuple(n for n in self._by_operator.get(operator, ()) if self._is_alive[n])

    def born(self, name: Id) -> int:
        """The clock when a node was made."""
        return self._born[name]

    def changed(self, leader: Id) -> int:
        """The clock when a class last gained a node; only for leaders."""
        return self._changed[leader]

    def explain(self, left: Id, right: Id) -> tuple[Link, ...]:
        """The chain of links from one node to an equal one."""
        above: dict[Id, int] = {}
        up = [left]
        while True:
            above[up[-1]] = len(up) - 1
            step = self._proof[up[-1]]
            if step is None:
                break
            up.append(step[0])
        down: list[Link] = []
        place = right
        while place not in above:
            step = self._proof[place]
            if step is None:
                raise ValueError(f"nodes {left} and {right} are not equal")
            down.append(_link(step[0], place, step[1]))
            place = step[0]
        links: list[Link] = []
        for name in up[: above[place]]:
            step = self._proof[name]
            if step is not None:
                links.append(_link(name, step[0], step[1]))
        return (*links, *reversed(down))

    def _close(self) -> None:
        """Carry out the unions that wait, and those that follow by congruence."""
        while self._waiting:
            left, right, reason = self._waiting.pop()
            kept, lost = self.find(left), self.find(right)
            if kept == lost:
                continue
            self._prove(left, right, reason)
            if (len(self._parents[kept]), -kept) < (len(self._parents[lost]), -lost):
                kept, lost = lost, kept
            self._merge(kept, lost)

    def _merge(self, kept: Id, lost: Id) -> None:
        """Move the members and the parents of one class to another."""
        self.version += 1
        moved = [parent for parent in self._parents.pop(lost) if self._is_alive[parent]]
        for parent in moved:
            if self._canonical.get(self._key[parent]) == parent:
                del self._canonical[self._key[parent]]
        self._leader[lost] = kept
        self._changed[kept] = self.clock
        own = self._members[kept]
        for operator, listed in self._members.pop(lost).items():
            own.setdefault(operator, []).extend(listed)
        for parent in moved:
            key = (self._head[parent], *map(self.find, self._children[parent]))
            self._key[parent] = key
            twin = self._canonical.setdefault(key, parent)
            if twin == parent:
                self._parents[kept].append(parent)
                continue
            self._is_alive[parent] = False
            if self.find(twin) != self.find(parent):
                self._waiting.append((parent, twin, _CONGRUENCE))

    def _prove(self, left: Id, right: Id, reason: int) -> None:
        """Hang the tree of proofs of `left` under `right`."""
        place: Id | None = left
        step: tuple[Id, int] | None = (right, reason)
        while place is not None:
            old = self._proof[place]
            self._proof[place] = step
            if old is None:
                return
            step = (place, old[1])
            place = old[0]


def _link(left: Id, right: Id, reason: int) -> Link:
    return Link(left, right, None if reason == _CONGRUENCE else reason)
