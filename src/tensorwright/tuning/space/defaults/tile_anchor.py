"""The reduction of a product inside one register tile: its loops, what is packed for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tensorwright.expr import Load, free_vars
from tensorwright.schedule import FoldConstant, PackConstant, PrefetchNext, Stage
from tensorwright.tuning.space.axes.anchor import Anchor
from tensorwright.tuning.space.axes.roles import AxisRoles
from tensorwright.tuning.space.defaults.borders import is_folded_in_loops, skip_zeros
from tensorwright.tuning.space.defaults.reduction_loops import Choose, split_reduction
from tensorwright.tuning.space.register_tile import nest, split_vectors
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.steps import packable_constants


@dataclass(frozen=True, slots=True)
class TileAnchor:
    """A reduction, the stage that stores its result, and a tile of that.

    width        elements of a vector
    tile         columns, rows, second rows, as chosen by rule
    fixed_rows   whether tiles are one row high whatever is chosen, so that taps outside are skipped
    fixed_column   likewise, whether the axis of columns is not in the tile
    next_axis    the axis of `stored` along which the next tile lies; "" where there is none
    taps         axes along which terms are skipped already
    """

    builder: SketchBuilder
    anchor: str
    stored: str
    roles: AxisRoles
    width: int
    tile: tuple[int, int, int]
    fixed_rows: bool
    fixed_column: bool
    next_axis: str
    taps: Sequence[str]

    def schedule(self, choose: Choose, constants: Sequence[str], *, is_window: bool) -> None:
        """Order and unroll the loops of the reduction, and pack its constants.

        constants   stages that are computed when a network is compiled
        """
        builder, name = self.builder, self.anchor
        stage = builder.state.stage(name)
        lanes, tile = self._tile_axes()
        is_wide = self.roles.lanes.length > self.width
        whole = (), lanes
        vectors, vector = split_vectors(builder, name, lanes, self.width) if is_wide else whole
        tile += vectors
        taps = self._skip_zeros(stage, lanes, tile)
        for constant in constants:
            builder.do(FoldConstant(constant))
        stage = builder.state.stage(name)
        folding, unrolled = split_reduction(
            builder, stage, taps, choose, sums=prod(self.tile), is_window=is_window
        )
        rest = [axis.name for axis in stage.tensor.axes if axis.name not in (lanes, *tile)]
        nest(builder, name, (*rest, *folding), (*unrolled, *tile), vector)
        for packed, load in packable_constants(builder.state, name).items():
            builder.do(PackConstant(packed, name))
            # what one tile reads alone would be asked for as often as it is read: the processor
            # sees by itself that it is read in order
            if folding and self._is_for_next(load):
                builder.do(PrefetchNext(name, packed, folding[-1]))

    def _is_for_next(self, load: Load) -> bool:
        """Whether the next tile reads the same part of an operand as this one."""
        own = self._own_axes.get(self.next_axis, ())
        read = {var.name for index in load.indices for var in free_vars(index)}
        return bool(self.next_axis) and read.isdisjoint(own)

    @property
    def _own_axes(self) -> dict[str, tuple[str, ...]]:
        return Anchor(self.builder.state, self.anchor, self.stored).own_axes

    def _tile_axes(self) -> tuple[str, list[str]]:
        """The anchor's own axes that the roles fall on: that of the lanes, and the others of the
        tile.
        """
        own = self._own_axes
        *columns, lanes = own[self.roles.lanes.name]
        # columns innermost: each read along the rows is then used up at once, by all columns
        roles = (self.roles.second_row, self.roles.row, self.roles.column)
        found = [name for role in roles if role is not None for name in own.get(role.name, ())]
        return lanes, list(dict.fromkeys(name for name in (*found, *columns) if name != lanes))

    def _skip_zeros(self, stage: Stage, lanes: str, tile: list[str]) -> list[str]:
        """Skip taps beside the image, for a position or a whole tile; gives the axes of the taps.

        lanes, tile   the anchor's axes along which vectors lie, and a tile has several elements
        """
        if not is_folded_in_loops(stage):
            return []
        own = self._own_axes
        sizes = {a.name: a.length for a in stage.tensor.axes if a.name in tile}
        _, rows, more_rows = self.tile
        for axis, size in ((self.roles.row, rows), (self.roles.second_row, more_rows)):
            names = own.get(axis.name, ()) if axis is not None else ()
            sizes |= {name: min(size, sizes[name]) for name in names if name in sizes}
        fixed = [self.roles.second_row] if self.fixed_rows else []
        fixed += [self.roles.column] if self.fixed_column else []
        names_of = (own.get(axis.name, ()) for axis in fixed if axis is not None)
        for name in (name for names in names_of for name in names):
            sizes.pop(name, None)
        found = skip_zeros(self.builder, stage.name, frozenset((lanes,)), sizes)
        return list(dict.fromkeys((*self.taps, *found)))
