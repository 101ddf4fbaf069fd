"""Products computed directly: convolutions of one to three dimensions, grouped, transposed; matmul.

Knobs   tile_<axis>   of the axes along which an operand is used again: tiles, and tiles in them
        tile_<axis>   of the longest axis of the reduction: how many of its terms are unrolled
        order         which operand stays in the cache while the other moves past it
        unroll_taps   whether the last axis of a window is unrolled, too
"""

from __future__ import annotations

from tensorwright.base import CpuTarget
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.axes.accesses import has_reuse
from tensorwright.tuning.space.axes.roles import Role
from tensorwright.tuning.space.derived.tiled_axes import TileAxis
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import Configuration
from tensorwright.tuning.space.templates.product import (
    Product,
    has_product,
    open_product,
)
from tensorwright.tuning.space.templates.template import Template
from tensorwright.tuning.space.tile_limits import limits_of


def is_direct(state: ScheduleState, target: CpuTarget) -> bool:
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
