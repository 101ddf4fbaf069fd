"""Layouts where costs leave doubts: choices compared by the predicted times of their workloads.

Each choice for a whole graph is a proposal.  Where it differs from the layouts in force, tensors
that meet in a kernel are one question: the kernels around them under the one and under the other.
A kernel is a group of the rules; what the partition makes of groups by price comes later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tensorwright.graph.graph import PLAIN, Graph, Layout, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.partition import (
    LEAST_GAIN,
    Limits,
    Pricing,
    StepPrices,
    elide_concats,
    group_nodes,
    moves_nothing,
)
from tensorwright.graph.physical import memory_order
from tensorwright.graph.printing import format_name
from tensorwright.graph.workload import build_workload

MOST_PRICES = 128
"""So many workloads are priced for the layouts of a graph, then what is in force stays."""

Layouts = Mapping[str, Layout]


@dataclass(frozen=True, slots=True)
class LayoutDecision:
    """Tensors whose layouts were in question together.

    first            one of them, with its layouts in force and proposed
    count            how many they are
    kept_seconds     of the kernels around them as they are     other_seconds   as proposed
    """

    first: str
    kept: Layout
    other: Layout
    count: int
    kept_seconds: float
    other_seconds: float
    is_kept: bool

    def __str__(self) -> str:
        kept, other = (f"{1e6 * x:.1f} us" for x in (self.kept_seconds, self.other_seconds))
        tensors = f"{format_name(self.first)} and {self.count - 1} more"
        verdict = self.kept if self.is_kept else self.other
        return f"{tensors}: {self.kept} {kept}, {self.other} {other}: {verdict}"


@dataclass(frozen=True, slots=True)
class Settled:
    """Layouts of tensors that are not plain, and what was decided on the way."""

    layouts: dict[str, Layout]
    decisions: tuple[LayoutDecision, ...]

    def __str__(self) -> str:
        changed = sum(not each.is_kept for each in self.decisions)
        head = f"{len(self.decisions)} doubts about layouts, {changed} changes"
        return "\n".join((head, *(f"  {each}" for each in self.decisions)))


def settle_layouts(
    graph: Graph, layouts: Layouts, proposals: Sequence[Layouts], pricing: Pricing
) -> Settled:
    """The layouts, changed to those of proposals where these are faster by a margin."""
    current = dict(layouts)
    prices = _Prices(graph, layouts, pricing)
    decisions: list[LayoutDecision] = []
    lost: set[tuple[tuple[str, Layout], ...]] = set()
    for proposal in proposals:
        for names in prices.questions(current, proposal):
            kept, other = (
                tuple((name, each.get(name, PLAIN)) for name in names)
                for each in (current, proposal)
            )
            decision = prices.compare(names, current, proposal) if other not in lost else None
            if decision is None:
                continue
            decisions.append(decision)
            lost.add(other if decision.is_kept else kept)
            if not decision.is_kept:
                current = _changed(current, proposal, names)
    plain = {name: layout for name, layout in current.items() if not layout.is_plain}
    return Settled(plain, tuple(decisions))


def _changed(current: Layouts, proposal: Layouts, names: Sequence[str]) -> dict[str, Layout]:
    return {**current, **{name: proposal.get(name, PLAIN) for name in names}}


class _Prices:
    """The kernels of a graph and their prices; used inside one function."""

    def __init__(self, graph: Graph, layouts: Layouts, pricing: Pricing) -> None:
        self.graph = graph
        self.prices = StepPrices(pricing, MOST_PRICES)
        placed = replace(graph, layouts=MappingProxyType(dict(layouts)))
        alone = [concat.node for concat in elide_concats(placed)]
        self.groups = group_nodes(placed, alone, Limits())
        self.touching: dict[str, list[int]] = {}
        for at, nodes in enumerate(self.groups):
            for name in dict.fromkeys(x for node in nodes for x in (*node.inputs, *node.outputs)):
                self.touching.setdefault(name, []).append(at)

    def questions(self, current: Layouts, proposal: Layouts) -> tuple[tuple[str, ...], ...]:
        """Sets of tensors that differ: those of one group are in one set."""
        different = [name for name in self.touching if self._differs(name, current, proposal)]
        root = {at: at for at in range(len(self.groups))}
        for name in different:
            for at in self.touching[name]:
                old, new = root[at], root[self.touching[name][0]]
                root = {key: new if each == old else each for key, each in root.items()}
        sets: dict[int, list[str]] = {}
        for name in different:
            sets.setdefault(root[self.touching[name][0]], []).append(name)
        return tuple(tuple(names) for names in sets.values())

    def _differs(self, name: str, current: Layouts, proposal: Layouts) -> bool:
        shape = self.graph.types[name].extents
        first, second = (memory_order(shape, each.get(name, PLAIN)) for each in (current, proposal))
        return first != second

    def compare(
        self, names: tuple[str, ...], current: Layouts, proposal: Layouts
    ) -> LayoutDecision | None:
        """The kernels around some tensors under both; None where one has no price."""
        around = sorted({at for name in names for at in self.touching[name]})
        trial = _changed(current, proposal, names)
        kept = self._total(around, current)
        other = self._total(around, trial) if kept is not None else None
        if kept is None or other is None:
            return None
        first = names[0]
        layouts = current.get(first, PLAIN), trial.get(first, PLAIN)
        is_kept = kept <= other * LEAST_GAIN
        return LayoutDecision(first, *layouts, len(names), kept, other, is_kept)

    def _total(self, around: Sequence[int], layouts: Layouts) -> float | None:
        graph = replace(self.graph, layouts=MappingProxyType(dict(layouts)))
        total = 0.0
        for at in around:
            price = self._price(graph, self.groups[at])
            if price is None:
                return None
            total += price
        return total

    def _price(self, graph: Graph, nodes: tuple[Node, ...]) -> float | None:
        is_opaque = operator_of(nodes[-1]).meaning is None
        if is_opaque or (len(nodes) == 1 and moves_nothing(graph, nodes[0])):
            return 0.0
        return self.prices.seconds_of(build_workload(graph, nodes).workload)
