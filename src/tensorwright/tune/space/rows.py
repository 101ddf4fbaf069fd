"""The row rule: reductions along rows (softmax, normalisation, attention scores, means).

The stage that is stored last is split into rows and what lies along a row.  All that it needs is
computed for a block of rows inside the loop over blocks, in buffers of that size, so the input is
read from memory once.  A reduction along the contiguous axis is factored first: its partial results
fill the lanes of a vector.  A product inside a block (the scores of attention) is computed in
register tiles.
"""

from __future__ import annotations

from tensorwright.base import Target
from tensorwright.expr import Axis, Index, loads_of
from tensorwright.schedule import (
    AtRoot,
    CacheWrite,
    ComputeAt,
    Reorder,
    Rfactor,
    ScheduleState,
    Split,
    Stage,
    Tail,
    Unroll,
    Vectorize,
)
from tensorwright.tune.space.common import (
    MIN_PARALLEL_POINTS,
    accumulators,
    inline_elementwise,
    lanes_for,
    parallelise,
    spread,
)
from tensorwright.tune.space.roles import extent_of, has_reuse, points, stride_along
from tensorwright.tune.space.sketch import Sketch, SketchBuilder, divisors


def row_sketches(state: ScheduleState, target: Target) -> tuple[Sketch, ...]:
    """The sketch of the row rule; none without a reduction."""
    if all(stage.tensor.reduction is None for stage in state.stages):
        return ()
    builder = SketchBuilder(state)
    inline_elementwise(builder)
    rows = shared_rows(builder.state)
    if rows == 0:
        _factor_whole(builder)
    _factor_contiguous(builder, target)
    if rows == 0:
        for stage in builder.state.stages:
            _schedule_at_root(builder, stage.name, target)
        return (builder.sketch("separate"),)
    _compute_by_blocks(builder, target, rows)
    return (builder.sketch("rows"),)


def shared_rows(state: ScheduleState) -> int:
    """How many leading axes are rows: the part of the program for one row needs no other row's.

    These are the leading axes of the last stage along which every computed operand is read at its
    reader's own position.  0 where none, or where there are several outputs.
    """
    if len(state.outputs) != 1 or state.stages[-1].name != state.outputs[0]:
        return 0
    known = {state.stages[-1].name: len(state.stages[-1].tensor.axes)}
    for stage in reversed(state.stages):
        for load in loads_of(stage.tensor.body):
            if state.has_stage(load.source.name):
                depth = min(_common_axes(stage, load.indices), known[stage.name])
                known[load.source.name] = min(known.get(load.source.name, depth), depth)
    last = state.stages[-1].tensor.axes
    count = min(known.values())
    return count if any(axis.extent != 1 for axis in last[:count]) else 0


def _common_axes(stage: Stage, indices: tuple[object, ...]) -> int:
    """How many leading indices are the stage's own leading axes."""
    depth = 0
    for axis, index in zip(stage.tensor.axes, indices, strict=False):
        if index != axis.var and not (index == 0 and axis.extent == 1):
            break
        depth += 1
    return depth


