"""Parts of a problem that can be solved one by one.

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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tensorwright.rewriting.extraction import ExtractionProblem, cyclic_parts


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
