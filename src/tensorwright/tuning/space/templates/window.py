"""Windows that share no operand between rows: depthwise convolutions, pooling, sums of columns.

They are bound by memory: a tile is small, and what is beside the image is padded before, in the
tile, or not at all but decided tap by tap.

Knobs   tile_<axis>   of the lanes, and of the last two axes beside them
        padding       where what feeds the window is computed
        tile_<axis>   of the longest axis of the reduction: how many of its terms are unrolled
"""

from __future__ import annotations

from dataclasses import replace

from tensorwright.base import CpuTarget
from tensorwright.schedule import ComputeInline, ScheduleState
from tensorwright.tuning.space.axes.roles import Role
from tensorwright.tuning.space.derived.predicates import can_inline
from tensorwright.tuning.space.derived.tiled_axes import TileAxis, row_tiles
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.applied import INLINE, ROOT
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.direct import in_order, is_direct, unrolled_taps
from tensorwright.tuning.space.templates.product import Product, has_product, open_product
from tensorwright.tuning.space.templates.template import Template
from tensorwright.tuning.space.tile_limits import limits_of


def window(s: SketchBuilder, cfg: Configuration) -> None:
    """Small tiles, all taps of a small window unrolled."""
    product = open_product(s, cfg)
    inlined = [name for name in product.feeding if can_inline(s.state, name)]
    places = (INLINE, ROOT, "band") if inlined else (ROOT,)
    padding = cfg.define_knob("padding", places)
    if padding == INLINE:
        for name in inlined:
            s.do(ComputeInline(name))
    product.axes = _with_rows(product)
    product.tile()
    band = product.nest(in_order(product, rows_first=True), max(1, len(product.outer)))
    if padding == "band":
        for name in reversed(inlined):
            product.compute_at(name, band)
    product.compute(*product.split_fold(unrolled_taps(product)))
    product.finish()


def _with_rows(product: Product) -> tuple[TileAxis, ...]:
    """The axes, with tiles along the last two of those that have none, lanes aside."""
    extents = {a.name: a.length for a in product.s.state.stage(product.host).tensor.axes}
    others = [axis.name for axis in product.axes if axis.role is Role.BATCH][-2:]
    limits = limits_of(product.cfg.target)
    axes: list[TileAxis] = []
    for axis in product.axes:
        if axis.name in others:
            rows = row_tiles(extents[axis.name], most=limits.rows)
            rows = tuple(row for row in rows if row[-1] <= limits.block_rows)
            default = min(rows, key=lambda row: (row[:-1], abs(row[-1] - 2)))
            axis = replace(axis, role=Role.ROWS, sizes=rows, default=default)
        axes.append(axis)
    return tuple(axes)


def _applies(state: ScheduleState, target: CpuTarget) -> bool:
    return has_product(state, target) and not is_direct(state, target)


WINDOW = Template("window", window, _applies)
