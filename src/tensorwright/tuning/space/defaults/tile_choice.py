"""The register tile of a product by rule, and what limits its sides."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.base import LINE_BYTES, CpuTarget
from tensorwright.expr import Axis
from tensorwright.tuning.space.axes.accesses import (
    bytes_along,
    count_of,
    folds_in_order,
    has_reuse,
    reads_once,
    slides_along,
)
from tensorwright.tuning.space.axes.anchor import Anchor
from tensorwright.tuning.space.axes.cache_sets import PAGE_BYTES, most_rows
from tensorwright.tuning.space.axes.roles import AxisRoles
from tensorwright.tuning.space.defaults.tile_sizes import (
    DELAYED_CYCLES,
    LATENCY_CYCLES,
    default_tile,
    fold_tile,
    leaves_masked_rest,
    rows_apart_tile,
    window_tile,
)
from tensorwright.tuning.space.sketch import divisors
from tensorwright.tuning.space.tile_limits import CPU_LIMITS

_LONG_ROW = 4  # vectors: from shorter rows, a fold reads as many as fit


@dataclass(frozen=True, slots=True)
class TileChoice:
    """Facts about the tiles of a product, before the tiles exist.

    roles        of the axes that are stored
    width        elements of a vector
    is_fed       whether other stages feed the reduction
    is_inlined   whether a window reads the image itself, without a padded copy
    """

    anchor: Anchor
    target: CpuTarget
    roles: AxisRoles
    width: int
    is_fed: bool
    is_inlined: bool

    @property
    def is_wide(self) -> bool:
        """Whether the lanes' own axis has several vectors: these are the columns then."""
        return self.roles.lanes.length > self.width

    @property
    def columns(self) -> int:
        """The number of columns; of those inside a group, if the lanes have groups."""
        if not self.is_wide:
            return axis_extent(self.roles.column)
        if self.roles.lanes_group:
            return self.roles.lanes_group // self.width
        return -(-self.roles.lanes.length // self.width)

    @property
    def shares_operands(self) -> bool:
        """Whether elements of a tile share operands, so that tiling pays."""
        return has_reuse(self.anchor.tensor)

    @property
    def blocks(self) -> tuple[int, int, int]:
        """The numbers of columns, rows, second rows that belong together in the reduction."""
        roles = self.roles
        columns = roles.lanes_block // self.width if self.is_wide else self.block(roles.column)
        return columns, self.block(roles.row), self.block(roles.second_row)

    def block(self, axis: Axis | None) -> int:
        """The number of neighbours along an axis that belong together in the reduction; 0: all."""
        return self.anchor.block_in(axis) if axis is not None else 0

    def most(self, axis: Axis | None) -> int:
        """The most rows of a tile that stay in the first cache while it reads along them."""
        if axis is None or (axis is self.roles.second_row and self.runs_with(axis)):
            return 1
        most = most_rows(self.anchor, axis, self.target)
        if most is None:
            return axis_extent(axis)
        around = axis is self.roles.second_row  # of rows in the same cache sets
        return max(1, most // min(most, self.most(self.roles.row))) if around else most

    def runs_with(self, axis: Axis) -> bool:
        """Whether an axis moves the same axis of the anchor as those of a tile."""
        others = [a for a in (self.roles.lanes, self.roles.row) if a is not None and a is not axis]
        return any(self.anchor.shares_axis(axis, one) for one in others)

    def by_rule(self) -> tuple[int, int, int]:
        """The register tile by rule: columns, rows, second rows."""
        columns, fold = self.columns, self.anchor.tensor
        lanes = self.roles.lanes.length
        is_shifted = self.is_wide and (columns > 3 or leaves_masked_rest(lanes, self.width))
        # a tile that fits is shifted back at the end; a larger one would be masked: shifting pays
        # where one masked tile is all, and its rest is a vector
        most_columns = lanes // self.width if is_shifted else 8
        if self.is_inlined or self._unrolls_window():
            wide = 1 if self._has_border_lanes() else max(1, min(columns, most_columns))
            row = self.roles.row
            tile = window_tile(wide, axis_extent(row), self.target, self.block(row))
        elif folds_in_order(fold, self.width) and not self.blocks[1]:
            tile = fold_tile(min(columns, most_columns), axis_extent(self.roles.row), self.target)
        elif lanes >= _LONG_ROW * self.width and reads_once(fold) and not any(self.blocks):
            rows = axis_extent(self.roles.row)
            apart, width = self._apart_bytes(), self.width
            tile = rows_apart_tile(lanes, rows, most_columns, apart, width, self.target)
        else:
            tile = default_tile(
                columns,
                self.roles.group or axis_extent(self.roles.row),
                axis_extent(self.roles.second_row),
                self.target,
                most_columns=most_columns,
                column_bytes=self._column_bytes(),
                blocks=self.blocks,
                most_rows=(self.most(self.roles.row), self.most(self.roles.second_row)),
                latency_cycles=self._latency_cycles(),
            )
        if self.is_wide and self.roles.lanes_group:
            return max(divisors(columns, tile[0])), *tile[1:]
        return tile

    def _unrolls_window(self) -> bool:
        """Whether to unroll all terms of sums without common operands: registers keep reads."""
        terms = count_of(self.anchor.tensor.reduce_axes)
        return terms <= CPU_LIMITS.whole_fold and not self.shares_operands and self.is_fed

    def _has_border_lanes(self) -> bool:
        """Whether tiles of two vectors would have conditions along the lanes of a window.

        The image is read without a padded copy, and the window moves along the lanes: all tiles
        have conditions but those between two others. One tile of whole vectors has none, nor have
        two if a vector fills a line: their conditions are decided in advance.
        """
        if not (self.is_inlined and self.is_wide):
            return False
        lanes = self.roles.lanes
        loads = [operand.load for operand in self.anchor.operands]
        tiles, rest = divmod(lanes.length, 2 * self.width)
        decided = 2 if self.target.vector_bytes >= LINE_BYTES else 1
        return (rest > 0 or tiles > decided) and slides_along(loads, self.anchor.tensor, lanes.var)

    def _apart_bytes(self) -> tuple[int, int]:
        """The distances of rows, and of steps of the reduction (or tiles), in memory."""
        read, row = self.anchor.operands, self.roles.row
        folded = [axis.var for axis in self.anchor.tensor.reduce_axes if axis.extent != 1]
        rows = [bytes_along(each.load, row.var) for each in read] if row is not None else []
        steps = [bytes_along(each.load, var) for each in read for var in folded]
        return max(rows, default=0), min(steps, default=PAGE_BYTES)

    def _latency_cycles(self) -> float:
        """The latency of a sum: windows that share nothing wait for loads, not for sums."""
        return DELAYED_CYCLES if self.shares_operands else LATENCY_CYCLES

    def _column_bytes(self) -> int:
        """The bytes of one vector of the constants, over the whole reduction; 0 without any."""
        terms = count_of(self.anchor.tensor.reduce_axes)
        constants = [each.load for each in self.anchor.operands if each.is_constant]
        return terms * sum(self.width * load.dtype.size_bytes for load in constants)


def axis_extent(axis: Axis | None) -> int:
    """The extent of an axis; 1 for None."""
    return axis.length if axis is not None else 1
