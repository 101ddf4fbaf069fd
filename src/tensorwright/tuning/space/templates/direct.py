"""Products computed directly: convolutions of one to three dimensions, grouped, transposed; matmul.

Knobs   tile_<axis>   of the axes along which an operand is used again: tiles, and tiles in them
        tile_<axis>   of the longest axis of the reduction: how many of its terms are unrolled
        order         which operand stays in the cache while the other moves past it
        unroll_taps   whether the last axis of a window is unrolled, too

Convolutions as products of matrices: windows are written out as columns first.

Knobs   tile_<axis>   as in `direct.py`
        columns_at    whether all columns are written first, or those of a thread's tiles

Products whose activations are copied, tile by tile, into the order in which tiles read them.

Of a convolution a thread copies (or pads) the rows of its tiles; of a product of two activations
the columns.  What is copied for a tile stays in the cache while everything moves past it.

Knobs   tile_<axis>   as in `direct.py`
        pack_at       whether a copy serves a thread's share of the tiles, or one tile
        ann_reduce    which taps of a window are unrolled
        reorder_0     which loops of the reduction are outside

Windows that share no operand between rows: depthwise convolutions, pooling, sums of columns.

They are bound by memory: a tile is small, and what is beside the image is padded before, in the
tile, or not at all but decided tap by tap.

Knobs   tile_<axis>   of the lanes, and of the last two axes beside them
        padding       where what feeds the window is computed
        tile_<axis>   of the longest axis of the reduction: how many of its terms are unrolled
"""

from __future__ import annotations

from dataclasses import replace

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.tuning.space.accesses import has_reuse, reads_along
from tensorwright.tuning.space.derived.derivation import can_inline
from tensorwright.tuning.space.derived.tiled_axes import TileAxis, row_tiles
from tensorwright.tuning.space.knobs import Annotation, Order
from tensorwright.tuning.space.register_tile import limits_of
from tensorwright.tuning.space.roles import Anchor, Role
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import INLINE, ROOT, Configuration
from tensorwright.tuning.space.templates.product import Product, has_product, open_product
from tensorwright.tuning.space.templates.template import Template


def is_direct(state: schedule.ScheduleState, target: CpuTarget) -> bool:
    """To a product of two operands, each of which is used again along some axis."""
    return has_product(state, target) and any(has_reuse(s.tensor) for s in state.stages)


def direct(s: SketchBuilder, cfg: Configuration) -> None:
    """Tiles of the result on all threads; what feeds the product is computed before."""
    product = open_product(s, cfg)
    product.tile()
    order = cfg.define_knob("order", ("columns outside", "rows outside"))
    product.nest(in_order(product, rows_first=order == "rows outside"), shared=len(product.outer))
    folding, unrolled = product.split_fold(unrolled_taps(product))
    product.compute(folding, unrolled)
    product.finish()


def in_order(product: Product, *, rows_first: bool) -> list[TileAxis]:
    """The host's axes as its loops are nested: those along which everything moves outside."""
    rows, columns = product.of(Role.ROWS), product.of(Role.COLUMNS, Role.LANES)
    inside = (*rows, *columns) if rows_first else (*columns, *rows)
    return [*product.of(Role.BATCH), *inside]


def unrolled_taps(product: Product) -> tuple[str, ...]:
    """The last short axis of a reduction over several, where the knob says that it is unrolled."""
    axes = [a for a in product.s.state.stage(product.anchor).tensor.reduce_axes if a.extent != 1]
    most = limits_of(product.cfg.target).unrolled // 2
    if len(axes) < 2 or not 1 < axes[-1].length <= most:
        return ()
    is_unrolled = product.cfg.define_knob("unroll_taps", (False, True))
    return (axes[-1].name,) if is_unrolled else ()


DIRECT = Template("direct", direct, is_direct)


