"""Derivation cuts: inequalities that all selections satisfy and a fractional solution violates.

For every set L of classes, and each class c of it, a selection satisfies

    taken nodes of c  <=  taken nodes of classes of L that need no class of L

for of the classes of L that it contains, the first to be computed needs none of the others.  Where
L is a loop this is its loop formula (Lin and Zhao, ASSAT, Artificial Intelligence 157, 2004); other
sets forbid that half of a class serves two nodes that are half taken, and so all of a third class:
they are what directed cuts are to Steiner trees (Wong, Mathematical Programming 28, 1984).

To find the set that is violated most is hard as nodes need several classes.  Where each is taken to
need only that class below it which is derived the least, the set is a minimum cut, found by
maximum flow; that set is violated at least as much with all classes below.  If one class
lacks something, all classes that need it lack it, and that would hide violations there: so sets
are looked for in each loop with all else given, then with the roots given, then with nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from tensorwright.rewriting.extraction import ExtractionProblem, strong_parts

_UNIT = 1_000_000  # of flow
_CREEP = 100  # of each node: of cuts that are violated as much, that of the fewest nodes
_LEAST = 1e-3  # the least violation of a cut
_SWEEPS = 20
_MOST = 60  # cuts at a time: each flow takes time, and a few cuts change the solution

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cut:
    """Taken nodes of a class are no more than those by which a set that it is in is derived."""

    name: int
    derived_by: frozenset[int]


def cut_of(problem: ExtractionProblem, name: int, names: frozenset[int]) -> Cut:
    """The cut of a set, and a class of it."""
    return Cut(
        name,
        frozenset(
            node
            for each in names
            for node in problem.members[each]
            if names.isdisjoint(problem.children[node])
        ),
    )


def violated_cuts(
    problem: ExtractionProblem, below: Sequence[Sequence[int]], taken: Vector
) -> list[Cut]:
    """Some cuts that a solution violates, at most two for each class and each kind of network.

    below   the classes below each node, each once
    taken   how much of each node, from 0 to 1
    """
    amount = [sum(float(taken[node]) for node in nodes) for nodes in problem.members]
    cuts: dict[Cut, None] = {}
    for asked in (_in_loops(problem, below, taken), _but_roots(problem, below), below):
        _separate(problem, asked, taken, amount, cuts)
    return list(cuts)


def _in_loops(
    problem: ExtractionProblem, below: Sequence[Sequence[int]], taken: Vector
) -> list[list[int]]:
    """The classes below each node that are in a loop with it by nodes that are taken: what is
    missing there is not looked for where it comes from.
    """
    edges = [
        (problem.node_class[node], each)
        for node, names in enumerate(below)
        for each in names
        if taken[node] > _LEAST
    ]
    part = strong_parts(len(problem.members), edges)
    return [
        [each for each in names if part[each] == part[problem.node_class[node]]]
        for node, names in enumerate(below)
    ]


def _but_roots(problem: ExtractionProblem, below: Sequence[Sequence[int]]) -> list[list[int]]:
    """The classes below each node that need not be there: the cuts of roots are their own."""
    roots = frozenset(problem.roots)
    return [[each for each in names if each not in roots] for names in below]


def _separate(
    problem: ExtractionProblem,
    below: Sequence[Sequence[int]],
    taken: Vector,
    amount: Sequence[float],
    cuts: dict[Cut, None],
) -> None:
    """Find cuts, first of classes of which the least is derived.

    below   classes below each node; others are taken to be there
    """
    most = len(cuts) + _MOST
    used = [
        name
        for name, nodes in enumerate(problem.members)
        if amount[name] > _LEAST and any(below[node] for node in nodes)
    ]
    derived = _derived(problem, below, taken, amount)
    network = _network(problem, below, taken, derived)
    source = len(problem.members)
    for name in sorted(used, key=lambda each: derived[each] - amount[each]):
        if len(cuts) >= most:
            break
        flow = maximum_flow(network, source, name)
        if flow.flow_value >= (amount[name] - _LEAST) * _UNIT:
            continue
        rest = network - flow.flow
        rest.data = np.maximum(rest.data, 0)
        rest.eliminate_zeros()
        for names in (_into(rest, name), _not_from(rest, source, problem, below, name)):
            cut = cut_of(problem, name, names)
            if sum(float(taken[node]) for node in cut.derived_by) < amount[name] - _LEAST:
                cuts[cut] = None


def _network(
    problem: ExtractionProblem,
    below: Sequence[Sequence[int]],
    taken: Vector,
    derived: Sequence[float],
) -> csr_array:
    """Flow from the source through one class below each node to its class."""
    source = len(problem.members)
    starts = [min(each, key=derived.__getitem__) if each else source for each in below]
    capacity = np.rint(taken * _UNIT).astype(np.int32) + _CREEP
    network = csr_array(
        (capacity, (np.array(starts), np.array(problem.node_class))),
        shape=(source + 1, source + 1),
        dtype=np.int32,
    )
    network.sum_duplicates()
    return network


def _derived(
    problem: ExtractionProblem,
    below: Sequence[Sequence[int]],
    taken: Vector,
    amount: Sequence[float],
) -> list[float]:
    """How much of each class is derived if a node is derived as much as all classes below it."""
    nodes = [node for node in range(len(below)) if taken[node] > 0]
    derived = [0.0] * len(amount)
    for _ in range(_SWEEPS):
        more = [0.0] * len(amount)
        for node in nodes:
            most = float(taken[node])
            for each in below[node]:
                most = min(most, derived[each])
            more[problem.node_class[node]] += most
        derived = [min(own, whole) for own, whole in zip(more, amount, strict=True)]
    return derived


def _into(rest: csr_array, name: int) -> frozenset[int]:
    """The vertices from which more could flow to one: the smallest cut."""
    return frozenset(_reached(rest.T.tocsr(), name))


def _not_from(
    rest: csr_array,
    source: int,
    problem: ExtractionProblem,
    below: Sequence[Sequence[int]],
    name: int,
) -> frozenset[int]:
    """The vertices that no more can flow to, as far as a class may need them: the largest cut."""
    reached = set(_reached(rest, source))
    unreached = {name}
    waiting = [name]
    while waiting:
        for node in problem.members[waiting.pop()]:
            for each in below[node]:
                if each not in unreached and each not in reached:
                    unreached.add(each)
                    waiting.append(each)
    return frozenset(unreached)


def _reached(graph: csr_array, start: int) -> list[int]:
    nodes = breadth_first_order(graph, start, directed=True, return_predecessors=False)
    return [int(each) for each in nodes]
