"""Costs of networks and single operators as programs: layouts are chosen, the graph is cut into
workloads, and their times are summed.  Named sizes have typical values.

    network_seconds(prices, graph)                           all kernels of a network
    prices.seconds(TypedOperator("matmul", (), (x, w), y))   the kernels of one operator alone

Earlier searches over graphs, TASO and TENSAT, add up the times of operators, each measured alone,
and so miss the effects of fusion and layouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tensorwright.graph import (
    AliasCall,
    ConcatInPlace,
    Graph,
    GraphBuilder,
    KernelCall,
    Node,
    Price,
    bind_workload,
    choose_layouts,
    operator_of,
    partition,
    representative,
    simplify,
    writes_of_step,
)
from tensorwright.machine import NOMINAL, Machine
from tensorwright.ops import Pattern
from tensorwright.rewriting.networks.network_analysis import TypedOperator
from tensorwright.rewriting.networks.operator_costs import OperatorCosts, Roofline
from tensorwright.rewriting.operators import follow, operator_named

ANCHORS = frozenset(
    {"conv2d", "conv3d", "matmul", "max_pool", "avg_pool", "max_pool3d", "avg_pool3d"}
)
"""The operators around which kernels are made; others join them, or cost the bytes moved."""


@dataclass(frozen=True, slots=True)
class PricedKernel:
    """A step of a network: its seconds, and the tensors that it computes."""

    seconds: float
    tensors: tuple[str, ...]


class Prices(OperatorCosts, Protocol):
    """Says what single operators and whole networks cost."""

    def kernels_of(self, graph: Graph) -> tuple[PricedKernel, ...] | None:
        """The kernels of a simplified network; None where a part of it has no price."""
        ...


@dataclass(slots=True)
class ProgramPrices:
    """Prices by a model of times, each asked for once.

    machine       gives a lower bound of kernels' times where the caches cannot keep the weights of
    a network: every run reads each weight from memory again
    roofline      costs of operators that the model does not or cannot price
    has_layouts   whether layouts are chosen; else all tensors are plain
    """

    machine: Machine
    price: Price
    roofline: Roofline = field(default_factory=Roofline)
    has_layouts: bool = True
    _operators: dict[TypedOperator, float] = field(default_factory=dict)

    def kernels_of(self, graph: Graph) -> tuple[PricedKernel, ...] | None:
        """The kernels of a simplified network; None where a workload has no price."""
        laid_out = graph
        if self.has_layouts:
            laid_out = choose_layouts(graph, self.machine.target, self.price)
        steps = partition(laid_out, price=self.price).steps
        calls = [step for step in steps if isinstance(step, KernelCall)]
        least_s = iter(self._least_seconds(laid_out, calls))
        kernels: list[PricedKernel] = []
        for step in steps:
            if not isinstance(step, KernelCall | AliasCall | ConcatInPlace):
                kernels.append(PricedKernel(NOMINAL.call_s, writes_of_step(step)))
            elif isinstance(step, KernelCall):
                sizes = representative(step.workload.sizes)
                seconds = self.price(bind_workload(step.workload, sizes))
                if seconds is None:
                    return None
                names = tuple(name for node in step.nodes for name in node.outputs)
                kernels.append(PricedKernel(max(seconds, next(least_s) + NOMINAL.call_s), names))
            else:  # it says where tensors lie
                kernels.append(PricedKernel(0.0, (step.output,)))
        return tuple(kernels)

    def _least_seconds(self, graph: Graph, calls: Sequence[KernelCall]) -> list[float]:
        """The least time of each kernel: the time to read its weights from memory, without those
        that an earlier kernel has read.  0 where all weights stay in the cache.
        """
        seen: set[str] = set()
        read: list[int] = []
        for call in calls:
            names = set(weights_of(graph, call.nodes)) - seen
            seen |= names
            read.append(sum(graph.types[name].size_bytes for name in names))
        if sum(read) <= self.machine.target.l3_bytes:
            return [0.0] * len(read)
        return [size_bytes / self.machine.memory_bytes_per_s for size_bytes in read]

    def seconds(self, use: TypedOperator) -> float:
        """Seconds of an application of an operator; 0 where all of it is constant."""
        quick = self.roofline.seconds(use)
        if use.operator not in ANCHORS or not quick:
            return quick
        if use not in self._operators:
            alone_s = network_seconds(self, network_of(use))
            self._operators[use] = quick if alone_s is None else alone_s
        return self._operators[use]


def network_seconds(prices: Prices, graph: Graph) -> float | None:
    """Seconds of a simplified network; None where a part of it has no price."""
    kernels = prices.kernels_of(graph)
    return None if kernels is None else math.fsum(each.seconds for each in kernels)


def weights_of(graph: Graph, nodes: Iterable[Node]) -> Iterator[str]:
    """The constants of which every element is read: those of products and convolutions."""
    for node in nodes:
        if operator_of(node).pattern is Pattern.ANCHOR:
            yield from (name for name in node.inputs if name in graph.constants)


def network_of(use: TypedOperator) -> Graph:
    """An operator as a simplified network of its own; its constants are zeros."""
    b, args = GraphBuilder(use.operator), use.args
    names = tuple(
        b.constant(np.zeros(arg.extents, arg.dtype.numpy), f"w{number}")
        if arg.is_constant
        else b.input(f"x{number}", arg.shape, arg.dtype)
        for number, arg in enumerate(args)
    )
    shapes = tuple(arg.shape for arg in args)
    steps = operator_named(use.operator).meaning(use.params, shapes)
    outputs = follow(
        steps, names, lambda step, args: b.apply(step.operator, args, **step.attributes)[0]
    )
    return simplify(b.finish(outputs))
