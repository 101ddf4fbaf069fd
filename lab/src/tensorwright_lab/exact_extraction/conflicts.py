"""Conflicts: groups of nodes above one class of which a selection takes at most one.

    exclusive_users(problem)[name]      the nodes above a class, in groups

Let a selection take nodes of two classes.  A root needs each, on some way; the ways part at a node
that needs different classes for them, or at the roots, or one way ends on the other.  So nodes n
and m are in conflict, unless

    n and m are of different classes, of which
    a class below n can need that of m, or a class below m can need that of n, or
    some node, or the roots, needs two classes, one of which can need that of n, and the other that
    of m.

They are in conflict, too, where a class that all ways from the roots pass on to either has to take
other nodes for n than for m: ways to n lead through its nodes `passed(n)`, those to m through
`passed(m)`.  This holds in loops, where every class can need every other.

Where tensors are concatenated in any order, nodes above one of them are in conflict, and a relaxed
solution may not let all of them have their halves of it.

The classes that all terms of a class contain: a node that needs the class needs them, too.

Sets of classes are the bits of whole numbers.  They take the square of the number of classes in
bits: 300 MB for 50,000.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tensorwright.rewriting.extraction import ExtractionProblem

Members = Mapping[int, Sequence[int]]
"""The nodes of each class that may be taken."""


class NeededClasses:
    """The sets of some nodes; those of a class that has no term are None."""

    def __init__(self, members: Members, below: Sequence[Sequence[int]]) -> None:
        self._members = members
        self._below = below
        self._of: dict[int, int] = {}
        self._find()

    def of(self, name: int) -> int | None:
        """The classes that all terms of a class contain, itself among them."""
        return self._of.get(name)

    def below(self, node: int) -> int | None:
        """The classes that all terms of a node contain besides its own."""
        classes = 0
        for each in self._below[node]:
            own = self._of.get(each)
            if own is None:
                return None
            classes |= own
        return classes

    def of_all(self, names: Sequence[int]) -> int:
        """The classes that terms of some classes contain, all together."""
        classes = 0
        for name in names:
            classes |= self._of.get(name, 0)
        return classes

    def _find(self) -> None:
        """The greatest solution: terms are finite, so nothing is its own reason to be left out."""
        above: dict[int, set[int]] = {}
        for name, nodes in self._members.items():
            for node in nodes:
                for each in self._below[node]:
                    above.setdefault(each, set()).add(name)
        waiting = deque(self._members)
        is_waiting = dict.fromkeys(self._members, True)
        while waiting:
            name = waiting.popleft()
            is_waiting[name] = False
            classes = self._by_nodes(name)
            if classes is not None and classes != self._of.get(name):
                self._of[name] = classes
                for each in above.get(name, ()):
                    if not is_waiting[each]:
                        is_waiting[each] = True
                        waiting.append(each)

    def _by_nodes(self, name: int) -> int | None:
        common: int | None = None
        for node in self._members[name]:
            own = self.below(node)
            if own is not None and not own >> name & 1:
                common = own if common is None else common & own
        return None if common is None else common | 1 << name


def names_in(bits: int) -> Iterator[int]:
    """The members of a set."""
    while bits:
        last = bits & -bits
        yield last.bit_length() - 1
        bits ^= last


def exclusive_users(problem: ExtractionProblem) -> dict[int, list[list[int]]]:
    """For each class that a node needs, all such nodes in groups without two that go together."""
    return _Conflicts(problem).groups()


Passed: TypeAlias = dict[int, int]
"""For classes that all ways pass, the nodes by which they pass them."""


def _either(one: Passed, other: Passed) -> Passed:
    """The classes and nodes that ways of either kind pass."""
    return {name: nodes | other[name] for name, nodes in one.items() if name in other}


class _Conflicts:
    """Sets of classes and of nodes are the bits of whole numbers.

    passed   for each class, None where no way leads to it
    """

    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self._below = [problem.below(node) for node in range(len(problem.cost))]
        self._reach = self._reached()
        self._under = [self._union(below) for below in self._below]
        self._beside = self._found_beside()
        self._passed: list[Passed | None] = [None] * len(problem.members)
        self._find_passed()

    def groups(self) -> dict[int, list[list[int]]]:
        """Each group grows as large as possible."""
        users: dict[int, list[int]] = {}
        for node, below in enumerate(self._below):
            for each in below:
                users.setdefault(each, []).append(node)
        return {name: self._grouped(nodes) for name, nodes in users.items()}

    def _grouped(self, nodes: list[int]) -> list[list[int]]:
        groups: list[list[int]] = []
        for node in nodes:
            for group in groups:
                if all(self._are_in_conflict(node, each) for each in group):
                    group.append(node)
                    break
            else:
                groups.append([node])
        return groups

    def _are_in_conflict(self, left: int, right: int) -> bool:
        first, second = self._problem.node_class[left], self._problem.node_class[right]
        if first == second:
            return True
        if self._part_ways(left, right):
            return True
        is_below = self._under[left] >> second & 1 or self._under[right] >> first & 1
        return not is_below and not self._beside[first] >> second & 1

    def _part_ways(self, left: int, right: int) -> bool:
        """Whether ways to two nodes lead through different nodes of one class."""
        one, other = self._passed_to(left), self._passed_to(right)
        return any(name in other and not nodes & other[name] for name, nodes in one.items())

    def _passed_to(self, node: int) -> Passed:
        """The nodes that ways to a node lead through, itself among them."""
        name = self._problem.node_class[node]
        return {**(self._passed[name] or {}), name: 1 << node}

    def _find_passed(self) -> None:
        """Compute from the roots down until nothing changes, as for dominators of a graph."""
        problem, passed = self._problem, self._passed
        waiting = deque(problem.roots)
        for root in problem.roots:
            passed[root] = {}
        while waiting:
            name = waiting.popleft()
            for node in problem.members[name]:
                to_node = self._passed_to(node)
                for each in self._below[node]:
                    former = passed[each]
                    joined = to_node if former is None else _either(former, to_node)
                    if joined != former:
                        passed[each] = joined
                        waiting.append(each)

    def _reached(self) -> list[int]:
        """The classes that each class can need, itself among them."""
        reach = [1 << name for name in range(len(self._problem.members))]
        is_changed = True
        while is_changed:
            is_changed = False
            for name, nodes in reversed([*enumerate(self._problem.members)]):
                reached = reach[name]
                for node in nodes:
                    for each in self._below[node]:
                        reached |= reach[each]
                is_changed |= reached != reach[name]
                reach[name] = reached
        return reach

    def _union(self, names: tuple[int, ...]) -> int:
        union = 0
        for name in names:
            union |= self._reach[name]
        return union

    def _found_beside(self) -> list[int]:
        """For each class those that a selection may need besides it by the same node."""
        beside = [0] * len(self._reach)
        for below in {frozenset(each) for each in (*self._below, self._problem.roots)}:
            for name in below:
                others = self._union(tuple(below - {name}))
                for each in names_in(self._reach[name]) if others else ():
                    beside[each] |= others
        return beside
