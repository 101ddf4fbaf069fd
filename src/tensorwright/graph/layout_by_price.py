"""Compare several choices of layouts by the predicted times of their workloads.

Each choice for a whole graph is a proposal.  The tensors whose layouts it changes are divided into
sets: tensors of one kernel are in one set.  For each set, the kernels that read or write it are
priced with the present and with the proposed layouts.  A kernel here is a group of the grouping
criteria; the partition changes groups by price later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tensorwright.base import dump
from tensorwright.graph import partition
from tensorwright.graph.graph import PLAIN, Graph, Layout, format_name
from tensorwright.graph.infer import operator_of
from tensorwright.graph.physical import memory_order
from tensorwright.graph.workload import Workload, build_workload
from tensorwright.ops import sizes_of

MOST_PRICES = 128
"""So many workloads of a graph are priced at most; after these, the present layouts stay."""

Layouts = Mapping[str, Layout]


def decide_layouts(
    graph: Graph, layouts: Layouts, proposals: Sequence[Layouts], price: partition.Price
) -> dict[str, Layout]:
    """The layouts, with those of the proposals that are faster by a margin; plain ones left out."""
    current = dict(layouts)
    kernels = _Kernels(graph, layouts)
    decide = partition.Decisions(price, MOST_PRICES, stops_early=False)
    lost: set[tuple[tuple[str, Layout], ...]] = set()
    for proposal in proposals:
        for names in kernels.questions(current, proposal):
            kept, other = (
                tuple((name, each.get(name, PLAIN)) for name in names)
                for each in (current, proposal)
            )
            if other in lost:
                continue
            trial = {**current, **dict(other)}
            decision = decide(
                f"{format_name(names[0])} and {len(names) - 1} more",
                partition.Alternative(str(kept[0][1]), kernels.around(names, current)),
                partition.Alternative(str(other[0][1]), kernels.around(names, trial)),
            )
            if decision is None:
                continue
            lost.add(kept if decision.is_changed else other)
            if decision.is_changed:
                current = trial
    dump("layouts", "decisions", lambda: decide.describe("layouts"))
    return {name: layout for name, layout in current.items() if not layout.is_plain}


class _Kernels:
    """The kernels of a graph and their tensors; used inside one function."""

    def __init__(self, graph: Graph, layouts: Layouts) -> None:
        self.graph = graph
        placed = replace(graph, layouts=MappingProxyType(dict(layouts)))
        alone = [concat.node for concat in partition.elide_concats(placed)]
        self.groups = partition.group_nodes(placed, alone, partition.Limits())
        self.names = [
            tuple(dict.fromkeys(x for node in nodes for x in (*node.inputs, *node.outputs)))
            for nodes in self.groups
        ]
        self.touching: dict[str, list[int]] = {}
        for at, names in enumerate(self.names):
            for name in names:
                self.touching.setdefault(name, []).append(at)

    def questions(self, current: Layouts, proposal: Layouts) -> tuple[tuple[str, ...], ...]:
        """The tensors whose layouts differ, in sets; tensors of one group are in one set."""

        def order(name: str, layouts: Layouts) -> object:
            shape = sizes_of(self.graph.types[name])
            return memory_order(shape, layouts.get(name, PLAIN))

        different = [n for n in self.touching if order(n, current) != order(n, proposal)]
        return merged_sets(different, self.names)

    def around(self, names: Sequence[str], layouts: Layouts) -> Iterator[Workload]:
        """The workloads of the kernels that read or write some tensors."""
        graph = replace(self.graph, layouts=MappingProxyType(dict(layouts)))
        for at in sorted({at for name in names for at in self.touching[name]}):
            nodes = self.groups[at]
            is_opaque = operator_of(nodes[-1]).meaning is None
            if not is_opaque and (len(nodes) > 1 or not partition.moves_nothing(graph, nodes[0])):
                yield build_workload(graph, nodes).workload


def merged_sets(
    names: Iterable[str], together: Iterable[Iterable[str]]
) -> tuple[tuple[str, ...], ...]:
    """Names in disjoint sets, in order; those that are listed together are in one set."""
    parent = {name: name for name in names}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for listed in together:
        roots = [root(name) for name in listed if name in parent]
        parent.update(dict.fromkeys(roots[1:], roots[0]) if roots else {})
    sets: dict[str, list[str]] = {}
    for name in parent:
        sets.setdefault(root(name), []).append(name)
    return tuple(map(tuple, sets.values()))
