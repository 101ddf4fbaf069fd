"""One product in register tiles: the steps of a sketch of the tile heuristic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.expr import Axis, Index
from tensorwright.tuning.space import accesses, steps
from tensorwright.tuning.space.defaults.pack_operand import (
    ENOUGH_PIECES,
    FEWEST_BANDS,
    MOST_BAND_ROWS,
    SHORT_ROWS,
    copies_much,
    enough_bands,
    is_fed_again,
    place_packed_panel,
    tiles_of_band,
)
from tensorwright.tuning.space.defaults.tile_sizes import (
    TileChoice,
    axis_extent,
    few_columns,
    row_sizes,
)
from tensorwright.tuning.space.register_tile import CPU_LIMITS, nest, tile_registers
from tensorwright.tuning.space.roles import (
    Anchor,
    AxisRoles,
    axis_of,
    is_aligned,
    rows_inside_columns,
)
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors

_FEW_VECTORS = 8  # of sums: with fewer, each addition waits for the one before
_MOST_DEEP = 8
_POINT_LANES = 4  # lanes of a product in registers that take as long as a point of another stage


class Order(Enum):
    """The order of the loops over tiles, and the position of the stages that feed the reduction."""

    COLUMNS_OUTSIDE = "tile, columns outside"  # feeding stages whole, at the root
    ROWS_OUTSIDE = "tile, rows outside"  # feeding stages for a band of rows
    BANDS = "tile, bands of rows"  # columns outside, feeding stages for a band of rows
    PACKED_PANELS = "tile, columns packed"  # columns outside, those of an activation copied first
    INLINED = "tile, padding inlined"  # bands of rows, nothing computed before


@dataclass(slots=True)
class Tiling:
    """Working state while one tile sketch is built; mutable, used inside one function.

    roles          of the axes of `stored`, the stage that stores what `anchor` folds
    packed_panel   the copy of the wide operand's columns, "" if there is none
    skips_rows     tiles are one row high, so that taps outside are skipped
    taps           axes of the sum along which terms are skipped
    prefix         of the names of choices, if a program has several products, each tiled
                   separately: other code then schedules the stages before and after
    tile           columns, rows, second rows, as chosen by rule
    has_one_column    along the axis of columns, which is then not in the tile
    shifts_in_group   whether rows of a tile do not divide the rows of a group
    next_axis      of `stored`, along which the next tile lies
    band           the loop over bands of rows, if there is one
    """

    builder: SketchBuilder
    target: CpuTarget
    anchor: str
    stored: str
    roles: AxisRoles
    order: Order
    packed_panel: str = ""
    skips_rows: bool = False
    taps: Sequence[str] = ()
    prefix: str = ""
    width: int = field(init=False)
    sizes: TileChoice = field(init=False)
    feeding: list[str] = field(init=False, default_factory=list)
    following: list[str] = field(init=False, default_factory=list)
    constants: tuple[str, ...] = field(init=False, default=())
    tile: tuple[int, int, int] = field(init=False, default=(1, 1, 1))
    has_one_column: bool = field(init=False, default=False)
    shifts_in_group: bool = field(init=False, default=False)
    next_axis: str = field(init=False, default="")
    band: str = field(init=False, default="")

    def __post_init__(self) -> None:
        state, roles = self.builder.state, self.roles
        width = accesses.vector_within(
            roles.lanes_group, accesses.lanes_for(self.target, state.stage(self.anchor))
        )
        self.width = accesses.vector_within(roles.lanes_block, width)
        if not roles.rows and roles.lanes.length > self.width:  # the lanes give the columns
            self.roles = replace(roles, rows=roles.columns[-1:], columns=())
        if not self.prefix:
            names = [stage.name for stage in state.stages]
            self.following = names[names.index(self.stored) + 1 :]
            self.constants = steps.constant_stages(state)
            done = (*self.following, *self.constants, self.anchor, self.stored, self.packed_panel)
            self.feeding = [
                stage.name
                for stage in state.stages
                if stage.name not in done and isinstance(stage.placement, schedule.AtRoot)
            ]
        self.sizes = TileChoice(
            self.product,
            self.target,
            self.roles,
            self.width,
            is_fed=bool(self.feeding),
            is_inlined=self.order is Order.INLINED,
        )

    @property
    def product(self) -> Anchor:
        """The reduction and the stage that stores it, as scheduled so far."""
        return Anchor(self.builder.state, self.anchor, self.stored)

    def arrange(self) -> None:
        """Tile the stored stage, place the anchor in its tiles, schedule what feeds it."""
        outer = self._tile_stored()
        loop, band = self._parallelise(outer)
        if loop:
            self.builder.do(schedule.ComputeAt(self.anchor, self.stored, loop))
        if self.packed_panel:
            place_packed_panel(self.builder, self.packed_panel, self.stored, band, self.target)
        inside = {self.anchor, self.stored}
        for name in reversed(self.feeding):  # readers first: a band may hold what they read too
            readers = {reader.name for reader in self.builder.state.readers(name)}
            if band and not self.packed_panel and readers and readers <= inside:
                self._compute_in_band(name, band)
                inside.add(name)
            else:
                steps.schedule_at_root(self.builder, name, self.target, name)

    def finish(self) -> None:
        """Pack what the stored stage reads, and schedule what follows it."""
        steps.pack_across(self.builder, self.stored, self.roles.lanes)
        for name in self.following:
            steps.schedule_at_root(self.builder, name, self.target, name)

    def _tile_stored(self) -> list[str]:
        """Split and reorder the loops of the stage that stores; returns those over tiles."""
        tile = self.tile = self.sizes.by_rule()
        columns, column_outer, column_inner, lanes = self._split_columns(tile[0])
        rows, row_outer, row_inner = self._split_rows(*tile[1:])
        deep, deep_inner = self._split_more_columns(prod(tile), tile[0])
        self.has_one_column = self.sizes.is_wide and not deep_inner
        across = columns * prod(deep)
        by_lane = prod(rows) if rows and self.target.multiplies_by_lane else 0
        self.builder.limit(across * prod(rows) + across + by_lane, tile_registers(self.target))
        outer = self._order_tiles(column_outer, row_outer)
        self.next_axis = axis_of(self.builder.state.stage(self.stored), outer[-1]) if outer else ""
        inner = [*column_inner, *deep_inner, *row_inner]
        nest(self.builder, self.stored, outer, inner, lanes)
        return outer

    def _split_columns(self, default: int) -> tuple[Index, list[str], list[str], str]:
        """Split the lanes, or the axis of the columns: (columns of a tile, loops over tiles, loops
        in a tile, the vector loop).
        """
        lanes, extent = self.roles.lanes.name, self.roles.lanes.length
        full = default * self.width
        is_shifted = self.sizes.is_wide and extent % full != 0 and extent >= full
        most = extent // self.width if is_shifted else self.sizes.columns
        choices = few_columns(most, (1, 2, 3, 4, 6, 8))
        if default > 1 and not self.target.spreads_operands and self.sizes.shares_operands:
            # with one column, each row takes a load that spreads an element
            choices = tuple(size for size in choices if size > 1)
        choices = tuple(size for size in choices if is_aligned(size, self.sizes.blocks[0]))
        if self.sizes.is_wide and self.roles.lanes_group:  # a tile stays inside its group
            choices = divisors(self.sizes.columns, 8)
        columns = self.choose("columns", choices, default)
        if self.sizes.is_wide:
            tail = schedule.Tail.SHIFT if is_shifted else schedule.Tail.GUARD
            self.builder.do(schedule.Split(self.stored, lanes, (columns, self.width), tail))
            return columns, [f"{lanes}_0"], [f"{lanes}_1"], f"{lanes}_2"
        if self.roles.column is not None:
            name = self.roles.column.name
            self._split(self.roles.column, (columns,), default)
            return columns, [f"{name}_o"], [f"{name}_i"], lanes
        return columns, [], [], lanes

    def _split_more_columns(self, vectors: int, columns: int) -> tuple[list[Index], list[str]]:
        """Split the other axis of columns if a tile is too small: (columns, loops in a tile).

        vectors, columns   of the tile so far; few sums wait for each other
        """
        axis = self.roles.column if self.sizes.is_wide and vectors <= _FEW_VECTORS else None
        if axis is None or self.sizes.runs_with(axis):
            return [], []
        most = max(1, tile_registers(self.target) // (vectors + columns))
        sizes = divisors(axis.length, min(_MOST_DEEP, most))
        usual = max(size for size in sizes if size * vectors <= 2 * _FEW_VECTORS)
        factor = self.choose("more_columns", sizes, usual)
        self._split(axis, (factor,), usual)
        return [factor], [f"{axis.name}_i"]

    def _split_rows(self, rows: int, more_rows: int) -> tuple[list[Index], list[str], list[str]]:
        """Split the axes of the rows: (rows of a tile, loops over tiles, loops in a tile)."""
        roles = self.roles
        sizes = row_sizes(
            axis_extent(roles.row),
            min(CPU_LIMITS.rows, self.sizes.most(roles.row)),
            self.sizes.block(roles.row),
        )
        if roles.group:  # a tile stays inside its group
            fitting = divisors(roles.group, CPU_LIMITS.rows)
            self.shifts_in_group = 2 * max(n for n in fitting if n <= rows) <= rows
            if self.shifts_in_group:
                sizes = row_sizes(roles.group, CPU_LIMITS.rows)
                rows = -(-roles.group // -(-roles.group // rows))
            else:
                sizes = fitting
                rows = max(n for n in fitting if n <= rows)
        second = roles.second_row
        more: tuple[int, ...] = (1,)
        if not self.skips_rows:
            most = min(8, self.sizes.most(second))
            more = row_sizes(axis_extent(second), most, self.sizes.block(second))
        factors: list[Index] = []
        outer: list[str] = []
        inner: list[str] = []
        for label, axis, values, size in (
            ("more_rows", second, more, 1 if self.skips_rows else more_rows),
            ("rows", roles.row, sizes, rows),
        ):
            if axis is None:
                continue
            factors.append(self.choose(label, values, size))
            if axis is roles.second_row and self._has_bands(size):
                self._split_band(axis, factors[-1], size)
                outer.append(f"{axis.name}_1")
                inner.append(f"{axis.name}_2")
            elif axis is roles.row and self.shifts_in_group:
                self.builder.do(schedule.Split(self.stored, axis.name, (roles.group,)))
                self.builder.do(
                    schedule.Split(
                        self.stored, f"{axis.name}_i", (factors[-1],), schedule.Tail.SHIFT
                    )
                )
                outer += [f"{axis.name}_o", f"{axis.name}_i_o"]
                inner.append(f"{axis.name}_i_i")
            else:
                self._split(axis, (factors[-1],), size)
                outer.append(f"{axis.name}_o")
                inner.append(f"{axis.name}_i")
        return factors, outer, inner

    def _order_tiles(self, columns: list[str], rows: list[str]) -> list[str]:
        """The loops over tiles, outermost first; axes without tiles are outside of them."""
        roles, state = self.roles, self.builder.state
        tiled = (roles.lanes, roles.column, roles.row, roles.second_row)
        taken = {axis.name for axis in tiled if axis is not None}
        if self.sizes.is_wide and roles.column is not None:
            taken.discard(roles.column.name)
        axes = state.stage(self.stored).tensor.axes
        leaves = state.stage(self.stored).loops
        batch = [axis.name for axis in axes if axis.name not in taken]
        batch = [name if name in leaves else f"{name}_o" for name in batch]
        if self.order is Order.ROWS_OUTSIDE:
            band = [self.band] if self.band else []
            return [*batch, *band, *rows, *columns]
        if self.band and self.order is Order.INLINED and self.sizes.is_wide:
            return [self.band, *batch, *rows, *columns]  # the next columns lie beside these
        if self.band:
            return [self.band, *batch, *columns, *rows]
        if self.order is Order.BANDS and self.feeding and not self.sizes.shares_operands:
            return [*batch, *rows, *columns]  # the inputs of a row serve all columns
        again = rows_inside_columns(state, self.anchor, roles, self.target)
        batch = [name for name in batch if name not in again]
        return [*batch, *columns, *again, *rows]

    def choose(
        self, name: str, values: tuple[int, ...], default: int, kind: Kind = Kind.TILE
    ) -> Index:
        """Open a decision, its name with the prefix."""
        return self.builder.choose(f"{self.prefix}{name}", values, default, kind)

    def _split(self, axis: Axis, factors: tuple[Index, ...], default: int) -> None:
        """Split an axis; a last tile, of `default` elements by rule, is shifted back if it can."""
        extent = axis.length
        tail = (
            schedule.Tail.SHIFT if extent % default and extent >= default else schedule.Tail.GUARD
        )
        self.builder.do(schedule.Split(self.stored, axis.name, factors, tail))

    def _split_band(self, axis: Axis, rows: Index, size: int) -> None:
        """Split the second rows into bands of tiles; one thread computes all channels of a band.

        The stages before and after are divided into bands of rows, too, so most reads of a thread
        are in its own cache.
        """
        extent = axis.length
        most = SHORT_ROWS if self.order is Order.ROWS_OUTSIDE else MOST_BAND_ROWS
        axes = self.builder.state.stage(self.stored).tensor.axes
        # one band may be all if its inputs were computed again for each
        fewest = enough_bands(axes, self.roles) if self.order is Order.INLINED else 1
        usual = tiles_of_band(extent, size, most, fewest)
        band = self.choose("band", row_sizes(-(-extent // size), 32), usual, Kind.PARALLEL)
        self._split(axis, (band, rows), usual * size)
        self.band = f"{axis.name}_0"

    def _has_bands(self, rows: int) -> bool:
        """Whether the second rows, in tiles of a size, are divided into bands of tiles."""
        if self.order in (Order.BANDS, Order.INLINED):
            return True
        if self.order is not Order.ROWS_OUTSIDE or self.roles.second_row is None:
            return False
        if axis_extent(self.roles.second_row) < FEWEST_BANDS * SHORT_ROWS:
            return False
        feeding = frozenset(self.feeding)
        return copies_much(self.product, feeding, self.roles.second_row, rows, self.width)

    def _parallelise(self, outer: list[str]) -> tuple[str, str]:
        """Fuse and spread the loops over tiles.

        Returns the loop that holds one tile ("": all is one tile) and the loop that holds a band of
        rows, which is where feeding stages are computed ("": at the root).
        """
        anchor = self.builder.state.stage(self.anchor).tensor
        work = accesses.points(anchor)
        if accesses.has_reuse(anchor):
            work = work * _POINT_LANES // self.width
        if not outer:
            return "", ""
        whole = not (self.feeding or self.packed_panel or self.order is Order.INLINED)
        if self.order is Order.COLUMNS_OUTSIDE or whole:
            return steps.parallelise(self.builder, self.stored, outer, work) or outer[-1], ""
        rows = [a for a in (self.roles.second_row, self.roles.row) if a is not None]
        cut = outer.index(f"{rows[0].name}_o") + 1 if rows and not self.band else len(outer)
        if self.packed_panel:
            cut = outer.index(f"{rows[0].name}_o")
        if self.band:
            cut = outer.index(f"{rows[0].name}_1")
        elif not self.packed_panel:
            cut = self._where_fed(outer, cut)
        product, around = self.product, {*outer[:cut]}
        over = [a for a in product.axes if {a.name, f"{a.name}_o", f"{a.name}_0"} & around]
        tiles = [(axis, self._tiles_along(axis)) for axis in over]
        if not self.packed_panel and is_fed_again(product, tiles, self.feeding):
            return steps.parallelise(self.builder, self.stored, outer, work) or outer[-1], ""
        band = steps.parallelise(self.builder, self.stored, outer[:cut], work) or outer[cut - 1]
        loop = outer[-1] if cut < len(outer) else band
        return loop, "" if self.order is Order.INLINED else band

    def _where_fed(self, loops: list[str], cut: int) -> int:
        """The number of loops over tiles, enough for all threads, around the feeding stages."""
        loads = [operand.load for operand in self.product.operands]
        fed = [load for load in loads if load.source.name in self.feeding]
        stored = self.builder.state.stage(self.stored)
        axes = {axis_of(stored, loop): loop for loop in loops[:cut]}
        over = [axis for axis in stored.tensor.axes if axis.name in axes]
        over.sort(key=lambda axis: loops.index(axes[axis.name]))
        while len(over) > 1 and not any(accesses.reads_along(load, over[-1].var) for load in fed):
            around = prod(self._tiles_along(axis) for axis in over[:-1])
            if around < ENOUGH_PIECES or loops[cut - 1] != axes[over[-1].name]:
                break
            over.pop()
            cut -= 1
        return cut

    def _tiles_along(self, axis: Axis) -> int:
        """The number of tiles, as chosen by rule, along an axis."""
        columns, rows, more_rows = self.tile
        sizes: dict[Axis | None, int]
        sizes = {self.roles.lanes: columns * self.width if self.sizes.is_wide else self.width}
        sizes[self.roles.column] = 1 if self.sizes.is_wide else columns
        sizes |= {self.roles.row: rows, self.roles.second_row: more_rows}
        return -(-axis.length // sizes.get(axis, 1))

    def _compute_in_band(self, name: str, band: str) -> None:
        self.builder.do(schedule.ComputeAt(name, self.stored, band))
        axes = self.builder.state.stage(name).tensor.axes
        if not axes or axes[-1].length < 2:
            return
        lanes = accesses.lanes_for(self.target, self.builder.state.stage(name))
        loops = steps.vector_loops(self.builder, name, lanes)
        self.builder.do(schedule.Vectorize(name, loops[-1][0]))
