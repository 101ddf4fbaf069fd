"""Sizes of register tiles: by rule, and those worth trying.

The register tile of a product by rule, and what limits its sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tensorwright.base import LINE_BYTES, CpuTarget
from tensorwright.expr import Axis
from tensorwright.tuning.space import accesses
from tensorwright.tuning.space.register_tile import CPU_LIMITS
from tensorwright.tuning.space.roles import PAGE_BYTES, Anchor, AxisRoles, is_aligned, most_rows
from tensorwright.tuning.space.sketch import divisors


def few_columns(limit: int, values: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of columns up to a limit; at least one."""
    return tuple(value for value in values if value <= limit) or (1,)


def row_sizes(extent: int, limit: int, block: int = 0) -> tuple[int, ...]:
    """Tile sizes up to a limit worth trying along rows: divisors, some that leave a shifted tail.

    block   rows that belong together: tiles are parts of that, or some whole; 0: none do
    """
    extra = tuple(n for n in (2, 3, 4, 6, 8, 12, 14) if n <= min(extent, limit))
    sizes = sorted({*divisors(extent, limit), *extra})
    return tuple(size for size in sizes if is_aligned(size, block))


def leaves_masked_rest(extent: int, width: int) -> bool:
    """Whether the rest after whole vectors is not a vector of half a register, a quarter, ...

    It is then computed under a mask, and sums under a mask are kept in memory.
    """
    rest = extent % width
    return rest & (rest - 1) != 0


LATENCY_CYCLES = 4.0  # of a multiply-add
DELAYED_CYCLES = 4.7  # with other delays of the next one of the same sum, if they count
_STARTED = 3.2  # instructions a cycle, on a core that runs another thread, too
_FAR_BYTES = 16.0  # a cycle, of prefetched data from beyond the second cache


