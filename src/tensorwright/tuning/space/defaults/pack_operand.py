"""Panels: the columns of an operand that a column of tiles reads, copied to lie together.

A product of two activations reads its wide operand one row after the other, each row in a page and
often a cache set of its own.  Where that is so and several tiles of rows use the same columns, a
thread copies these columns first and all its tiles read the copy.

Source:  the packing of B in Goto, van de Geijn: Anatomy of high-performance matrix multiplication,
ACM TOMS 2008.
"""

from __future__ import annotations

from tensorwright.base import Target
from tensorwright.expr import Axis, loads_of
from tensorwright.schedule import CacheRead, ComputeAt, Scope, Split, Vectorize
from tensorwright.tuning.space.axes.accesses import (
    extent_of,
    lanes_for,
    operands,
    reads_along,
    stride_along,
)
from tensorwright.tuning.space.sketch import SketchBuilder

_APART_BYTES = 2048  # rows further apart than that are copied; measured on Sapphire Rapids
_MANY = 128  # so many rows need more pages than a first-level TLB holds
_USES = 24  # so many rows of the result are worth the copy


def pack_operand(
    builder: SketchBuilder, anchor: str, stored: str, lanes: Axis, rows: Axis | None
) -> str:
    """Let the anchor read a copy of its wide operand; the name of the copy, "" where none pays.

    The operand is an input, contiguous along the lanes and the same for all rows.
    """
    state = builder.state
    stage = state.stage(anchor)
    loads = tuple(loads_of(stage.tensor.body))
    if rows is None or extent_of(rows.extent) < _USES:
        return ""
    folded = max(stage.tensor.reduce_axes, key=lambda axis: extent_of(axis.extent))
    for load, operand in zip(loads, operands(state, stage, state.stage(stored)), strict=True):
        name = load.source.name
        if operand.is_constant or state.has_stage(name):
            continue
        if stride_along(operand.load, lanes.var) != 1 or reads_along(operand.load, rows.var):
            continue
        apart = stride_along(operand.load, folded.var) or 0
        is_far = apart * load.dtype.size_bytes > _APART_BYTES
        is_read_once = sum(other.source.name == name for other in loads) == 1
        if is_far and is_read_once and extent_of(folded.extent) >= _MANY:
            step = CacheRead(name, anchor, Scope.GLOBAL)
            builder.do(step)
            return step.copy
    return ""


def place_panel(builder: SketchBuilder, copy: str, host: str, loop: str, target: Target) -> None:
    """Copy a panel at a loop of the stage that is stored, vector by vector."""
    stage = builder.state.stage(copy)
    last = stage.tensor.axes[-1].name
    builder.do(Split(copy, last, (lanes_for(target, stage),)))
    builder.do(Vectorize(copy, f"{last}_i"))
    builder.do(ComputeAt(copy, host, loop))
