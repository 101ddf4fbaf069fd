"""How much arithmetic an expression asks for, and how many bytes it moves."""

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
    loads_of,
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
    return _box(stage) * (_operations(stage.body) + (stage.reduction is not None))


def _box(stage: Compute) -> int:
    """How often the body of a stage is evaluated."""
    axes = (*stage.axes, *stage.reduce_axes)
    box = prod(axis.extent for axis in axes if isinstance(axis.extent, int))
    if any(not isinstance(axis.extent, int) for axis in axes):
        raise TypeError(f"the shape of {stage.name} is not static")
    return box


def moved_bytes(computes: Sequence[Tensor]) -> int:
    """The bytes of inputs and outputs that must be moved at least, each counted once.

    Of an input no more than is read: a row that is looked up in a table is not the whole table.
    """
    stages = [stage for stage in topological_order(*computes) if isinstance(stage, Compute)]
    reads: dict[Tensor, int] = {}
    for stage in stages:
        for load in loads_of(stage.body):
            if not isinstance(load.source, Compute):
                reads[load.source] = reads.get(load.source, 0) + _box(stage)
    read_bytes = sum(
        min(count, _elements(tensor)) * tensor.dtype.size_bytes for tensor, count in reads.items()
    )
    return read_bytes + sum(_elements(each) * each.dtype.size_bytes for each in computes)


def _elements(tensor: Tensor) -> int:
    return prod(extent for extent in tensor.shape if isinstance(extent, int))


def _operations(value: Value) -> int:
    own = 1 if isinstance(value, Apply) and value.fn not in _FREE else 0
    return own + sum(_operations(child) for child in children(value))