@lru_cache(maxsize=1024)
def default_tile(
    columns: int,
    rows: int,
    more_rows: int,
    target: CpuTarget,
    most_columns: int = 8,
    column_bytes: int = 0,
    blocks: tuple[int, int, int] = (0, 0, 0),
    most_rows: tuple[int, int] = (CPU_LIMITS.rows, 4),
    latency_cycles: float = DELAYED_CYCLES,
    group: int = 0,
) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) with the best estimated share of peak.

    A tile of c vectors by r rows takes c*r multiply-adds, c + r reads and c*r + c + 1 registers
    per step of the reduction (c*r + c + r where a vector of each row serves several steps); two
    multiply-adds and two reads start per cycle, and a multiply-add takes four cycles.  Sums that
    only just hide that wait whenever something else is late: eight
    vectors reach 0.85 of the speed of twelve.  The vectors come from the second cache, in 1.3
    cycles each, and every row that uses one again saves reading it: few rows cost up to half.
    Tails count as wasted work.

    If an element is spread by a load of its own, that is one more instruction: a long column of
    sums has one for each multiply-add, and a core that is shared does not start them in time.

    column_bytes   what a column of vectors takes over the whole reduction: where a tile's columns
                   fill more than a third of the second cache, and are read again, they come from
                   behind it
    blocks         columns, rows, second rows that belong together: tiles are parts of them, or
                   some of them whole, without a tail, which would begin anywhere in a block as far
                   as is provable; 0: none do
    most_rows      the rows, second rows, that the first cache holds
    latency_cycles of a sum, from one multiply-add to the next
    group          rows that share the vectors; a tile of a whole group may keep an element of each
                   row in a register, and take one vector after the other
    """
    best, best_score = (1, 1, 1), -1.0
    for c in range(1, min(columns, most_columns, 8) + 1):
        leaves = 3 * c * column_bytes > target.l2_bytes and rows * more_rows > CPU_LIMITS.rows
        vector_cycles = target.vector_bytes / _FAR_BYTES if leaves else 1.3
        for second in range(1, min(more_rows, most_rows[1], 4) + 1):
            for r in range(1, min(rows, most_rows[0], CPU_LIMITS.rows) + 1):
                held = c * r * second
                spread = r * second if target.multiplies_by_lane else 1
                is_whole = all(map(_fits, (c, r, second), (columns, rows, more_rows), blocks))
                kept = c + spread if r != group else min(c, r * second) + 1
                if held + kept > target.vector_registers or not is_whole:
                    continue
                reads = c + r * second
                cycles = max(held / 2, reads / 2, vector_cycles * c, latency_cycles)
                if not target.spreads_operands:
                    cycles = max(cycles, (held + reads) / _STARTED)
                share = held / 2 / cycles
                for size, extent in ((c, columns), (r, rows), (second, more_rows)):
                    share *= extent / (-(-extent // size) * size)
                share *= 1.0 - 0.5 / (r * second) - 0.01 * (second - 1)
                if share > best_score:
                    best, best_score = (c, r, second), share
    return best


def _fits(size: int, extent: int, block: int) -> bool:
    """Whether tiles of a size are parts of blocks, or whole ones that divide the extent."""
    return not block or (is_aligned(size, block) and extent % size == 0)


_FOLD_BYTES = 128  # of sums: a core reads no more from its second cache during an addition
_FOLD_TILES = 4  # the least number, so that several threads have some


def fold_tile(columns: int, rows: int, target: CpuTarget) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) of a fold that reads every element once.

    It reads in the order of memory, and waits for memory, which is fast if few rows are read at
    once.  More sums than hide the latency of an addition are useless.  Tails count as wasted work.
    """
    enough = max(1, _FOLD_BYTES // target.vector_bytes)
    best, best_score = (1, 1, 1), -1.0
    for r in range(1, min(rows, enough) + 1):
        for c in range(1, min(columns, enough // r) + 1):
            tiles = -(-columns // c) * -(-rows // r)
            whole = columns / (-(-columns // c) * c) * rows / (-(-rows // r) * r)
            score = whole * c * r * min(1.0, tiles / _FOLD_TILES)
            if score > best_score:
                best, best_score = (c, r, 1), score
    return best


# A fold across rows touches another page at each step, so its tiles are wide and have few rows.
_VISIT_BYTES = 256  # bytes of the second cache that take as long as beginning in another page
_LONGEST_RUN = 8  # vectors
_FEWEST_TILES = 2  # for threads to share


def rows_apart_tile(
    lanes: int, rows: int, longest: int, apart: tuple[int, int], width: int, target: CpuTarget
) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) of a fold that reads every element once.

    The terms of a sum are further apart than neighbouring sums. A step reads a run of vectors of
    each row, in another page or in that of the row or step before. Beginning in a page costs more
    than a vector, so runs are long.  The last tile of lanes that are not whole tiles is shifted
    back: vectors that fill a line then cross two lines.

    lanes, width   elements of a row, of a vector
    longest        the most vectors of a row
    apart          bytes from a row to the next, and from a step of the reduction to the next
    """
    row_pages, step_pages = (min(1.0, each / PAGE_BYTES) for each in apart)
    visit = _VISIT_BYTES / target.vector_bytes * step_pages
    many = target.vector_registers * 3 // 4
    best, best_cost = (1, 1, 1), float("inf")
    for c in range(1, min(-(-lanes // width), longest, _LONGEST_RUN) + 1):
        across = -(-lanes // (c * width))
        is_torn = across > 1 and lanes % (c * width) > 0 and target.vector_bytes >= LINE_BYTES
        vectors = c * (across + is_torn)
        for r in range(1, min(rows, CPU_LIMITS.rows) + 1):
            held = c * r
            if held + 2 > target.vector_registers:
                break
            down = -(-rows // r)
            pages = 1.0 + (r - 1) * row_pages
            cycles = max(1.0, many / held) + visit * pages / held
            cycles *= vectors * down * r / min(1.0, across * down / _FEWEST_TILES)
            if cycles < best_cost:
                best, best_cost = (c, r, 1), cycles
    return best


_WINDOW_ROWS = 7


def window_tile(columns: int, rows: int, target: CpuTarget, block: int = 0) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) of unrolled windows that share nothing.

    Tiles at a border without padding evaluate conditions, so a tile is small. It is two vectors
    wide if there are two, so that a cache line and its prefetched neighbour are both used.  A short
    row is one tile, whose conditions along it are decided when it is unrolled.  Sums take half of
    the registers; the others hold reads that neighbours share.

    block   rows that belong together, as for `row_sizes`
    """
    wide = min(columns, 2)
    vectors = target.vector_registers // 2
    if wide * rows <= vectors:
        return wide, rows, 1
    most = min(vectors // wide, _WINDOW_ROWS)
    sizes = [r for r in range(most // 2, most + 1) if is_aligned(r, block)]
    # the least work in tails; of those the longest tile
    best = min(sizes, key=lambda r: (-(-rows // r) * r, -r), default=0)
    return wide, best or divisors(block, most)[-1], 1


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
        return accesses.has_reuse(self.anchor.tensor)

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
        # all terms of sums without common operands are unrolled: registers keep what they read
        is_short = accesses.count_of(fold.reduce_axes) <= CPU_LIMITS.whole_fold
        if self.is_inlined or (is_short and not self.shares_operands and self.is_fed):
            wide = 1 if self._has_border_lanes() else max(1, min(columns, most_columns))
            row = self.roles.row
            tile = window_tile(wide, axis_extent(row), self.target, self.block(row))
        elif accesses.folds_in_order(fold, self.width) and not self.blocks[1]:
            tile = fold_tile(min(columns, most_columns), axis_extent(self.roles.row), self.target)
        elif lanes >= _LONG_ROW * self.width and accesses.reads_once(fold) and not any(self.blocks):
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
                # windows that share nothing wait for loads, not for sums
                latency_cycles=DELAYED_CYCLES if self.shares_operands else LATENCY_CYCLES,
                group=self.roles.group,
            )
        if self.is_wide and self.roles.lanes_group:
            return max(divisors(columns, tile[0])), *tile[1:]
        return tile

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
        return (rest > 0 or tiles > decided) and accesses.slides_along(
            loads, self.anchor.tensor, lanes.var
        )

    def _apart_bytes(self) -> tuple[int, int]:
        """The distances of rows, and of steps of the reduction (or tiles), in memory."""
        read, row = self.anchor.operands, self.roles.row
        folded = [axis.var for axis in self.anchor.tensor.reduce_axes if axis.extent != 1]
        rows = (
            [accesses.bytes_along(each.load, row.var) for each in read] if row is not None else []
        )
        steps = [accesses.bytes_along(each.load, var) for each in read for var in folded]
        return max(rows, default=0), min(steps, default=PAGE_BYTES)

    def _column_bytes(self) -> int:
        """The bytes of one vector of the constants, over the whole reduction; 0 without any."""
        terms = accesses.count_of(self.anchor.tensor.reduce_axes)
        constants = [each.load for each in self.anchor.operands if each.is_constant]
        return terms * sum(self.width * load.dtype.size_bytes for load in constants)


def axis_extent(axis: Axis | None) -> int:
    """The extent of an axis; 1 for None."""
    return axis.length if axis is not None else 1
