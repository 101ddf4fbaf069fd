"""The common parts of two graphs, and the parts near a difference.

    before, after = compare_graphs(one, other)
    before.changed         numbers of the nodes that the other graph does not have
    before.shown           numbers of the nodes to show: all, or those around a change
    before.left_out        the others, in connected groups

Nodes are alike where they apply one operator with the same attributes to like tensors.  Inputs are
alike by name, constants by value. Results of two nodes of different kinds count as alike where they
have one name and type, because a rewriting keeps the names of tensors that it does not change.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.printing import digest

MOST_SHOWN = 60
"""The most nodes of a graph that is shown as a whole."""

_NEAR = 2  # nodes between a change and the last that is shown


@dataclass(frozen=True, slots=True, eq=False)
class Excerpt:
    """A graph, and the numbers of its nodes that changed, are shown and are left out."""

    graph: Graph
    changed: frozenset[int]
    shown: tuple[int, ...]
    left_out: tuple[tuple[int, ...], ...]


def compare_graphs(before: Graph, after: Graph, most: int = MOST_SHOWN) -> tuple[Excerpt, Excerpt]:
    """Excerpts of two graphs: all nodes if there are at most `most`, else those near a change."""
    values = _constants(before)
    numbers = {_key(node, values): number for number, node in enumerate(before.nodes)}
    alike = _constants(after)
    added: set[int] = set()
    kept: set[int] = set()
    for number, node in enumerate(after.nodes):
        twin = numbers.get(_key(node, alike))
        if twin is None:
            added.add(number)
            names = [
                name if before.types.get(name) == after.types[name] else ("new", name)
                for name in node.outputs
            ]
            alike.update(zip(node.outputs, names, strict=True))
        else:
            kept.add(twin)
            alike.update(zip(node.outputs, before.nodes[twin].outputs, strict=True))
    removed = set(range(len(before.nodes))) - kept
    return _excerpt(before, removed, most), _excerpt(after, added, most)


def _constants(graph: Graph) -> dict[str, Hashable]:
    """The key of each constant, which is of its value."""
    return {name: ("constant", digest(array)) for name, array in graph.constants.items()}


def _key(node: Node, alike: dict[str, Hashable]) -> Hashable:
    inputs = tuple(alike.get(name, name) for name in node.inputs)
    return node.operator, node.attributes, inputs, len(node.outputs)


def _excerpt(graph: Graph, changed: Iterable[int], most: int) -> Excerpt:
    marked = frozenset(changed)
    count = len(graph.nodes)
    if count <= most:
        return Excerpt(graph, marked, tuple(range(count)), ())
    beside = _neighbours(graph)
    shown = set(marked)
    for _ in range(_NEAR):
        shown |= {other for number in shown for other in beside[number]}
    return Excerpt(graph, marked, tuple(sorted(shown)), _groups(beside, shown))


def _neighbours(graph: Graph) -> list[set[int]]:
    """The numbers of the nodes that write an input of each node, or read an output of it."""
    beside: list[set[int]] = [set() for _ in graph.nodes]
    writers: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        for writer in {writers[name] for name in node.inputs if name in writers}:
            beside[number].add(writer)
            beside[writer].add(number)
        writers.update(dict.fromkeys(node.outputs, number))
    return beside


def _groups(beside: list[set[int]], shown: set[int]) -> tuple[tuple[int, ...], ...]:
    """Nodes that are not shown, in connected groups, ordered by their first nodes."""
    seen = set(shown)
    groups: list[tuple[int, ...]] = []
    for first in range(len(beside)):
        if first in seen:
            continue
        seen.add(first)
        group, stack = [first], [first]
        while stack:
            fresh = beside[stack.pop()] - seen
            seen |= fresh
            group += fresh
            stack += fresh
        groups.append(tuple(sorted(group)))
    return tuple(groups)
