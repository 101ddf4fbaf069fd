"""What networks and single operators cost as programs: layouts chosen, cut into workloads, and the
times of these summed.

    prices.seconds_of(graph)                             all kernels of a network
    prices.seconds("matmul", (), (x, w), y)              the kernels of one operator alone

None of the searches over graphs before this one priced what will run: TASO and TENSAT add up the
times of operators, each measured alone, and so miss what fusion and layouts change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
from tensorwright.rewriting.networks.network_analysis import TensorData
from tensorwright.rewriting.networks.operator_costs import Roofline
from tensorwright.rewriting.operators import operator_named
from tensorwright.rewriting.terms import Param

_ANCHORS = frozenset({"conv2d", "matmul", "max_pool", "avg_pool"})


@dataclass(slots=True)
class ProgramPrices:
    """Prices by a model of times, each asked for once.

    roofline   what operators cost that no model is asked about, or can price
    """

    target: Target
    pricing: Pricing
    roofline: Roofline = field(default_factory=Roofline)
    _operators: dict[tuple[object, ...], float] = field(default_factory=dict)

    def seconds_of(self, graph: Graph) -> float | None:
        """Seconds of a simplified network on this machine; None where a workload has no price."""
        laid_out = choose_layouts(graph, self.target, self.pricing)
        total = 0.0
        for step in partition(laid_out, pricing=self.pricing).steps:
            if isinstance(step, HostCall):
                total += self.pricing.step_seconds()
            elif isinstance(step, KernelCall):
                seconds = self.pricing.seconds_of(step.workload)
                if seconds is None:
                    return None
                total += seconds + self.pricing.step_seconds()
        return total

    def seconds(
        self,
        operator: str,
        params: tuple[Param, ...],
        args: tuple[TensorData, ...],
        result: TensorData,
    ) -> float:
        """Seconds of an application of an operator; nothing where all of it is constant."""
        quick = self.roofline.seconds(operator, params, args, result)
        if operator not in _ANCHORS or not quick:
            return quick
        key = (operator, params, args)
        if key not in self._operators:
            found = self.seconds_of(_network_of(operator, params, args))
            self._operators[key] = quick if found is None else found
        return self._operators[key]


def _network_of(operator: str, params: tuple[Param, ...], args: tuple[TensorData, ...]) -> Graph:
    """A network of one operator; its constants are zeros."""
    b = GraphBuilder(operator)
    names = tuple(
        b.constant(np.zeros(arg.shape, arg.dtype.numpy), f"w{place}")
        if arg.is_constant
        else b.input(f"x{place}", arg.shape, arg.dtype)
        for place, arg in enumerate(args)
    )
    for step in operator_named(operator).meaning(params, tuple(arg.shape for arg in args)):
        names = b.apply(step.operator, names, **step.attributes)[:1]
    return simplify(b.finish(names))
