"""Products whose activations are copied, tile by tile, into the order in which tiles read them.

Of a convolution a thread copies (or pads) the rows of its tiles; of a product of two activations
the columns.  What is copied for a tile stays in the cache while everything moves past it.

Knobs   tile_<axis>   as in `direct.py`
        pack_at       whether a copy serves a thread's share of the tiles, or one tile
        ann_reduce    which taps of a window are unrolled
        reorder_0     which loops of the reduction are outside
"""

from __future__ import annotations

from tensorwright.schedule import CacheRead
from tensorwright.tuning.space.axes.accesses import reads_along
from tensorwright.tuning.space.axes.anchor import Anchor
from tensorwright.tuning.space.axes.roles import Role
from tensorwright.tuning.space.knobs import Annotation, Order
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.direct import in_order, is_direct
from tensorwright.tuning.space.templates.product import Product, open_product
from tensorwright.tuning.space.templates.template import Template
from tensorwright.tuning.space.tile_limits import limits_of


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
    step = CacheRead(name, product.anchor)
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
