"""The reduction of a product inside one register tile: its loops and its packed constants."""

from __future__ import annotations

from math import prod

from tensorwright.schedule import FoldConstant, Stage
from tensorwright.tuning.space.defaults.borders import is_folded_in_loops, skip_zeros
from tensorwright.tuning.space.defaults.reduction_loops import split_reduction
from tensorwright.tuning.space.defaults.tiling import Order, Tiling
from tensorwright.tuning.space.register_tile import nest, split_vectors
from tensorwright.tuning.space.steps import pack_constants


def build_tiles(tiling: Tiling) -> None:
    """Schedule a product in tiles, with all that feeds and follows it."""
    tiling.arrange()
    _schedule_anchor(tiling)
    tiling.finish()


def _schedule_anchor(tiling: Tiling) -> None:
    """Order and unroll the loops of the reduction, and pack its constants."""
    builder, name = tiling.builder, tiling.anchor
    stage = builder.state.stage(name)
    lanes, tile = _tile_axes(tiling)
    is_wide = tiling.roles.lanes.length > tiling.width
    whole = (), lanes
    vectors, vector = split_vectors(builder, name, lanes, tiling.width) if is_wide else whole
    tile += vectors
    taps = _skip_zeros(tiling, stage, lanes, tile)
    for constant in tiling.constants:
        builder.do(FoldConstant(constant))
    stage = builder.state.stage(name)
    is_window = tiling.order is Order.INLINED
    folding, unrolled = split_reduction(
        builder, stage, taps, tiling.choose, sums=prod(tiling.tile), is_window=is_window
    )
    rest = [axis.name for axis in stage.tensor.axes if axis.name not in (lanes, *tile)]
    nest(builder, name, (*rest, *folding), (*unrolled, *tile), vector)
    # data of one tile alone would be prefetched as often as they are read: the processor sees by
    # itself that it is read in order
    moving = tiling.product.own_axes.get(tiling.next_axis, ())
    prefetched = folding[-1:] if tiling.next_axis else []
    pack_constants(builder, name, prefetched, moving)


def _tile_axes(tiling: Tiling) -> tuple[str, list[str]]:
    """The anchor's own axes of the roles: that of the lanes, the others of the tile."""
    own, roles = tiling.product.own_axes, tiling.roles
    *columns, lanes = own[roles.lanes.name]
    # columns innermost: all columns use each read along the rows immediately
    tiled = [axis for axis in (roles.second_row, roles.row, roles.column) if axis is not None]
    names = [name for axis in tiled for name in own.get(axis.name, ())]
    return lanes, list(dict.fromkeys(name for name in (*names, *columns) if name != lanes))


def _skip_zeros(tiling: Tiling, stage: Stage, lanes: str, tile: list[str]) -> list[str]:
    """Skip taps beside the image, for a position or a whole tile; gives the axes of the taps.

    lanes, tile   the anchor's axes along which vectors lie, and a tile has several elements
    """
    if not is_folded_in_loops(stage):
        return []
    own, roles = tiling.product.own_axes, tiling.roles
    sizes = {a.name: a.length for a in stage.tensor.axes if a.name in tile}
    for axis, size in zip((roles.row, roles.second_row), tiling.tile[1:], strict=True):
        names = own.get(axis.name, ()) if axis is not None else ()
        sizes |= {name: min(size, sizes[name]) for name in names if name in sizes}
    fixed = [roles.second_row] if tiling.skips_rows else []
    fixed += [roles.column] if tiling.has_one_column else []
    for axis in fixed:
        for name in own.get(axis.name, ()) if axis is not None else ():
            sizes.pop(name, None)
    skipped = skip_zeros(tiling.builder, stage.name, frozenset((lanes,)), sizes)
    return list(dict.fromkeys((*tiling.taps, *skipped)))
