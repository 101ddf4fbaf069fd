"""Cut a graph into steps: kernels, opaque calls, and statements about the memory of tensors."""

from __future__ import annotations

from collections.abc import Mapping

from tensorwright.base import dump, knobs
from tensorwright.graph.graph import Graph, Node
from tensorwright.graph.infer import operator_of
from tensorwright.graph.partition.by_price import regroup
from tensorwright.graph.partition.concat import elide_concats
from tensorwright.graph.partition.generated import generate_for_each_reader
from tensorwright.graph.partition.grouping import Limits, group_nodes
from tensorwright.graph.partition.nesting import Nesting
from tensorwright.graph.partition.pricing import Price
from tensorwright.graph.partition.proposals import Nodes
from tensorwright.graph.partition.steps import (
    AliasCall,
    ConcatInPlace,
    KernelCall,
    OpaqueCall,
    Partition,
    Step,
)
from tensorwright.graph.partition.verify import verify_partition
from tensorwright.graph.partition.views import view_offsets
from tensorwright.graph.workload import Workload, build_workload

DEFAULT_LIMITS = Limits()


def partition(
    graph: Graph, limits: Limits = DEFAULT_LIMITS, price: Price | None = None
) -> Partition:
    """The steps that compute a graph, under its layouts, in an order in which they can run.

    price   decides the open questions of the criteria; without it the criteria alone decide

    Equal workloads are one object. A node that nothing reads gets a step, too: remove dead code
    first. The knob `dump` shows the result, the knob `verify` checks it.
    """
    graph = generate_for_each_reader(graph)
    in_place = elide_concats(graph)
    by_output = {concat.output: concat for concat in in_place}
    workloads: dict[str, Workload] = {}
    steps: list[Step] = []
    groups = group_nodes(graph, (concat.node for concat in in_place), limits)
    if price is not None:
        groups = _by_price(graph, groups, by_output, limits, price)
    nesting = Nesting(graph, lambda nested: partition(nested, limits, price))
    for nodes in groups:
        if nodes[-1].graphs:
            steps.extend(nesting.steps(nodes[-1]))
        else:
            steps.extend(_steps_of(graph, nodes, by_output, workloads))
    parts = Partition(graph, tuple(steps), nesting.tensors)
    dump("partition", "", parts.describe)
    return verify_partition(parts) if knobs.VERIFY.get() else parts


def likely_workloads(graph: Graph) -> tuple[Workload, ...]:
    """The workloads that `partition` probably prices or returns, in the order in which it does."""
    asked: list[Workload] = []

    def price(workload: Workload) -> float:
        asked.append(workload)
        return 0.0  # equal prices change no group

    parts = partition(graph, price=price)
    return tuple({each.key: each for each in (*asked, *parts.workloads)}.values())


def _by_price(
    graph: Graph,
    groups: tuple[Nodes, ...],
    in_place: Mapping[str, ConcatInPlace],
    limits: Limits,
    price: Price,
) -> tuple[Nodes, ...]:
    """The groups after the decision of open questions; the knob `dump` shows the decisions."""
    alone = {node.outputs[0] for node in graph.nodes if view_offsets(graph, node) is not None}
    alone.update(node.outputs[0] for node in graph.nodes if operator_of(node).meaning is None)
    return regroup(graph, groups, frozenset(alone | in_place.keys()), limits, price)


def _steps_of(
    graph: Graph,
    nodes: tuple[Node, ...],
    in_place: dict[str, ConcatInPlace],
    workloads: dict[str, Workload],
) -> tuple[Step, ...]:
    node = nodes[-1]
    if len(nodes) == 1:
        if node.outputs[0] in in_place:
            return (in_place[node.outputs[0]],)
        offsets = view_offsets(graph, node)
        if offsets is not None:
            pairs = zip(node.outputs, offsets, strict=True)
            return tuple(AliasCall(name, node.inputs[0], offset, node) for name, offset in pairs)
        if operator_of(node).meaning is None:
            return (OpaqueCall(node),)
    bound = build_workload(graph, nodes)
    shared = workloads.setdefault(bound.workload.key, bound.workload)
    return (KernelCall(shared, bound.inputs, bound.outputs, nodes),)
