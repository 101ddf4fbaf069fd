"""What networks and single operators cost as programs: layouts chosen, cut into workloads, and the
times of these summed.

    prices.seconds_of(graph)                             all kernels of a network
    prices.seconds(TypedOperator("matmul", (), (x, w), y))   the kernels of one operator alone

None of the searches over graphs before this one priced what will run: TASO and TENSAT add up the
times of operators, each measured alone, and so miss what fusion and layouts change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tensorwright.base import Target
from tensorwright.graph import (
    Graph,
    GraphBuilder,
    HostCall,
    KernelCall,
    Pricing,
    choose_layouts,
    partition,
    simplify,
)
from tensorwright.rewriting.networks.network_analysis import TypedOperator
from tensorwright.rewriting.networks.operator_costs import OperatorCosts, Roofline
from tensorwright.rewriting.operators import follow, operator_named

_ANCHORS = frozenset({"conv2d", "matmul", "max_pool", "avg_pool"})


@dataclass(frozen=True, slots=True)
class PricedKernel:
    """A step of a network: its seconds, and the tensors that it computes."""

    seconds: float
    tensors: tuple[str, ...]


class Prices(OperatorCosts, Protocol):
    """Says what single operators and whole networks cost."""

    def seconds_of(self, graph: Graph) -> float | None:
        """Seconds of a simplified network; None where a part of it has no price."""
        ...

    def kernels_of(self, graph: Graph) -> tuple[PricedKernel, ...] | None:
        """What runs for a simplified network; None where a part of it has no price."""
        ...


@dataclass(slots=True)
class ProgramPrices:
    """Prices by a model of times, each asked for once.

    roofline      what operators cost that no model is asked about, or can price
    has_layouts   whether layouts are chosen; else all tensors are plain
    """

    target: Target
    pricing: Pricing
    roofline: Roofline = field(default_factory=Roofline)
    has_layouts: bool = True
    _operators: dict[TypedOperator, float] = field(default_factory=dict)

    def seconds_of(self, graph: Graph) -> float | None:
        """Seconds of a simplified network on this machine; None where a workload has no price."""
        found = self.kernels_of(graph)
        return None if found is None else math.fsum(each.seconds for each in found)

    def kernels_of(self, graph: Graph) -> tuple[PricedKernel, ...] | None:
        """What runs for a simplified network; None where a workload has no price."""
        laid_out = choose_layouts(graph, self.target, self.pricing) if self.has_layouts else graph
        found: list[PricedKernel] = []
        for step in partition(laid_out, pricing=self.pricing).steps:
            if isinstance(step, HostCall):
                found.append(PricedKernel(self.pricing.step_seconds(), step.node.outputs))
            elif isinstance(step, KernelCall):
                seconds = self.pricing.seconds_of(step.workload)
                if seconds is None:
                    return None
                names = tuple(name for node in step.nodes for name in node.outputs)
                found.append(PricedKernel(seconds + self.pricing.step_seconds(), names))
        return tuple(found)

    def seconds(self, use: TypedOperator) -> float:
        """Seconds of an application of an operator; nothing where all of it is constant."""
        quick = self.roofline.seconds(use)
        if use.operator not in _ANCHORS or not quick:
            return quick
        if use not in self._operators:
            found = self.seconds_of(network_of(use))
            self._operators[use] = quick if found is None else found
        return self._operators[use]


def network_of(use: TypedOperator) -> Graph:
    """An operator as a simplified network of its own; its constants are zeros."""
    b, args = GraphBuilder(use.operator), use.args
    names = tuple(
        b.constant(np.zeros(arg.shape, arg.dtype.numpy), f"w{place}")
        if arg.is_constant
        else b.input(f"x{place}", arg.shape, arg.dtype)
        for place, arg in enumerate(args)
    )
    shapes = tuple(arg.shape for arg in args)
    steps = operator_named(use.operator).meaning(use.params, shapes)
    found = follow(
        steps, names, lambda step, args: b.apply(step.operator, args, **step.attributes)[0]
    )
    return simplify(b.finish(found))
