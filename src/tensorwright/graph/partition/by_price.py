"""Change the groups of the grouping criteria if other groups are predicted to be faster.

Each open question (`proposals.py`) is decided by itself: the time of one kernel is compared with
the time of two.  First groups are cut, then groups are joined, in the order of the network.  The
group of the criteria stays unless the alternative is faster by a margin.  Attention becomes one
kernel without a margin: its weights then stay in a cache, and prices do not count what other work
gains by that.  No workload is priced twice.  If the first of two kernels alone is too slow, the
second is not priced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorwright.base import dump
from tensorwright.graph.graph import Graph
from tensorwright.graph.partition.grouping import Kind, Limits, is_within
from tensorwright.graph.partition.pricing import (
    LEAST_GAIN,
    Alternative,
    Decision,
    Decisions,
    Price,
)
from tensorwright.graph.partition.proposals import (
    ATTENTION,
    Nodes,
    kind_of,
    open_cuts,
    open_join,
)
from tensorwright.graph.partition.views import view_offsets
from tensorwright.graph.workload import Workload, build_workload, workload_name

_ONE, _TWO = "one kernel", "two kernels"


def regroup(
    graph: Graph, groups: Sequence[Nodes], alone: frozenset[str], limits: Limits, price: Price
) -> tuple[Nodes, ...]:
    """Cut and join groups by predicted time; the results are in an order in which they can run.

    alone   the first outputs of nodes that are in no group with other nodes
    """
    regrouping = _Regrouping(graph, alone, limits, price)
    pieces = [piece for nodes in groups for piece in regrouping.cut(nodes)]
    position = {node.outputs[0]: at for at, node in enumerate(graph.nodes)}
    pieces.sort(key=lambda nodes: position[nodes[-1].outputs[0]])
    joined = regrouping.join(pieces, position)
    dump("partition", "decisions", lambda: regrouping.decide.describe("fusion"))
    return tuple(joined)


class _Regrouping:
    """Prices and decisions of one graph; used inside one function."""

    def __init__(self, graph: Graph, alone: frozenset[str], limits: Limits, price: Price) -> None:
        self.graph = graph
        self.alone = alone
        self.limits = limits
        self.decide = Decisions(price)
        self.decisions: dict[tuple[Nodes, Nodes], Decision] = {}

    def cut(self, nodes: Nodes) -> tuple[Nodes, ...]:
        """The group, or pieces of it that are expected to be faster."""
        best: tuple[Nodes, Nodes] | None = None
        least = float("inf")
        for cut in open_cuts(self.graph, nodes) if self._is_kernel(nodes) else ():
            decision = self._compare(cut.reason, cut.first, cut.second, nodes, is_fused=True)
            if decision is not None and decision.is_changed and decision.other_seconds < least:
                best, least = (cut.first, cut.second), decision.other_seconds
        if best is None:
            return (nodes,)
        return tuple(piece for part in best for piece in self.cut(part))

    def join(self, groups: Sequence[Nodes], position: dict[str, int]) -> list[Nodes]:
        """The groups in the same order; two that are expected to be faster as one are joined."""
        owner = {node.outputs[0]: at for at, nodes in enumerate(groups) for node in nodes}
        readers = self._readers(owner)
        current: list[Nodes | None] = list(groups)
        for at in range(len(current)):
            first = current[at]
            result = first[-1].outputs[0] if first else ""
            if len(readers.get(result, ())) != 1 or result in self.graph.outputs:
                continue
            (target,) = readers[result]
            second = current[target]
            if first is None or second is None:
                continue
            both = tuple(sorted((*first, *second), key=lambda node: position[node.outputs[0]]))
            if self._joins_group(first, second, both):
                current[at], current[target] = None, both
                for names in readers.values():
                    if at in names:
                        names.discard(at)
                        names.add(target)
        return [nodes for nodes in current if nodes is not None]

    def _readers(self, owner: dict[str, int]) -> dict[str, set[int]]:
        """For each tensor the groups that read it, without the group that computes it."""
        readers: dict[str, set[int]] = {}
        for node in self.graph.nodes:
            at = owner[node.outputs[0]]
            for name in node.inputs:
                if owner.get(name) != at:
                    readers.setdefault(name, set()).add(at)
        return readers

    def _joins_group(self, first: Nodes, second: Nodes, both: Nodes) -> bool:
        if not self._is_kernel(first) or not self._is_kernel(second):
            return False
        if len(first[-1].outputs) != 1 or not is_within(self.graph, both, self.limits):
            return False
        reason = open_join(self.graph, first, second)
        if not reason:
            return False
        decision = self._compare(reason, first, second, both, is_fused=False)
        return decision is not None and decision.chosen == _ONE

    def _compare(
        self, reason: str, first: Nodes, second: Nodes, both: Nodes, *, is_fused: bool
    ) -> Decision | None:
        """Decide between one kernel and two; None if one of the three has no price.

        is_fused   whether one kernel is the present choice
        """
        pair = (both, first)
        if pair in self.decisions:
            return self.decisions[pair]
        names = (workload_name(self.graph, nodes) for nodes in (first, second))
        expensive_first = sorted((first, second), key=lambda each: kind_of(each) is not Kind.ANCHOR)
        one = Alternative(_ONE, self._workloads(both))
        two = Alternative(_TWO, self._workloads(*expensive_first))
        kept, other = (one, two) if is_fused else (two, one)
        least_gain = 1.0 if reason == ATTENTION else LEAST_GAIN
        decision = self.decide(f"{reason}: {' | '.join(names)}", kept, other, least_gain)
        if decision is not None:
            self.decisions[pair] = decision
        return decision

    def _workloads(self, *pieces: Nodes) -> Iterator[Workload]:
        """The workloads of some groups; a view costs nothing."""
        for nodes in pieces:
            if len(nodes) > 1 or view_offsets(self.graph, nodes[0]) is None:
                yield build_workload(self.graph, nodes).workload

    def _is_kernel(self, nodes: Nodes) -> bool:
        return nodes[-1].outputs[0] not in self.alone
