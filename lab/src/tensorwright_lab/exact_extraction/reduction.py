"""Leave out nodes that no selection below a given cost takes.

    reduced(problem, most, steps).nodes       those that are left
    reduced(problem, most, steps).bound       no selection costs less

What every term of a class contains is needed by whoever needs the class.  So

    a node above a class that needs the node's own class would close a cycle,
    a node costs at least itself and the cheapest node of each class that it or a root needs,
    a node is dominated where its class is had for no more from classes that the node needs anyway,
    a node is of no use where each node above its class is of a class that the first needs itself,
    or that is had from what it needs: two products that are concatenated to be split again.  What
    that costs more, of all of them together, must not be more than the node costs.

A node costs itself and what is there for it alone: classes that only it and nodes of such classes
need.  At least the cheapest nodes of those of them that all its terms contain are saved with it.

Why nothing is lost: let a selection take node n, and let D be the nodes by which what n was for is
had from K, classes that all terms of n contain and that are not there for n alone.  K does not
depend on n's class.  Take D, but for classes that n depends on in the selection, which stay as
they are, and leave out n and what was there for it alone: no node that stays needs these, and a
loop would have to lead from K back to a class of D, but those below n have kept their nodes.

Nodes that are dominated or of no use are left out one by one: of two that dominate each other one
stays.  Each of these may make more classes needed, so whoever calls repeats it until nothing
changes, with few `steps` first: their time grows fast.

Parts of a problem that can be solved one by one.

    independent_parts(problem, nodes, needed)      problems, with the nodes of the whole

A class that all selections contain is always present, so a node's need for it can be dropped.
What is then joined neither by a node above a class nor by a loop is solved alone, for

    a selection of the whole is one of each part: its classes of a part are reached from classes of
    that part that all selections contain, on ways that stay in it; each class is of one part only,
    so its node is paid for in one part only;
    selections of the parts are together one of the whole: all that a node asks for is chosen, and
    a loop would stay in one strongly connected component, all of which is in one part, whose
    selection has no loop.

Networks are chains of blocks with few tensors between them, so their parts are small and many are
alike.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tensorwright.rewriting.extraction import ExtractionProblem, cyclic_parts
from tensorwright_lab.exact_extraction.conflicts import NeededClasses, names_in

_SLACK = 1e-9
_LITTLE = 0.01  # of the nodes


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduced problem.

    nodes    in order
    needed   classes that all selections contain
    bound    no selection costs less
    """

    nodes: tuple[int, ...]
    needed: frozenset[int]
    bound: float


def reduced(problem: ExtractionProblem, most: float, steps: int) -> Reduced:
    """Leave out the nodes that no selection of cost `most` or less needs.

    steps   in which a class is derived from others; 0 where only costs count
    """
    return _Reduction(problem, most).run(steps)


