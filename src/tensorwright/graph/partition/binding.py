"""Partitions with numbers for named sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tensorwright.graph.graph import Node
from tensorwright.graph.nested import LoopForm
from tensorwright.graph.partition.steps import KernelCall, LoopCall, Partition, Step
from tensorwright.graph.sizes import bind_node, bind_sizes, bind_types
from tensorwright.graph.workload import Workload, bind_workload


def bind_partition(parts: Partition, values: Mapping[str, int]) -> Partition:
    """The same steps with numbers for some named sizes; the other named sizes stay.

    Raises:  what `bind_sizes` raises.
    """
    graph = bind_sizes(parts.graph, values)
    workloads: dict[str, Workload] = {}

    def numbered(node: Node) -> Node:
        return bind_node(node, values)

    def bound(step: Step) -> Step:
        if isinstance(step, LoopCall):
            node = numbered(step.node)
            return replace(step, node=node, counted=LoopForm.of(node).counted)
        if not isinstance(step, KernelCall):
            return replace(step, node=numbered(step.node))
        workload = workloads.get(step.workload.key)
        if workload is None:
            workload = workloads[step.workload.key] = bind_workload(step.workload, values)
        return replace(step, workload=workload, nodes=tuple(map(numbered, step.nodes)))

    inside = replace(parts.inside, types=bind_types(parts.inside.types, values))
    return Partition(graph, tuple(map(bound, parts.steps)), inside)


def bound_workloads(parts: Partition, bound: Partition) -> dict[str, Workload]:
    """Each workload with numbers for its sizes, by its key.

    bound   the same steps with numbers for the sizes
    """
    pairs = zip(parts.steps, bound.steps, strict=True)
    return {
        one.workload.key: other.workload
        for one, other in pairs
        if isinstance(one, KernelCall) and isinstance(other, KernelCall)
    }
