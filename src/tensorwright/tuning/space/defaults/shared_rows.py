"""The rows of a program that can be computed block by block, and products made ready for that."""

from __future__ import annotations

from tensorwright.expr import Axis, Var, loads_of
from tensorwright.schedule import (
    ComputeInline,
    FactorOut,
    ScheduleState,
    Stage,
    applied,
    is_legal,
)
from tensorwright.tuning.space.axes.accesses import count_of
from tensorwright.tuning.space.defaults.products import is_product
from tensorwright.tuning.space.sketch import SketchBuilder


def multiply_sums(builder: SketchBuilder) -> None:
    """Factor stages out of products with fewer results, such as the division of a softmax."""
    for stage in builder.state.stages:
        readers = builder.state.readers(stage.name)
        if len(readers) != 1 or not is_product(readers[0]):
            continue
        inline, factor_out = ComputeInline(stage.name), FactorOut(readers[0].name)
        is_less = count_of(stage.tensor.axes) > count_of(readers[0].tensor.axes)
        if not is_less or not is_legal(inline, builder.state):
            continue
        if is_legal(factor_out, applied(inline, builder.state)):
            builder.do(inline)
            builder.do(factor_out)


def shared_rows(state: ScheduleState) -> tuple[Axis, ...]:
    """The axes of the last stage that are rows, outermost first: no row needs another row.

    These are leading axes along which every computed operand is read at its reader's own position.
    If products are folded, the last stage may store them in another order than it reads them. () if
    there are none, or if there are several outputs.
    """
    last = state.stages[-1]
    if len(state.outputs) != 1 or last.name != state.outputs[0]:
        return ()
    order = _order_of_rows(state, last)
    depth_of = {last.name: len(order)}
    for stage in reversed(state.stages):
        axes = order if stage.name == last.name else stage.tensor.axes
        for load in loads_of(stage.tensor.body):
            if state.has_stage(load.source.name):
                depth = min(_common_axes(axes, load.indices), depth_of[stage.name])
                depth_of[load.source.name] = min(depth_of.get(load.source.name, depth), depth)
    rows = order[: min(depth_of.values())]
    return rows if any(axis.extent != 1 for axis in rows) else ()


def _order_of_rows(state: ScheduleState, last: Stage) -> tuple[Axis, ...]:
    """The axes of the last stage in the order in which it reads the folded product before it."""
    axes = last.tensor.axes
    own = {axis.var: axis for axis in axes}
    computed = (load for load in loads_of(last.tensor.body) if state.has_stage(load.source.name))
    orders = {load.indices for load in computed if is_product(state.stage(load.source.name))}
    (order,) = orders if len(orders) == 1 else ((),)
    if last.tensor.reduction is not None or set(order) != set(own):
        return axes
    return tuple(own[index] for index in order if isinstance(index, Var))


def _common_axes(axes: tuple[Axis, ...], indices: tuple[object, ...]) -> int:
    """The number of leading indices that are the reader's own leading axes."""
    depth = 0
    for axis, index in zip(axes, indices, strict=False):
        if index != axis.var and not (index == 0 and axis.extent == 1):
            break
        depth += 1
    return depth