class _Reduction:
    """Sets of classes are the bits of whole numbers."""

    def __init__(self, problem: ExtractionProblem, most: float) -> None:
        self._problem = problem
        self._most = most * (1 + _SLACK)
        self._below = tuple(problem.below(node) for node in range(len(problem.cost)))
        self._members: dict[int, list[int]] = {
            name: [node for node in nodes if math.isfinite(problem.cost[node])]
            for name, nodes in enumerate(problem.members)
        }
        self._masks = tuple(sum(1 << each for each in below) for below in self._below)
        self._users: dict[int, set[int]] = {}

    def run(self, steps: int) -> Reduced:
        """One pass of each kind; passes for expensive nodes are repeated while they leave out
        many.
        """
        self._drop_expensive()
        if steps:
            self._find_users()
            if not self._drop_dominated(steps):
                self._drop_useless(steps)
            self._drop_expensive()
        self._drop_unreachable()
        roots = self._needed.of_all(self._problem.roots)
        needed = frozenset(names_in(roots))
        nodes = sorted(node for nodes in self._members.values() for node in nodes)
        return Reduced(tuple(nodes), needed, self._cost(roots, self._least()))

    def _drop_expensive(self) -> None:
        """Until a pass leaves out little: with the next part of the problem there is another."""
        dropped, size = 1, 0
        while dropped > _LITTLE * size:
            self._needed = NeededClasses(self._members, self._below)
            size = sum(map(len, self._members.values()))
            dropped = self._drop_expensive_once()
        self._drop_impossible()

    def _drop_impossible(self) -> None:
        """Leave out nodes above classes that have no finite term any more."""
        above: dict[int, list[int]] = {}
        waits: dict[int, int] = {}
        possible: set[int] = set()
        for nodes in self._members.values():
            for node in nodes:
                waits[node] = len(self._below[node])
                for each in self._below[node]:
                    above.setdefault(each, []).append(node)
        waiting = [self._problem.node_class[node] for node, left in waits.items() if not left]
        while waiting:
            name = waiting.pop()
            if name not in possible:
                possible.add(name)
                for node in above.get(name, ()):
                    waits[node] -= 1
                    if not waits[node]:
                        waiting.append(self._problem.node_class[node])
        for name, nodes in self._members.items():
            self._members[name] = [node for node in nodes if not waits[node]]

    def _drop_expensive_once(self) -> int:
        """Leave out nodes that have no term, close a cycle or cost too much; return how many."""
        least, roots = self._least(), self._needed.of_all(self._problem.roots)
        dropped = 0
        for name, nodes in self._members.items():
            kept = []
            for node in nodes:
                below = self._needed.below(node)
                if below is None or below >> name & 1:
                    continue
                more = self._problem.cost[node] - least[name]
                if self._cost(below | roots | 1 << name, least) + more <= self._most:
                    kept.append(node)
            dropped += len(nodes) - len(kept)
            self._members[name] = kept
        return dropped

    def _drop_dominated(self, steps: int) -> bool:
        """Leave out dominated nodes, expensive ones first; those that get more classes for
        themselves alone are asked again.
        """
        cost, of = self._problem.cost, self._problem.node_class
        nodes = [node for members in self._members.values() for node in members]
        waiting = deque(sorted(nodes, key=lambda node: (of[node], -cost[node], node)))
        is_waiting = set(waiting)
        is_changed = False
        while waiting:
            node = waiting.popleft()
            is_waiting.discard(node)
            if node in self._members[of[node]] and self._is_dominated(node, steps):
                is_changed = True
                for each in self._drop(node) - is_waiting:
                    is_waiting.add(each)
                    waiting.append(each)
        return is_changed

    def _is_dominated(self, node: int, steps: int) -> bool:
        name = self._problem.node_class[node]
        given, alone = self._needed.below(node) or 0, self._alone(node)
        most = self._saved(node, given & alone)
        return math.isfinite(self._derived(name, given & ~alone, node, most, alone, steps))

    def _drop_useless(self, steps: int) -> bool:
        is_changed = False
        for name, nodes in self._members.items():
            if name in self._problem.roots:
                continue
            for node in list(nodes):
                if node in nodes and self._is_useless(name, node, steps):
                    self._drop(node)
                    is_changed = True
        return is_changed

    def _is_useless(self, name: int, node: int, steps: int) -> bool:
        given, alone = self._needed.below(node) or 0, self._alone(node)
        left = self._saved(node, given & alone)
        given &= ~alone
        hidden = alone | 1 << name
        for user in self._users.get(name, ()):
            above = self._problem.node_class[user]
            if given >> above & 1:
                continue
            most = left + self._problem.cost[user]
            left = min(left, most - self._derived(above, given, user, most, hidden, steps))
            if left < 0:
                return False
        return True

    def _derived(
        self, name: int, given: int, but: int, most: float, hidden: int, steps: int
    ) -> float:
        """The cost of a class where some classes are given; infinite where that is more than
        `most`, or takes more steps.

        but   a node that is not taken      hidden   classes that are not used
        """
        best = math.inf
        hidden |= 1 << name
        for node in self._members[name]:
            total = self._problem.cost[node]
            if node == but or total > most or self._masks[node] & hidden:
                continue
            unknown = self._masks[node] & ~given
            if unknown and steps == 1:
                continue
            for each in names_in(unknown):
                total += self._derived(each, given, but, most - total, hidden, steps - 1)
                if total > most:
                    break
            if total <= most:
                best = most = total
        return best

    def _alone(self, node: int) -> int:
        """Classes that only a node, and nodes of such classes, need."""
        classes = 0
        for each in self._problem.roots:
            classes |= 1 << each
        roots, classes = classes, 0
        waiting = list(self._below[node])
        while waiting:
            name = waiting.pop()
            if (classes | roots) >> name & 1:
                continue
            users = self._users.get(name, ())
            if all(user == node or classes >> self._problem.node_class[user] & 1 for user in users):
                classes |= 1 << name
                for member in self._members[name]:
                    waiting += self._below[member]
        return classes

    def _saved(self, node: int, alone: int) -> float:
        """The least saving without a node and the classes that only it needs."""
        cost = self._problem.cost
        return cost[node] + sum(
            min((cost[each] for each in self._members[name]), default=0.0)
            for name in names_in(alone)
        )

    def _find_users(self) -> None:
        self._users = {}
        for nodes in self._members.values():
            for node in nodes:
                for each in self._below[node]:
                    self._users.setdefault(each, set()).add(node)

    def _drop(self, node: int) -> set[int]:
        """Leave out a node, and classes that no node needs any more; who shared a class with it."""
        shared: set[int] = set()
        waiting = [node]
        while waiting:
            node = waiting.pop()
            self._members[self._problem.node_class[node]].remove(node)
            for each in self._below[node]:
                self._users[each].discard(node)
                if self._users[each]:
                    shared |= self._users[each]
                elif each not in self._problem.roots:
                    waiting += self._members[each]
        return shared

    def _drop_unreachable(self) -> None:
        seen = set(self._problem.roots)
        waiting = list(seen)
        while waiting:
            for node in self._members[waiting.pop()]:
                for each in self._below[node]:
                    if each not in seen:
                        seen.add(each)
                        waiting.append(each)
        for name in self._members:
            if name not in seen:
                self._members[name] = []

    def _least(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The cost of the cheapest node of each class."""
        cost = self._problem.cost
        least = [
            min((cost[node] for node in nodes), default=0.0) for nodes in self._members.values()
        ]
        return np.array(least)

    def _cost(self, names: int, least: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        """The sum over a set of classes."""
        packed = names.to_bytes(-(-len(least) // 8), "little")
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        return float(bits[: len(least)] @ least)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A problem, and which nodes of the whole its nodes are."""

    problem: ExtractionProblem
    nodes: tuple[int, ...]

    @property
    def is_forced(self) -> bool:
        """Whether there is nothing to choose."""
        return all(len(nodes) <= 1 for nodes in self.problem.members)


def independent_parts(
    problem: ExtractionProblem, nodes: Sequence[int], needed: Iterable[int]
) -> list[Part]:
    """Divide a reduced problem.

    nodes    that may be taken; others are left out
    needed   classes that all selections contain, those of the roots among them
    """
    kept = ExtractionProblem.of(
        [(problem.node_class[n], problem.cost[n], problem.children[n]) for n in nodes],
        problem.roots,
    )
    cycle, always = cyclic_parts(kept), frozenset(needed)
    below = [
        tuple(d for d in dict.fromkeys(children) if d not in always or cycle[d] == cycle[name])
        for name, children in zip(kept.node_class, kept.children, strict=True)
    ]
    groups = _Groups(len(kept.members))
    for name, asked in zip(kept.node_class, below, strict=True):
        for each in asked:
            groups.join(name, each)
    by_group: dict[int, list[int]] = {}
    for node, name in enumerate(kept.node_class):
        by_group.setdefault(groups.leader(name), []).append(node)
    parts = []
    for members in by_group.values():
        number: dict[int, int] = {}
        for node in members:
            number.setdefault(kept.node_class[node], len(number))
        part = ExtractionProblem.of(
            [
                (
                    number[kept.node_class[node]],
                    kept.cost[node],
                    tuple(number[each] for each in below[node]),
                )
                for node in members
            ],
            [index for name, index in number.items() if name in always],
        )
        parts.append(Part(part, tuple(nodes[node] for node in members)))
    return parts


class _Groups:
    """Disjoint sets of numbers."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def leader(self, member: int) -> int:
        """One number of its set, the same for all."""
        while self._above[member] != member:
            self._above[member] = self._above[self._above[member]]
            member = self._above[member]
        return member

    def join(self, left: int, right: int) -> None:
        """Make one set of two."""
        self._above[self.leader(left)] = self.leader(right)
