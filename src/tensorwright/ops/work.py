"""How much arithmetic an expression asks for."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.expr import (
    Apply,
    Compute,
    Fn,
    Tensor,
    Value,
    children,
    topological_order,
)

_FREE = frozenset((Fn.AND, Fn.OR, Fn.XOR, Fn.NOT, Fn.ISNAN, Fn.ISINF))


def work(computes: Sequence[Tensor]) -> int:
    """The operations of the given tensors and of all that they are computed from, each counted
    once.

    An arithmetic function or comparison of values is one operation, whatever it is; so is each step
    of a reduction, so that a multiply-add is two.  Loads, selects, casts and index arithmetic are
    none.
    """
    stages = topological_order(*computes)
    return sum(stage_work(stage) for stage in stages if isinstance(stage, Compute))


def stage_work(stage: Compute) -> int:
    """The operations of one stage alone."""
    axes = (*stage.axes, *stage.reduce_axes)
    box = prod(axis.extent for axis in axes if isinstance(axis.extent, int))
    if any(not isinstance(axis.extent, int) for axis in axes):
        raise TypeError(f"the shape of {stage.name} is not static")
    return box * (_operations(stage.body) + (stage.reduction is not None))


def _operations(value: Value) -> int:
    own = 1 if isinstance(value, Apply) and value.fn not in _FREE else 0
    return own + sum(_operations(child) for child in children(value))
