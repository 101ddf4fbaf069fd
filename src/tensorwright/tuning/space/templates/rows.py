"""Reductions along rows: softmax, normalisation, sums and maxima of rows.

All that a block of rows needs is computed inside a loop over blocks, so the input is read from
memory once.  A reduction along the contiguous axis is factored: its partial results fill vectors.

Knobs   block     rows of a block           vectors   partial results of a row, in vectors
"""

from __future__ import annotations

from tensorwright.base import CpuTarget
from tensorwright.expr import loads_of
from tensorwright.schedule import (
    AtRoot,
    ComputeAt,
    Reorder,
    Rfactor,
    ScheduleState,
    Split,
    Stage,
)
from tensorwright.tuning.space.axes.accesses import (
    is_contiguous,
    lanes_for,
    points,
    stride_along,
)
from tensorwright.tuning.space.defaults.products import is_product
from tensorwright.tuning.space.defaults.shared_rows import shared_rows
from tensorwright.tuning.space.register_tile import interleave, vectorise_last
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.steps import inline_elementwise, parallelise
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.template import Template
from tensorwright.tuning.space.tile_limits import limits_of


def rows(s: SketchBuilder, cfg: Configuration) -> None:
    """Blocks of rows on all threads."""
    inline_elementwise(s)
    count = cfg.define_knob("vectors", (1, 2, 4))
    partial = [name for stage in s.state.stages if (name := _factor(s, stage, cfg, count))]
    last = s.state.stages[-1]
    row = [axis for axis in shared_rows(s.state) if axis.extent != 1][-1]
    most = limits_of(cfg.target).block_rows
    block = cfg.define_split("block", row, filter=lambda sizes: sizes[-1] <= most)
    work = sum(points(stage.tensor) for stage in s.state.stages)
    over, _ = block.apply(s, last.name, row.name)
    around = [axis.name for axis in last.tensor.axes[: last.tensor.axes.index(row)]]
    loops = s.state.stage(last.name).loops
    s.do(Reorder(last.name, (*around, over, *(x for x in loops if x not in (*around, over)))))
    host = parallelise(s, last.name, [*around, over], work) or over
    for stage in reversed(s.state.stages):
        if stage.name != last.name and isinstance(stage.placement, AtRoot):
            s.do(ComputeAt(stage.name, last.name, host))
    for stage in s.state.stages:
        vectorise_last(s, stage.name, cfg.target)
    for name in partial:  # all rows of a block at once: their sums do not wait for each other
        interleave(s, name, row.name)


def _factor(s: SketchBuilder, stage: Stage, cfg: Configuration, vectors: int) -> str:
    """Give a reduction along the contiguous axis partial results; their stage, "" if none."""
    axes = stage.tensor.reduce_axes
    lanes = vectors * lanes_for(cfg.target, stage)
    if not axes or axes[-1].length < 2 * lanes or not stage.tensor.dtype.is_float:
        return ""
    if any(stride_along(load, axes[-1].var) not in (0, 1) for load in loads_of(stage.tensor.body)):
        return ""
    split = Split(stage.name, axes[-1].name, (lanes,))
    s.do(split)
    factor = Rfactor(stage.name, split.children[-1])
    s.do(factor)
    return factor.partial


def _applies(state: ScheduleState, target: CpuTarget) -> bool:
    """To programs whose rows need nothing of each other, with sums along the last axis."""
    folds = [stage.tensor for stage in state.stages if stage.tensor.reduction is not None]
    s = SketchBuilder(state)
    inline_elementwise(s)
    return (
        any(is_contiguous(tensor, tensor.reduce_axes[-1]) for tensor in folds)
        and not any(is_product(stage) for stage in state.stages)
        and all(points(tensor) for tensor in folds)
        and bool(shared_rows(s.state))
    )


ROWS = Template("rows", rows, _applies)
