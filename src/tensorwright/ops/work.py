"""How much arithmetic an expression needs, and how many bytes it moves."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorwright.expr import (
    Apply,
    Compute,
    Fn,
    Index,
    Tensor,
    Value,
    children,
    loads_of,
    minimum,
    sum_of,
    topological_order,
)
from tensorwright.ops.named_sizes import number_of

_FREE = frozenset((Fn.AND, Fn.OR, Fn.XOR, Fn.NOT, Fn.ISNAN, Fn.ISINF))


def work(computes: Sequence[Tensor]) -> int:
    """As `open_work`, for tensors whose extents are numbers.

    Raises:  UnsupportedError for others.
    """
    return number_of(open_work(computes))


def moved_bytes(computes: Sequence[Tensor]) -> int:
    """As `open_moved_bytes`, for tensors whose extents are numbers."""
    return number_of(open_moved_bytes(computes))


def open_work(computes: Sequence[Tensor]) -> Index:
    """The operations of the given tensors and of all that they are computed from, each counted
    once: a number, or an expression of named sizes.

    An arithmetic function or comparison of values is one operation, whatever it is; so is each step
    of a reduction, so that a multiply-add is two.  Loads, selects, casts and index arithmetic do
    not count.
    """
    stages = [stage for stage in topological_order(*computes) if isinstance(stage, Compute)]
    return sum_of([_box(stage) * _operations_at(stage) for stage in stages])


def _operations_at(stage: Compute) -> int:
    """The operations for each element, or each step of its reduction."""
    return _operations(stage.body) + (stage.reduction is not None)


def _box(stage: Compute) -> Index:
    """How often the body of a stage is evaluated."""
    return prod((axis.extent for axis in (*stage.axes, *stage.reduce_axes)), start=1)


def open_moved_bytes(computes: Sequence[Tensor]) -> Index:
    """The bytes of inputs and outputs that must be moved at least, each counted once.

    Of an input, only the elements that are read count: a looked-up row, not the whole table.
    """
    stages = [stage for stage in topological_order(*computes) if isinstance(stage, Compute)]
    reads: dict[Tensor, Index] = {}
    for stage in stages:
        for load in loads_of(stage.body):
            if not isinstance(load.source, Compute):
                reads[load.source] = reads.get(load.source, 0) + _box(stage)
    moved = [
        minimum(count, _elements(tensor)) * tensor.dtype.size_bytes
        for tensor, count in reads.items()
    ]
    return sum_of([*moved, *(_elements(each) * each.dtype.size_bytes for each in computes)])


def _elements(tensor: Tensor) -> Index:
    return prod(tensor.shape, start=1)


def _operations(value: Value) -> int:
    own = 1 if isinstance(value, Apply) and value.fn not in _FREE else 0
    return own + sum(_operations(child) for child in children(value))
