"""Nodes that no selection takes that costs at most so much: what need not be searched.

    reduced(problem, most).nodes       those that are left
    reduced(problem, most).bound       no selection costs less

What every term of a class contains is needed by whoever needs the class.  So

    a node above a class that needs the node's own class would close a cycle,
    a node costs at least itself and the cheapest node of each class that it or a root needs,
    a node is dominated where its class is had for no more from classes that the node needs anyway,
    a node is of no use where each node above its class is of a class that the first needs itself,
    or that is had from what it needs: two products that are concatenated to be split again.  What
    that costs more, of all of them together, must not be more than the node costs.

Nodes that are dominated or of no use are left out one by one: of two that dominate each other one
stays.  Each of these may make more classes needed, so all are repeated until nothing changes.
The sets of needed classes take the square of the number of classes in bits: 300 MB for 50,000.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tensorwright.rewriting.extraction.problem import ExtractionProblem

_SLACK = 1e-9
_STEPS = 3  # in which a class is had from others


@dataclass(frozen=True, slots=True)
class Reduced:
    """What is left of a problem.

    nodes    in order
    needed   classes that all selections contain
    bound    no selection costs less
    """

    nodes: tuple[int, ...]
    needed: frozenset[int]
    bound: float


def reduced(problem: ExtractionProblem, most: float) -> Reduced:
    """Leave out what no selection needs that costs at most `most`."""
    return _Reduction(problem, most).run()


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
        self._above: dict[int, set[int]] = {}
        for node, name in enumerate(problem.node_class):
            for each in self._below[node]:
                self._above.setdefault(each, set()).add(name)
        self._masks = tuple(sum(1 << each for each in below) for below in self._below)
        self._needed: dict[int, int] = {}

    def run(self) -> Reduced:
        is_changed = True
        while is_changed:
            self._find_needed()
            is_changed = self._drop_dear()
            is_changed |= self._drop_dominated()
            is_changed |= self._drop_useless()
        self._drop_unreachable()
        roots = self._roots()
        needed = frozenset(name for name in self._members if roots >> name & 1)
        nodes = sorted(node for nodes in self._members.values() for node in nodes)
        return Reduced(tuple(nodes), needed, self._cost(roots, self._least()))

    def _drop_dominated(self) -> bool:
        is_changed = False
        for name, nodes in self._members.items():
            for node in sorted(nodes, key=lambda each: (-self._problem.cost[each], each)):
                known = self._needed_below(node) or 0
                if math.isfinite(self._derived(name, known, node, self._problem.cost[node])):
                    nodes.remove(node)
                    is_changed = True
        return is_changed

    def _drop_useless(self) -> bool:
        users: dict[int, list[int]] = {}
        for node in (node for nodes in self._members.values() for node in nodes):
            for each in self._below[node]:
                users.setdefault(each, []).append(node)
        is_changed = False
        for name, nodes in self._members.items():
            if name in self._problem.roots:
                continue
            for node in list(nodes):
                if self._is_useless(name, node, users.get(name, ())):
                    nodes.remove(node)
                    is_changed = True
        return is_changed

    def _is_useless(self, name: int, node: int, users: Iterable[int]) -> bool:
        known, cost = self._needed_below(node) or 0, self._problem.cost
        left = cost[node]
        for user in users:
            above = self._problem.node_class[user]
            if known >> above & 1 or user not in self._members[above]:
                continue
            most = left + cost[user]
            left = min(left, most - self._derived(above, known, user, most, 1 << name))
            if left < 0:
                return False
        return True

    def _derived(
        self, name: int, known: int, but: int, most: float, hidden: int = 0, steps: int = _STEPS
    ) -> float:
        """What a class costs where some classes are known; infinite where that is more than `most`,
        or takes more steps.

        but   a node that is not taken      hidden   classes that are not used
        """
        best = math.inf
        hidden |= 1 << name
        for node in self._members[name]:
            total = self._problem.cost[node]
            if node == but or total > most or self._masks[node] & hidden:
                continue
            unknown = [each for each in self._below[node] if not known >> each & 1]
            if unknown and steps == 1:
                continue
            for each in unknown:
                total += self._derived(each, known, but, most - total, hidden, steps - 1)
            if total <= most:
                best = most = total
        return best

    def _find_needed(self) -> None:
        """The greatest solution: terms are finite, so nothing is its own reason to be left out."""
        self._needed = {}
        waiting = deque(self._members)
        is_waiting = dict.fromkeys(self._members, True)
        while waiting:
            name = waiting.popleft()
            is_waiting[name] = False
            found = self._needed_by_nodes(name)
            if found is not None and found != self._needed.get(name):
                self._needed[name] = found
                for each in self._above.get(name, ()):
                    if not is_waiting[each]:
                        is_waiting[each] = True
                        waiting.append(each)

    def _needed_by_nodes(self, name: int) -> int | None:
        common: int | None = None
        for node in self._members[name]:
            own = self._needed_below(node)
            if own is not None and not own >> name & 1:
                common = own if common is None else common & own
        return None if common is None else common | 1 << name

    def _needed_below(self, node: int) -> int | None:
        """What the terms of a node contain besides it; None where there is no such term so far."""
        found = 0
        for each in self._below[node]:
            if each not in self._needed:
                return None
            found |= self._needed[each]
        return found

    def _drop_dear(self) -> bool:
        """Leave out what has no term, closes a cycle or costs too much; whether anything did."""
        least, roots = self._least(), self._roots()
        is_changed = False
        for name, nodes in self._members.items():
            kept = []
            for node in nodes:
                below = self._needed_below(node)
                if below is None or below >> name & 1:
                    continue
                more = self._problem.cost[node] - least[name]
                if self._cost(below | roots | 1 << name, least) + more <= self._most:
                    kept.append(node)
            is_changed |= len(kept) < len(nodes)
            self._members[name] = kept
        return is_changed

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

    def _roots(self) -> int:
        found = 0
        for root in self._problem.roots:
            found |= self._needed.get(root, 0)
        return found

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
