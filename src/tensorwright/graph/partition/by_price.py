"""Change the groups of the grouping criteria if other groups are predicted to be faster.

Each open question (`proposals.py`) is decided by itself: the time of one kernel is compared with
the time of two.  First groups are cut, then groups are joined, in the order of the network.  The
group of the criteria stays unless the alternative is faster by a margin.  Attention becomes one
kernel without a margin: its weights then stay in a cache, and prices do not count what other work
gains by that.  No workload is priced twice.  If the first of two kernels alone is too slow, the
second is not priced.  Questions about workloads that are equal with sizes of their own
(`own_sizes.py`) have one answer.

Decisions by predicted time: a proposal is taken if it is faster by a margin.

The time of a workload with named sizes is its time for typical sizes.  If the proposal's gain is
close to the margin, the times for sizes half-way between the bounds count, too.

decide = Decisions(price)
decide("attention", Alternative("two kernels", (a, b)), Alternative("one kernel", (ab,)))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tensorwright.base import dump
from tensorwright.graph.graph import Graph
from tensorwright.graph.own_sizes import with_own_sizes
from tensorwright.graph.partition.grouping import Kind, Limits, is_within
from tensorwright.graph.partition.proposals import ATTENTION, Nodes, kind_of, open_cuts, open_join
from tensorwright.graph.partition.views import view_offsets
from tensorwright.graph.size_points import halfway
from tensorwright.graph.sizes import representative
from tensorwright.graph.workload import Workload, bind_workload, build_workload, workload_name

Price: TypeAlias = Callable[[Workload], float | None]
"""Seconds that an untuned workload takes as a step of a network, with its call and the wait for its
threads.  None if no prediction is possible.

Equal workloads have equal prices in any order of questions, so that every process cuts a network in
the same way.
"""

LEAST_GAIN = 1.2  # predictions are not measurements
_NEAR = 1.1  # within this factor of the limit, alternatives are compared at other sizes, too


@dataclass(frozen=True, slots=True)
class Alternative:
    """A choice with its name and its workloads, which are built when a price is asked for."""

    name: str
    workloads: Iterable[Workload]


@dataclass(frozen=True, slots=True)
class Decision:
    """The comparison of the present choice with a proposal.

    kept_seconds    of the present choice; both times are for typical sizes
    other_seconds   of the proposal; if its first workloads alone are too slow, of these only
    """

    question: str
    kept: str
    other: str
    kept_seconds: float
    other_seconds: float
    is_changed: bool

    @property
    def chosen(self) -> str:
        """The name of the alternative that was taken."""
        return self.other if self.is_changed else self.kept

    def __str__(self) -> str:
        kept, other = (f"{1e6 * x:.1f} us" for x in (self.kept_seconds, self.other_seconds))
        return f"{self.question}: {self.kept} {kept}, {self.other} {other}: {self.chosen}"


class Decisions:
    """The decisions about one graph, in order; mutable, used inside one function.

    most         how many workloads are priced at most; after these, present choices stay
    stops_early  whether the pricing of a proposal ends when it is too slow
    """

    def __init__(self, price: Price, most: float = math.inf, *, stops_early: bool = True) -> None:
        self.made: list[Decision] = []
        self._price = price
        self._most = most
        self._stops_early = stops_early
        self._seconds: dict[tuple[str | int, ...], float | None] = {}

    def __call__(
        self, question: str, kept: Alternative, other: Alternative, least_gain: float = LEAST_GAIN
    ) -> Decision | None:
        """Take the proposal if it is faster by the margin; None if a workload has no price."""
        kept_workloads, other_workloads = list(kept.workloads), list[Workload]()
        kept_s = self._total(kept_workloads, math.inf)
        if kept_s is None:
            return None
        limit = kept_s / least_gain
        sizes = {size.name: size for each in kept_workloads for size in each.sizes}
        near = _NEAR * limit if sizes else limit
        stop = near if self._stops_early else math.inf
        other_s = self._total(other.workloads, stop, other_workloads)
        if other_s is None:
            return None
        is_changed = other_s < limit
        if sizes and limit / _NEAR < other_s < near:
            at, both = halfway(sizes.values()), (kept_workloads, other_workloads)
            kept_half, other_half = (self._total(each, math.inf, at=at) for each in both)
            if kept_half and other_half:
                is_changed = other_s * other_half < limit * kept_half / least_gain
        names = question, kept.name, other.name
        self.made.append(Decision(*names, kept_s, other_s, is_changed))
        return self.made[-1]

    def _total(
        self,
        workloads: Iterable[Workload],
        limit: float,
        priced: list[Workload] | None = None,
        at: Mapping[str, int] | None = None,
    ) -> float | None:
        """Seconds of all workloads, or of the first ones that reach a limit together.

        priced   gets the workloads whose prices were asked for
        at       numbers for sizes; typical ones if None
        """
        total = 0.0
        for workload in workloads:
            if priced is not None:
                priced.append(workload)
            seconds = self._seconds_of(workload, at)
            if seconds is None:
                return None
            total += seconds
            if total >= limit:
                break
        return total

    def _seconds_of(self, workload: Workload, at: Mapping[str, int] | None) -> float | None:
        numbers = representative(workload.sizes)
        if at is not None:
            numbers = {name: at.get(name, number) for name, number in numbers.items()}
        asked: tuple[str | int, ...] = (workload.key, *numbers.values())
        if asked not in self._seconds:
            if len(self._seconds) >= self._most:
                return None
            self._seconds[asked] = self._price(bind_workload(workload, numbers))
        return self._seconds[asked]

    def describe(self, subject: str) -> str:
        """One line for each decision; equal decisions have one line."""
        lines = dict.fromkeys(self.made)
        changes = sum(each.is_changed for each in lines)
        head = f"{len(lines)} open questions about {subject}, {changes} changes"
        return "\n".join((head, *(f"  {each}" for each in lines)))


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
        self.answers: dict[tuple[object, ...], Decision | None] = {}

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
        one = Alternative(_ONE, tuple(self._workloads(both)))
        two = Alternative(_TWO, tuple(self._workloads(*expensive_first)))
        kept, other = (one, two) if is_fused else (two, one)
        least_gain = 1.0 if reason == ATTENTION else LEAST_GAIN
        question = f"{reason}: {' | '.join(names)}"
        built = (with_own_sizes(each).workload.key for each in (*kept.workloads, *other.workloads))
        alike = (question, is_fused, *built)
        if alike not in self.answers:
            self.answers[alike] = self.decide(question, kept, other, least_gain)
        decision = self.answers[alike]
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
