"""The pointwise heuristic: nothing is folded; the elements are divided among threads and lanes.

Operands that are read across their rows are first copied transposed, in squares that are transposed
in registers. Otherwise a vector of such an operand would be gathered, each element from another
line.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorwright.base import CpuTarget
from tensorwright.expr import Axis, Load, free_vars, index_tensors_of, loads_of
from tensorwright.schedule import AtRoot, CacheRead, ScheduleState, Scope, Stage
from tensorwright.tuning.space.axes.accesses import (
    dimension_last,
    extent_of,
    lanes_for,
    points,
    stride_along,
)
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder
from tensorwright.tuning.space.steps import inline_elementwise, schedule_at_root, transpose_whole


def pointwise_sketches(state: ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """The sketches of the pointwise heuristic; none if something is folded.

    With expensive pieces of a row computed separately, with transposed operands, and all stages in
    one without copies.
    """
    if any(stage.tensor.reduction is not None for stage in state.stages):
        return
    lanes = min(lanes_for(target, stage) for stage in state.stages)
    apart = SketchBuilder(state)
    inline_elementwise(apart, lanes=lanes)
    builder = SketchBuilder(state)
    inline_elementwise(builder)
    if apart.steps != builder.steps:
        yield _schedule_all(apart, _at_root(apart), target, "pointwise, pieces apart")
    at_root = _at_root(builder)
    transposed = SketchBuilder(builder.state)
    for stage in at_root:
        _read_transposed(transposed, stage, target)
    if transposed.steps:
        continued = SketchBuilder(state)
        for part in (builder, transposed):
            continued.join(part)
        yield _schedule_all(continued, at_root, target, "pointwise transposed")
    yield _schedule_all(builder, at_root, target, "pointwise")


def _at_root(builder: SketchBuilder) -> list[Stage]:
    return [stage for stage in builder.state.stages if isinstance(stage.placement, AtRoot)]


def _schedule_all(
    builder: SketchBuilder, stages: list[Stage], target: CpuTarget, name: str
) -> Sketch:
    for stage in stages:
        schedule_at_root(builder, stage.name, target, stage.name)
    return builder.sketch(name)


def _read_transposed(builder: SketchBuilder, stage: Stage, target: CpuTarget) -> None:
    """Let a stage that computes read transposed copies of operands that it reads across rows."""
    axes = [axis for axis in stage.tensor.axes if axis.extent != 1]
    lanes = lanes_for(target, stage)
    is_copy = isinstance(stage.tensor.body, Load)  # it is transposed as it is stored
    if is_copy or not axes or axes[-1].length < lanes:
        return
    constant = builder.state.constants | index_tensors_of(stage.tensor.body)
    by_source: dict[str, list[Load]] = {}
    for load in loads_of(stage.tensor.body):
        if load.source.name not in constant:
            by_source.setdefault(load.source.name, []).append(load)
    for loads in by_source.values():
        across = {_dimension_across(load, axes[-1]) for load in loads}
        dimension = across.pop() if len(across) == 1 else None
        shape = [extent_of(extent) for extent in loads[0].source.shape]
        if dimension is None or prod(shape) > 2 * points(stage.tensor):
            continue
        if shape[dimension] >= lanes and prod(shape[dimension + 1 :]) >= lanes:
            _copy_transposed(builder, loads[0], stage.name, dimension, lanes)


def _dimension_across(load: Load, last: Axis) -> int | None:
    """The dimension of an operand along which neighbours of the result lie, in order but apart."""
    moving = [n for n, index in enumerate(load.indices) if last.var in free_vars(index)]
    if len(moving) != 1 or stride_along(load, last.var) != prod(
        extent_of(extent) for extent in load.source.shape[moving[0] + 1 :]
    ):
        return None
    return moving[0] if stride_along(load, last.var) != 1 else None


def _copy_transposed(
    builder: SketchBuilder, load: Load, reader: str, dimension: int, lanes: int
) -> None:
    """Copy an operand with one of its dimensions last."""
    order = dimension_last(len(load.indices), dimension)
    step = CacheRead(load.source.name, reader, Scope.GLOBAL, order)
    builder.do(step)
    *others, last = builder.state.stage(step.copy).tensor.axes
    run = tuple(axis for axis in others[dimension:] if axis.extent != 1)
    transpose_whole(builder, step.copy, run, last, lanes)
