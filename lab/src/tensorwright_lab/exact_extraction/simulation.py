"""Leave out nodes whose class another class simulates, such as joins in several forms.

    without_simulated(problem)        the nodes that are left, in order

    e <- relu(b), relu(a)    b <- concat(x, relu(y))    a <- concat(x, y)      b's node is left out

Class a simulates class b where all that can be made of b can be made of a for no more:

    for each node v above b, of class f: v with a in the place of b is a node that costs no more,
    of class f, or of a class that simulates f; that f is not a root then.

This is the greatest such relation, as of states of automata.  A node m of class b is left out where
a class a simulates b and has a node that costs no more than m, over classes that m needs anyway.

Why nothing is lost: take a selection with m, in an order in which first comes what b needs, then b.
Put a in the place of b, by that node, unless a is below b and stays as it is.  Then go through what
follows in order: a node above a class that was replaced is replaced as the relation says, by one of
its own class, or its class by one that simulates it.  Each stands where the other stood, so what it
is over comes before it, and there is no loop; each costs no more.  A class that comes into use so
and stood later gives up that place; where it stood before, it stays.  Node m does not come back,
for a relation that would use it as a replacement does not count.  So nodes may be left out one by
one, each where what is left has the relation.

Source:  Milner, An algebraic definition of simulation between programs, IJCAI 1971.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.rewriting.extraction import ExtractionProblem, cheapest_trees
from tensorwright_lab.exact_extraction.conflicts import NeededClasses

_MOST = 200_000  # pairs of classes that are asked about
_SUPPORT = 400  # pairs that one relation may rest on

Pair = tuple[int, int]
"""A class, and one that may simulate it."""


def without_simulated(problem: ExtractionProblem) -> list[int]:
    """Leave out nodes that are simulated, and those that no finite term is made of."""
    return _Simulation(problem).run()


class _Simulation:
    """Mutable: the nodes that are left, and pairs of the relation as it was with all of them."""

    def __init__(self, problem: ExtractionProblem) -> None:
        self._problem = problem
        self._below = [frozenset(children) for children in problem.children]
        possible, _ = cheapest_trees(problem)
        self._roots = frozenset(problem.roots)
        self._is_left = [below <= possible.keys() for below in self._below]
        self._users: dict[int, list[int]] = {}
        self._over: dict[frozenset[int], list[int]] = {}
        for node, below in enumerate(self._below):
            if self._is_left[node]:
                self._over.setdefault(below, []).append(node)
                for each in below:
                    self._users.setdefault(each, []).append(node)
        self._pairs = self._candidates()

    def run(self) -> list[int]:
        """Find the relation, then leave out node by node."""
        self._shrink()
        members = {name: self._left(name) for name in range(len(self._problem.members))}
        needed = NeededClasses(members, [tuple(below) for below in self._below])
        for name, other in sorted(self._pairs):
            for node in self._left(name):
                if self._is_derivable(needed.below(node) or 0, node, other) and self._is_supported(
                    (name, other), node
                ):
                    self._leave_out(node)
        return [node for node, is_left in enumerate(self._is_left) if is_left]

    def _left(self, name: int) -> list[int]:
        return [node for node in self._problem.members[name] if self._is_left[node]]

    def _candidates(self) -> set[Pair]:
        """Pairs in which nodes of one class, or of another pair, differ."""
        pairs: set[Pair] = set()
        waiting = [(name, name) for name, nodes in enumerate(self._problem.members) if nodes]
        while waiting and len(pairs) < _MOST:
            for pair in self._differences(*waiting.pop()):
                if pair not in pairs:
                    pairs.add(pair)
                    waiting.append(pair)
        return pairs

    def _differences(self, name: int, other: int) -> Iterator[Pair]:
        cost = self._problem.cost
        for one in self._left(name):
            for two in self._left(other):
                lost, gained = self._below[one] - self._below[two], self._below[two]
                if len(lost) == 1 and cost[two] <= cost[one]:
                    gained = gained - self._below[one]
                    (before,) = lost
                    if len(gained) == 1 and before not in self._roots:
                        (after,) = gained
                        yield before, after

    def _shrink(self) -> None:
        """Leave out pairs that others do not bear out, until all are borne out."""
        is_changed = True
        while is_changed:
            wrong = [pair for pair in self._pairs if self._requirements(pair, -1) is None]
            self._pairs.difference_update(wrong)
            is_changed = bool(wrong)

    def _requirements(self, pair: Pair, but: int) -> list[Pair] | None:
        """The pairs that a pair rests on; None where it does not hold.

        but   a node that replaces none
        """
        cost, of = self._problem.cost, self._problem.node_class
        name, other = pair
        pairs: list[Pair] = []
        for user in self._users.get(name, ()):
            if not self._is_left[user]:
                continue
            below = self._below[user] - {name} | {other}
            above, most = of[user], cost[user]
            nodes = [
                node
                for node in self._over.get(below, ())
                if cost[node] <= most and self._is_left[node] and node != but
            ]
            if any(of[node] == above for node in nodes):
                continue
            following = next(
                ((above, of[node]) for node in nodes if (above, of[node]) in self._pairs), None
            )
            if following is None:
                return None
            pairs.append(following)
        return pairs

    def _is_supported(self, pair: Pair, but: int) -> bool:
        """Whether a pair and all that it rests on hold with the nodes that are left."""
        seen, waiting = {pair}, [pair]
        while waiting:
            asked = self._requirements(waiting.pop(), but)
            if asked is None or len(seen) > _SUPPORT:
                return False
            waiting += set(asked) - seen
            seen.update(asked)
        return True

    def _is_derivable(self, needed: int, node: int, other: int) -> bool:
        """Whether a class is derived for no more than a node from classes that the node needs."""
        most = self._problem.cost[node]
        return any(
            self._problem.cost[each] <= most
            and all(needed >> name & 1 for name in self._below[each])
            for each in self._left(other)
        )

    def _leave_out(self, node: int) -> None:
        """Leave out a node, and nodes above classes that have none then."""
        waiting = [node]
        while waiting:
            node = waiting.pop()
            self._is_left[node] = False
            name = self._problem.node_class[node]
            if not self._left(name):
                waiting += [user for user in self._users.get(name, ()) if self._is_left[user]]