def _factor_whole(builder: SketchBuilder) -> None:
    """Give a large reduction without spatial axes one: partial results that threads can compute."""
    for stage in builder.state.stages:
        reduction = stage.tensor.reduction
        spatial = any(axis.extent != 1 for axis in stage.tensor.axes)
        if reduction is None or spatial or points(stage.tensor) < MIN_PARALLEL_POINTS:
            continue
        if not stage.tensor.dtype.is_float:
            continue
        axis = reduction.axes[0]
        loop = axis.name
        if len(reduction.axes) == 1:
            builder.do(Split(stage.name, loop, (-(-extent_of(axis.extent) // 64),)))
            loop = f"{loop}_o"
        builder.do(Rfactor(stage.name, loop))


def _factor_contiguous(builder: SketchBuilder, target: Target) -> None:
    """Factor the reductions along a contiguous axis that have no spatial axis to vectorise."""
    for stage in builder.state.stages:
        reduction = stage.tensor.reduction
        if reduction is None or _vector_axis(stage) is not None:
            continue
        if builder.state.has_stage(f"{stage.name}_rf"):
            continue
        axis = reduction.axes[-1]
        lanes = lanes_for(target, stage)
        along = [stride_along(load, axis.var) for load in loads_of(stage.tensor.body)]
        long_enough = extent_of(axis.extent) >= 2 * lanes
        if long_enough and all(s in (0, 1) for s in along) and stage.tensor.dtype.is_float:
            builder.do(Split(stage.name, axis.name, (lanes,)))
            builder.do(Rfactor(stage.name, f"{axis.name}_i"))


def _vector_axis(stage: Stage) -> Axis | None:
    """The innermost spatial axis, if every read along it is contiguous or the same."""
    axes = [axis for axis in stage.tensor.axes if extent_of(axis.extent) > 1]
    if not axes:
        return None
    strides = [stride_along(load, axes[-1].var) for load in loads_of(stage.tensor.body)]
    return axes[-1] if 1 in strides and all(stride in (0, 1) for stride in strides) else None


def _vectorise(builder: SketchBuilder, name: str, target: Target) -> None:
    """Vectorise the innermost spatial axis where that is contiguous."""
    stage = builder.state.stage(name)
    axis = _vector_axis(stage)
    if axis is None or axis.name not in stage.loops:
        return
    lanes = lanes_for(target, stage)
    inner = axis.name
    if extent_of(axis.extent) > lanes:
        builder.do(Split(name, axis.name, (lanes,)))
        inner = f"{axis.name}_i"
    loops = builder.state.stage(name).loops
    if loops[-1] != inner:
        builder.do(Reorder(name, (*(x for x in loops if x != inner), inner)))
    builder.do(Vectorize(name, inner))


def _schedule_at_root(builder: SketchBuilder, name: str, target: Target) -> None:
    stage = builder.state.stage(name)
    if stage.tensor.reduction is None:
        spread(builder, name, target, name)
        return
    _vectorise(builder, name, target)
    vector = _vector_axis(stage)
    spatial = {a.name for a in stage.tensor.axes if a is not vector and a.extent != 1}
    loops = builder.state.stage(name).loops
    outer = [loop for loop in loops if loop in spatial]
    if outer and outer != list(loops[: len(outer)]):
        builder.do(Reorder(name, (*outer, *(x for x in loops if x not in outer))))
    parallelise(builder, name, outer[:2], points(stage.tensor))


def _compute_by_blocks(builder: SketchBuilder, target: Target, rows: int) -> None:
    """Compute all stages inside a loop over blocks of rows of the last one."""
    last = builder.state.stages[-1]
    axes = last.tensor.axes
    products = [s.name for s in builder.state.stages[:-1] if _is_product(s)]
    for name in products:
        builder.do(CacheWrite(name))
    work = sum(points(stage.tensor) for stage in builder.state.stages)
    split = max(n for n in range(rows) if axes[n].extent != 1)
    extent = extent_of(axes[split].extent)
    sizes = divisors(extent, 8 if products else 16)
    default = max(sizes) if products else 1
    block = builder.choose("block", sizes, default)
    builder.do(Split(last.name, axes[split].name, (block,)))
    outer = [*(axis.name for axis in axes[:split]), f"{axes[split].name}_o"]
    loops = builder.state.stage(last.name).loops
    builder.do(Reorder(last.name, (*outer, *(x for x in loops if x not in outer))))
    host = parallelise(builder, last.name, outer, work) or outer[-1]
    for stage in reversed(builder.state.stages[:-1]):
        if stage.placement == AtRoot() and not _is_cache_of(stage.name, products):
            builder.do(ComputeAt(stage.name, last.name, host))
        if stage.name in products:  # at once: what feeds it can then follow into the block
            _tile_product(builder, stage.name, target, block)
    for stage in builder.state.stages:
        if stage.name not in products and not _is_cache_of(stage.name, products):
            _vectorise(builder, stage.name, target)


def _is_product(stage: Stage) -> bool:
    return stage.tensor.reduction is not None and has_reuse(stage.tensor)


def _is_cache_of(name: str, products: list[str]) -> bool:
    return any(name == CacheWrite(product).cached for product in products)


def _tile_product(builder: SketchBuilder, name: str, target: Target, block: Index) -> None:
    """Compute a product inside a block in register tiles: all rows of the block by some vectors."""
    stage = builder.state.stage(name)
    axis = stage.tensor.axes[-1]
    cached = CacheWrite(name).cached
    lanes = lanes_for(target, builder.state.stage(cached))
    extent = extent_of(axis.extent)
    if _vector_axis(builder.state.stage(cached)) is None or extent < lanes:
        loop = builder.state.stage(name).loops[-1]
        builder.do(ComputeAt(cached, name, loop))
        return
    choices = tuple(n for n in (1, 2, 3, 4) if n * lanes <= extent)
    columns = builder.choose(f"{name}_columns", choices, min(2, choices[-1]))
    builder.limit((block, columns), accumulators(target))
    builder.do(Split(name, axis.name, (columns, lanes), Tail.GUARD))
    vectors, vector = f"{axis.name}_1", f"{axis.name}_2"
    loops = [x for x in builder.state.stage(name).loops if not x.startswith(f"{axis.name}_")]
    builder.do(Reorder(name, (f"{axis.name}_0", *loops, vectors, vector)))
    builder.do(ComputeAt(cached, name, f"{axis.name}_0"))
    for loop in (*loops, vectors):
        builder.do(Unroll(name, loop))
    builder.do(Vectorize(name, vector))
    inner = builder.state.stage(cached).tensor
    folded = [a.name for a in inner.reduce_axes]
    builder.do(Split(cached, axis.name, (lanes,)))
    spatial = [a.name for a in inner.axes[:-1]]
    order = (*folded, *spatial, f"{axis.name}_o", f"{axis.name}_i")
    builder.do(Reorder(cached, order))
    for loop in (*spatial, f"{axis.name}_o"):
        builder.do(Unroll(cached, loop))
    builder.do(Vectorize(cached, f"{axis.name}_i"))
