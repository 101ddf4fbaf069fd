"""Costs of single operators of a network: the roofline of their arithmetic and their bytes.

An e-graph has thousands of operators, so these costs must be quick to compute. They only tell which
terms are worth pricing as programs.  Element-wise operators join the kernel before or after them:
they cost the bytes of what the other kernels do not read or write anyway.

Source:  Williams, Waterman, Patterson, Roofline, CACM 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Protocol

from tensorwright.machine import NOMINAL
from tensorwright.rewriting.egraph import INPUT
from tensorwright.rewriting.networks.network_analysis import TypedOperator
from tensorwright.rewriting.operators import FUNCTIONS, PAIRS, PARTS

_FREE = frozenset({INPUT, "reshape", "broadcast"})
_JOINED = frozenset({*(each.name for each in FUNCTIONS), "scalar_mul"})


class OperatorCosts(Protocol):
    """Says what single operators cost."""

    def seconds(self, use: TypedOperator) -> float:
        """Seconds of an application; 0 where all of it is constant."""
        ...


@dataclass(frozen=True, slots=True)
class Roofline:
    """Of a machine: operations and bytes a second of all its threads, and seconds that a kernel
    costs beside its work.
    """

    operations_per_s: float = NOMINAL.all_flops_per_s
    bytes_per_s: float = NOMINAL.all_bytes_per_s
    start_s: float = NOMINAL.call_s

    def seconds(self, use: TypedOperator) -> float:
        """The cost of an application; 0 where all of it is constant."""
        operator, args, result = use.operator, use.args, use.result
        if result.is_constant or operator in _FREE or all(arg.is_constant for arg in args):
            return 0.0
        if result.selects_rows:  # the product with it reads rows at its positions
            return 0.0
        if operator == "matmul" and args[0].selects_rows:
            return self.start_s + 2 * result.bytes / self.bytes_per_s
        if operator in _JOINED:
            return self.start_s / 10
        if (
            operator in PAIRS or operator == "select"
        ):  # the smaller operand, or a second activation, is read besides
            return self.start_s / 10 + min(arg.bytes for arg in args) / self.bytes_per_s
        if operator in PARTS:  # most are read where they lie
            return self.start_s / 10 + result.bytes / self.bytes_per_s / 4
        moved = sum(arg.bytes for arg in args) + result.bytes
        return self.start_s + max(
            _operations(use) / self.operations_per_s, moved / self.bytes_per_s
        )


def _operations(use: TypedOperator) -> int:
    """The operations of an application; a multiply-add is two."""
    params, args, result = use.params, use.args, use.result
    match use.operator:
        case "conv2d" | "conv3d":
            return 2 * result.elements * prod(args[1].extents[1:])
        case "matmul":
            return 2 * result.elements * args[0].extents[-1]
        case "max_pool" | "avg_pool" | "max_pool3d" | "avg_pool3d":
            kernel = [param for param in params[: len(params) // 2] if isinstance(param, int)]
            return result.elements * prod(kernel)
        case _:
            return max(result.elements, *(arg.elements for arg in args))
