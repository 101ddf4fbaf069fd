"""Several products in one program: each separately in register tiles, at the root.

A transposed convolution computes phases, each a product, and a last stage puts them together. A
block of rows of that stage would hold whole images.

The rows of a program that can be computed block by block, and products made ready for that.
"""

from __future__ import annotations

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.expr import Axis, Var, loads_of
from tensorwright.tuning.space.accesses import count_of, has_reuse, is_contiguous, lanes_for, points
from tensorwright.tuning.space.defaults.pack_operand import transpose_operands
from tensorwright.tuning.space.defaults.tile_anchor import build_tiles
from tensorwright.tuning.space.defaults.tiling import Order, Tiling
from tensorwright.tuning.space.roles import Anchor, find_roles
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.steps import MIN_PARALLEL_POINTS

_MOST_ELEMENTS = 64  # of a block, along its own axes but the last, which are all in one tile


def is_product(stage: schedule.Stage) -> bool:
    """Whether a stage folds, and uses what it reads again."""
    return stage.tensor.reduction is not None and has_reuse(stage.tensor)


def has_large_products(state: schedule.ScheduleState, rows: int) -> bool:
    """Whether some product has too many elements for one tile after its first `rows` axes, or takes
    long and has no vectors along the last.
    """
    return any(_is_large(stage, rows) for stage in state.stages if is_product(stage))


def _is_large(stage: schedule.Stage, rows: int) -> bool:
    tensor = stage.tensor
    if count_of(tensor.axes[rows:-1]) > _MOST_ELEMENTS:
        return True
    if not tensor.axes:
        return False
    last = tensor.axes[-1]  # of one element where rows are folded, as those of a softmax are
    is_scalar = last.extent != 1 and not is_contiguous(tensor, last)
    return is_scalar and points(tensor) > MIN_PARALLEL_POINTS


def tile_products(builder: SketchBuilder, target: CpuTarget) -> frozenset[str]:
    """Tile each product that has vectors, and leave the rest; the stages that are scheduled."""
    tiled: set[str] = set()
    for stage in builder.state.stages:
        name = stage.name
        if not is_product(stage) or not isinstance(stage.placement, schedule.AtRoot):
            continue
        trial = SketchBuilder(builder.state)
        trial.do(schedule.CacheWrite(name))
        cached = schedule.CacheWrite(name).cached
        width = lanes_for(target, trial.state.stage(cached))
        transpose_operands(trial, cached, name, width)
        roles = find_roles(Anchor(trial.state, cached, name), width)
        if roles is None:
            continue
        order, prefix = Order.COLUMNS_OUTSIDE, f"{name}_"
        build_tiles(Tiling(trial, target, cached, name, roles, order, prefix=prefix))
        builder.join(trial)
        tiled |= {name, cached}
    return frozenset(tiled)


def multiply_sums(builder: SketchBuilder) -> None:
    """Factor stages out of products with fewer results, such as the division of a softmax."""
    for stage in builder.state.stages:
        readers = builder.state.readers(stage.name)
        if len(readers) != 1 or not is_product(readers[0]):
            continue
        inline, factor_out = schedule.ComputeInline(stage.name), schedule.FactorOut(readers[0].name)
        is_less = count_of(stage.tensor.axes) > count_of(readers[0].tensor.axes)
        if not is_less or not schedule.is_legal(inline, builder.state):
            continue
        if schedule.is_legal(factor_out, schedule.applied(inline, builder.state)):
            builder.do(inline)
            builder.do(factor_out)


def shared_rows(state: schedule.ScheduleState) -> tuple[Axis, ...]:
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


def _order_of_rows(state: schedule.ScheduleState, last: schedule.Stage) -> tuple[Axis, ...]:
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
