"""Several products in one program: each separately in register tiles, at the root.

A transposed convolution computes phases, each a product, and a last stage puts them together. A
block of rows of that stage would hold whole images.
"""

from __future__ import annotations

from tensorwright.base import CpuTarget
from tensorwright.schedule import AtRoot, CacheWrite, ScheduleState, Stage
from tensorwright.tuning.space.axes.accesses import (
    count_of,
    has_reuse,
    is_contiguous,
    lanes_for,
    points,
)
from tensorwright.tuning.space.axes.anchor import Anchor
from tensorwright.tuning.space.axes.roles import find_roles
from tensorwright.tuning.space.defaults.pack_operand import transpose_operands
from tensorwright.tuning.space.defaults.tile_anchor import build_tiles
from tensorwright.tuning.space.defaults.tiling import Order, Tiling
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.steps import MIN_PARALLEL_POINTS

_MOST_ELEMENTS = 64  # of a block, along its own axes but the last, which are all in one tile


def is_product(stage: Stage) -> bool:
    """Whether a stage folds, and uses what it reads again."""
    return stage.tensor.reduction is not None and has_reuse(stage.tensor)


def has_large_products(state: ScheduleState, rows: int) -> bool:
    """Whether some product has too many elements for one tile after its first `rows` axes, or takes
    long and has no vectors along the last.
    """
    return any(_is_large(stage, rows) for stage in state.stages if is_product(stage))


def _is_large(stage: Stage, rows: int) -> bool:
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
        if not is_product(stage) or not isinstance(stage.placement, AtRoot):
            continue
        trial = SketchBuilder(builder.state)
        trial.do(CacheWrite(name))
        cached = CacheWrite(name).cached
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