def im2col(s: SketchBuilder, cfg: Configuration) -> None:
    """A product of the columns, rows of its result outside."""
    step = _step(s.state)
    s.do(step)
    product = open_product(s, cfg)
    product.tile()
    is_whole = cfg.define_knob("columns_at", ("root", "band")) == "root"
    order = in_order(product, rows_first=True)
    loops = [axis for axis in order if axis.name in product.outer]
    rows = sum(axis.role not in (Role.COLUMNS, Role.LANES) for axis in loops)
    band = product.nest(order, len(loops) if is_whole else max(1, rows))
    if not is_whole:
        product.compute_at(f"{step.stage}_columns", band)
    product.compute(*product.split_fold())
    product.finish()


def _step(state: schedule.ScheduleState) -> schedule.UseAlgorithm:
    (name,) = (stage.name for stage in state.stages if stage.tensor.reduction is not None)
    return schedule.UseAlgorithm(name, "im2col")


IM2COL = Template(
    "im2col",
    im2col,
    lambda state, target: is_direct(state, target) and schedule.is_legal(_step(state), state),
)


def spatial_pack(s: SketchBuilder, cfg: Configuration) -> None:
    """Copies of activations in tiles of the result."""
    product = open_product(s, cfg)
    copy, is_wide = _copied(product)
    product.tile()
    order = in_order(product, rows_first=not is_wide)
    inside = (Role.ROWS,) if is_wide else (Role.COLUMNS, Role.LANES)
    loops = [axis for axis in order if axis.name in product.outer]
    shared = sum(axis.role not in inside for axis in loops)
    band = product.nest(order, max(1, shared))
    places = {"band": band, "tile": product.tile_loop}
    product.compute_at(copy, places[cfg.define_knob("pack_at", tuple(places))])
    folding, unrolled = product.split_fold(_unrolled_taps(product))
    if len(folding) > 1:
        orders = (folding, [folding[-1], *folding[:-1]])
        knob = cfg.define_reorder("reorder_0", folding, Order.CANDIDATES, candidates=orders)
        folding = list(knob.loops)
    product.compute(folding, unrolled)
    product.finish()


def _copied(product: Product) -> tuple[str, bool]:
    """The stage that is the copy of an activation, and whether it is that of the lanes."""
    anchor = Anchor(product.s.state, product.anchor, product.host)
    (lanes,) = (axis.name for axis in product.of(Role.LANES))
    (var,) = (axis.var for axis in anchor.axes if axis.name == lanes)
    given = [operand.load for operand in anchor.operands if not operand.is_constant]
    given.sort(key=lambda load: reads_along(load, var))
    name = given[-1].source.name
    is_wide = reads_along(given[-1], var)
    if name in product.feeding and anchor.state.has_stage(name):
        return name, is_wide
    step = schedule.CacheRead(name, product.anchor)
    product.s.do(step)
    return step.copy, is_wide


def _unrolled_taps(product: Product) -> tuple[str, ...]:
    """The taps that the knob says are unrolled, of the last two axes of a window."""
    axes = [a for a in product.s.state.stage(product.anchor).tensor.reduce_axes if a.extent != 1]
    most = limits_of(product.cfg.target).unrolled // 2
    taps = [a for a in axes[1:][-2:] if a.length <= most]
    if not taps:
        return ()
    names = [axis.name for axis in taps]
    words = (Annotation.NONE, Annotation.UNROLL)
    knob = product.cfg.define_annotate("ann_reduce", names, words)
    return tuple(
        loop
        for loop, word in zip(names, knob.annotations, strict=True)
        if word is Annotation.UNROLL
    )


SPATIAL_PACK = Template("spatial_pack", spatial_pack, is_direct)


def window(s: SketchBuilder, cfg: Configuration) -> None:
    """Small tiles, all taps of a small window unrolled."""
    product = open_product(s, cfg)
    inlined = [name for name in product.feeding if can_inline(s.state, name)]
    places = (INLINE, ROOT, "band") if inlined else (ROOT,)
    padding = cfg.define_knob("padding", places)
    if padding == INLINE:
        for name in inlined:
            s.do(schedule.ComputeInline(name))
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


WINDOW = Template(
    "window",
    window,
    lambda state, target: has_product(state, target) and not is_direct(state, target),
)
