"""Sets of terms that are known to be equal, with the reasons why.

A node is an operator with its parameters (the head) over other nodes.  Classes of equal nodes are
kept by union-find, closed under congruence, and every union keeps its reason in a forest of proofs,
so that two equal nodes can be explained as a chain of axiom instances.

Source:  Nieuwenhuis and Oliveras, Proof-producing congruence closure, RTA 2005;
         Willsey et al., egg, POPL 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NewType

from tensorwright.rewrite.terms import Param

__all__ = ["EGraph", "Id", "Link", "Node"]

Id = NewType("Id", int)

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
    """Nodes, their classes and the proofs of their equality.  Deterministic: ids count upwards."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._exact: dict[Node, Id] = {}
        self._canonical: dict[Node, Id] = {}
        self._leader: list[Id] = []
        self._members: dict[Id, list[Id]] = {}
        self._parents: dict[Id, list[Id]] = {}
        self._by_operator: dict[str, list[Id]] = {}
        self._proof: list[tuple[Id, int] | None] = []
        self._waiting: list[tuple[Id, Id, int]] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, name: Id) -> Node:
        """The node as it was written."""
        return self._nodes[name]

    def find(self, name: Id) -> Id:
        """The leader of the node's class."""
        leader = self._leader
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    def add(self, operator: str, params: tuple[Param, ...], children: tuple[Id, ...]) -> Id:
        """The node that is written exactly so; a new one joins the class of its congruent nodes."""
        node = Node(operator, params, children)
        known = self._exact.get(node)
        if known is not None:
            return known
        name = Id(len(self._nodes))
        self._nodes.append(node)
        self._exact[node] = name
        self._leader.append(name)
        self._members[name] = [name]
        self._parents[name] = []
        self._proof.append(None)
        for child in dict.fromkeys(self.find(child) for child in children):
            self._parents[child].append(name)
        key = self._key(node)
        twin = self._canonical.get(key)
        self._by_operator.setdefault(operator, []).append(name)
        if twin is None:
            self._canonical[key] = name
        else:
            self._waiting.append((name, twin, _CONGRUENCE))
            self._close()
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

    def members(self, name: Id) -> Iterator[Id]:
        """The nodes of a class, one of each set of congruent ones."""
        return (
            member
            for member in self._members[self.find(name)]
            if self._canonical.get(self._key(self._nodes[member])) == member
        )

    def with_operator(self, operator: str) -> tuple[Id, ...]:
        """All nodes of an operator, one of each set of congruent ones."""
        return tuple(
            name
            for name in self._by_operator.get(operator, ())
            if self._canonical.get(self._key(self._nodes[name])) == name
        )

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

    def _key(self, node: Node) -> Node:
        return Node(node.operator, node.params, tuple(self.find(child) for child in node.children))

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
            moved = self._parents.pop(lost)
            for parent in moved:
                key = self._key(self._nodes[parent])
                if self._canonical.get(key) == parent:
                    del self._canonical[key]
            self._leader[lost] = kept
            self._members[kept].extend(self._members.pop(lost))
            for parent in moved:
                key = self._key(self._nodes[parent])
                twin = self._canonical.setdefault(key, parent)
                if self.find(twin) != self.find(parent):
                    self._waiting.append((parent, twin, _CONGRUENCE))
            self._parents[kept].extend(moved)

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
