"""An e-graph: classes of equal terms.

    a, b = add(?a), add(?b);  union(a, b, 7)       one class {?a, ?b}
    relu(?a), relu(?b)                             one class: their arguments are equal (congruence)
    explain(relu(?a), relu(?b))                    one link without a reason; below it one with 7

A node is an operator with its parameters (the head) over other nodes.  Classes of equal nodes are
kept by union-find, closed under congruence, and have data (`analysis.py`).  Of congruent nodes one
is alive: a matcher does not need the others.  With proofs, every union keeps its reason in a
forest, so that two equal nodes can be explained as a chain of rewrites (`saturation.py`); without
them, a node that is congruent to another is that one.

Source:  Nieuwenhuis and Oliveras, Proof-producing congruence closure, RTA 2005;
         Willsey et al., egg, POPL 2021.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, NewType, TypeAlias

from tensorwright.expr import IndexExpr
from tensorwright.rewriting.egraph.analysis import INPUT, Analysis, Data
from tensorwright.rewriting.terms import Apply, Input, Param, Term

Id = NewType("Id", int)
Head = NewType("Head", int)
"""An operator with its parameters, as a number."""
Key: TypeAlias = tuple[int, ...]
"""A head and the nodes below it, or the numbers of their data."""

_CONGRUENCE = -1
_NO_TERM = -1


@dataclass(frozen=True, slots=True)
class Link:
    """A step of a proof: two nodes are equal by a reason, or (None) because their children are."""

    left: Id
    right: Id
    reason: int | None


class EGraph(Generic[Data]):
    """Nodes, their classes, data and proofs.  Deterministic: ids count upwards.

    clock    a number of the caller's: new nodes and changes of classes are stamped with it
    version  counts nodes and unions: while it stays, so does the graph
    commutative   operators whose operands a matcher takes in either order: none, rules swap them
    """

    commutative: frozenset[str] = frozenset()

    def __init__(self, analysis: Analysis[Data], *, with_proofs: bool = True) -> None:
        self.analysis = analysis
        self.with_proofs = with_proofs
        self.clock = 0
        self.version = 0
        self._heads: dict[tuple[str, tuple[Param, ...]], Head] = {}
        self._head_parts: list[tuple[str, tuple[Param, ...]]] = []
        self._head: list[Head] = []
        self._children: list[tuple[Id, ...]] = []
        self._born: list[int] = []
        self._written: dict[Key, Id] = {}
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
        self._data: list[Data] = []
        self._data_numbers: dict[Data, int] = {}
        self._data_of: dict[Id, int] = {}
        self._made: dict[Key, int] = {}
        self._outdated: list[Id] = []

    def __len__(self) -> int:
        return len(self._head)

    def head(self, operator: str, params: tuple[Param, ...]) -> Head:
        """The number of an operator with parameters."""
        parts = (operator, params)
        number = self._heads.get(parts)
        if number is None:
            number = self._heads[parts] = Head(len(self._head_parts))
            self._head_parts.append(parts)
        return number

    def parts(self, head: Head) -> tuple[str, tuple[Param, ...]]:
        """The operator and the parameters that a head is."""
        return self._head_parts[head]

    def term(self, name: Id) -> Term:
        """The term that a node was written as."""
        operator, params = self._head_parts[self._head[name]]
        if operator == INPUT:
            return Input(str(params[0]))
        return Apply(operator, params, tuple(map(self.term, self._children[name])))

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

    def data(self, name: Id) -> Data:
        """The data of a node's class."""
        return self._data[self.data_number(name)]

    def data_number(self, name: Id) -> int:
        """A number that classes with equal data share."""
        return self._data_of[self.find(name)]

    def data_at(self, number: int) -> Data:
        """The data of this number."""
        return self._data[number]

    def made(self, head: Head, args: tuple[int, ...]) -> int | None:
        """The number of the data of an application, by those of its arguments; None for no term."""
        key = (head, *args)
        number = self._made.get(key)
        if number is None:
            parts = self._head_parts[head]
            data = self.analysis.make(*parts, tuple(map(self.data_at, args)))
            number = self._made[key] = _NO_TERM if data is None else self._numbered(data)
        return None if number == _NO_TERM else number

    def _numbered(self, data: Data) -> int:
        number = self._data_numbers.setdefault(data, len(self._data))
        if number == len(self._data):
            self._data.append(data)
        return number

    def add(self, term: Term) -> Id | None:
        """The node of a term, its sizes in normal form; None where it may be ill-typed."""
        if isinstance(term, Input):
            return self.put(self.head(INPUT, (term.name,)), ())
        children: list[Id] = []
        for arg in term.args:
            child = self.add(arg)
            if child is None:
                return None
            children.append(child)
        params: list[Param] = []
        for param in term.params:
            size: Param | None = param
            if isinstance(param, int | IndexExpr):
                size = self.analysis.size(param, None)
            if size is None:
                return None
            params.append(size)
        return self.put(self.head(term.operator, tuple(params)), tuple(children))

    def put(self, head: Head, children: tuple[Id, ...]) -> Id | None:
        """The node that is written exactly so; a new one joins the class of its congruent nodes.

        None where the analysis refuses the term.
        """
        written = (head, *children)
        existing = self._written.get(written)
        if existing is not None:
            return existing
        leaders = tuple(map(self.find, children))
        key = (head, *leaders)
        twin = self._canonical.get(key)
        if twin is not None and not self.with_proofs:
            return twin
        data = self.made(head, tuple(self._data_of[leader] for leader in leaders))
        if data is None:
            return None
        self.version += 1
        name = Id(len(self._head))
        self._head.append(head)
        self._children.append(children)
        self._born.append(self.clock)
        if self.with_proofs:
            self._written[written] = name
        self._key.append(key)
        self._is_alive.append(twin is None)
        self._leader.append(name)
        self._members[name] = {}
        self._changed[name] = self.clock
        self._parents[name] = []
        self._proof.append(None)
        self._data_of[name] = data
        if twin is not None:
            self._waiting.append((name, twin, _CONGRUENCE))
            self._close()
            return name
        self._canonical[key] = name
        operator = self._head_parts[head][0]
        self._members[name][operator] = [name]
        self._by_operator.setdefault(operator, []).append(name)
        for child in dict.fromkeys(leaders):
            self._parents[child].append(name)
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

    def nodes(self) -> Iterator[Id]:
        """All nodes, one of each set of congruent ones, the oldest first."""
        return (Id(name) for name, is_alive in enumerate(self._is_alive) if is_alive)

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
        """The chain of links from one node to an equal one; needs proofs."""
        above: dict[Id, int] = {}
        up = [left]
        while True:
            above[up[-1]] = len(up) - 1
            step = self._proof[up[-1]]
            if step is None:
                break
            up.append(step[0])
        down: list[Link] = []
        meeting = right
        while meeting not in above:
            step = self._proof[meeting]
            if step is None:
                raise ValueError(f"nodes {left} and {right} are not known to be equal")
            down.append(_link(step[0], meeting, step[1]))
            meeting = step[0]
        links: list[Link] = []
        for name in up[: above[meeting]]:
            step = self._proof[name]
            if step is not None:
                links.append(_link(name, step[0], step[1]))
        return (*links, *reversed(down))

    def _close(self) -> None:
        """Carry out the waiting unions and their consequences by congruence."""
        while self._waiting:
            left, right, reason = self._waiting.pop()
            kept, lost = self.find(left), self.find(right)
            if kept == lost:
                continue
            if self.with_proofs:
                self._hang(left, right, reason)
            if (len(self._parents[kept]), -kept) < (len(self._parents[lost]), -lost):
                kept, lost = lost, kept
            self._merge(kept, lost)
        while self._outdated:
            self._renew(self._outdated.pop())

    def _merge(self, kept: Id, lost: Id) -> None:
        """Move the members and the parents of one class to another."""
        self.version += 1
        self._merge_data(kept, lost)
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

    def _merge_data(self, kept: Id, lost: Id) -> None:
        """Give one class the data of both; parents of a class whose data change are outdated."""
        own, other = self._data_of[kept], self._data_of.pop(lost)
        if own == other:
            return
        merged = self._numbered(self.analysis.merge(self._data[own], self._data[other]))
        self._data_of[kept] = merged
        if merged != own:
            self._outdated += self._parents[kept]
        if merged != other:
            self._outdated += self._parents[lost]

    def _renew(self, name: Id) -> None:
        """Make a node's data again from those of its children, and merge them into its class."""
        leader = self.find(name)
        made = self.made(self._head[name], tuple(map(self.data_number, self._children[name])))
        own = self._data_of[leader]
        if made is None or made == own:
            return
        merged = self._numbered(self.analysis.merge(self._data[own], self._data[made]))
        if merged != own:
            self._data_of[leader] = merged
            self._outdated += self._parents[leader]

    def _hang(self, left: Id, right: Id, reason: int) -> None:
        """Hang the tree of proofs of `left` under `right`."""
        name: Id | None = left
        step: tuple[Id, int] | None = (right, reason)
        while name is not None:
            old = self._proof[name]
            self._proof[name] = step
            if old is None:
                return
            step = (name, old[1])
            name = old[0]


def _link(left: Id, right: Id, reason: int) -> Link:
    return Link(left, right, None if reason == _CONGRUENCE else reason)
