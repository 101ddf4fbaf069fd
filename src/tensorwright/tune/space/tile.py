"""The tile rule: products of tensors (convolution, matmul), computed in register tiles.

The stage that stores the result is tiled over three axes: lanes (contiguous in memory), columns
(more vectors of the operand that the lanes read) and rows (the axis along which that operand is
used again).  The reduction is computed inside the loop over tiles, into a buffer of the tile's
size: all of it stays in vector registers, its loops unrolled. Constants that the reduction reads
are packed into the order in which it reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from tensorwright.base import Target
from tensorwright.expr import (
    Axis,
    Index,
    Load,
    Mod,
    Tensor,
    exact_div,
    free_vars,
    loads_of,
    terms_of,
)
from tensorwright.schedule import (
    AtRoot,
    CacheRead,
    CacheWrite,
    ComputeAt,
    PackConstant,
    PrefetchNext,
    Reorder,
    ScheduleState,
    Split,
    Stage,
    StageScope,
    Tail,
    Unroll,
    Vectorize,
)
from tensorwright.tune.space.common import (
    accumulators,
    ensure_epilogue,
    inline_elementwise,
    lanes_for,
    parallelise,
    spread,
)
from tensorwright.tune.space.pack_operand import pack_operand, place_panel
from tensorwright.tune.space.roles import (
    Operand,
    common_group,
    extent_of,
    group_size,
    has_reuse,
    operands,
    points,
    reads_along,
    stride_along,
    vector_within,
)
from tensorwright.tune.space.sketch import Kind, Sketch, SketchBuilder, divisors


class _Order(Enum):
    """The order of the loops over tiles, and where the stages that feed the reduction are
    computed.
    """

    COLUMNS_OUTSIDE = "tile, columns outside"  # feeding stages whole, at the root
    ROWS_OUTSIDE = "tile, rows outside"  # feeding stages for a band of rows
    BANDS = "tile, bands of rows"  # columns outside, feeding stages for a band of rows
    PANELS = "tile, columns packed"  # columns outside, those of an activation copied first


@dataclass(frozen=True, slots=True)
class _Roles:
    """Axes of the stored stage: lanes, columns (may be the lanes' own axis, split), rows and a
    second row axis.

    group        so many neighbouring rows share the vector operand; 0: all
    lanes_group  so many neighbouring lanes share the other operands; 0: all
    """

    lanes: Axis
    columns: Axis | None
    rows: Axis | None
    more_rows: Axis | None
    group: int = 0
    lanes_group: int = 0


def find_anchor(state: ScheduleState) -> Stage | None:
    """The reduction that does the most work, or None."""
    folding = [stage for stage in state.stages if stage.tensor.reduction is not None]
    return max(folding, key=lambda stage: points(stage.tensor), default=None)


def tile_sketches(state: ScheduleState, target: Target) -> tuple[Sketch, ...]:
    """Sketches of the tile rule; none where it does not apply.

    It applies to one reduction in a program of one output, if its reads are contiguous (or the
    same) along some axis.
    """
    anchor = find_anchor(state)
    folds = sum(stage.tensor.reduction is not None for stage in state.stages)
    if anchor is None or folds != 1 or len(state.outputs) != 1:
        return ()
    if all(axis.extent == 1 for axis in anchor.tensor.axes):
        return ()
    shared = _Order.COLUMNS_OUTSIDE, _Order.ROWS_OUTSIDE
    if _activations_per_constant(state) > _ROWS_FIRST:
        shared = _Order.ROWS_OUTSIDE, _Order.COLUMNS_OUTSIDE
    orders = (_Order.BANDS, _Order.COLUMNS_OUTSIDE)
    if has_reuse(anchor.tensor):
        orders = (_Order.PANELS, *shared)
    built = (_tile_sketch(state, target, anchor.name, order) for order in orders)
    found = [sketch for sketch in built if sketch is not None]
    # an operand put into another order is not worth the work for every band again
    found.sort(key=lambda sketch: _transposes(sketch) and not _feeds_whole(sketch))
    return tuple(found)


def _transposes(sketch: Sketch) -> bool:
    return any(isinstance(step, CacheRead) for step in sketch.trace)


def _feeds_whole(sketch: Sketch) -> bool:
    return sketch.name in (_Order.COLUMNS_OUTSIDE.value, _Order.PANELS.value)


def _tile_sketch(state: ScheduleState, target: Target, anchor: str, order: _Order) -> Sketch | None:
    builder = SketchBuilder(state)
    feeding = _feeding(state, anchor)
    inline_elementwise(builder, keep=feeding)
    stored = ensure_epilogue(builder, anchor)
    width = lanes_for(target, builder.state.stage(anchor))
    if stored != anchor and _is_scattered(builder.state, anchor, stored, width):
        builder.do(CacheWrite(anchor))
        stored = anchor
    if stored == anchor:
        anchor = CacheWrite(anchor).cached
    _transpose_operands(builder, anchor, stored, width)
    roles = _find_roles(builder.state, anchor, stored, width)
    if roles is None:
        return None
    panel = ""
    if order is _Order.PANELS:
        panel = pack_operand(builder, anchor, stored, roles.lanes, roles.rows)
        if not panel or extent_of(roles.lanes.extent) <= width:
            return None
    _Tiling(builder, target, anchor, stored, roles, order, panel).build()
    return builder.sketch(order.value)


def _feeding(state: ScheduleState, anchor: str) -> frozenset[str]:
    """The stages that the anchor reads and that read nothing computed but each other."""
    found: set[str] = set()
    pending = [anchor]
    while pending:
        name = pending.pop()
        for load in loads_of(state.stage(name).tensor.body):
            if state.has_stage(load.source.name) and load.source.name not in found:
                found.add(load.source.name)
                pending.append(load.source.name)
    direct = {load.source.name for load in loads_of(state.stage(anchor).tensor.body)}
    return frozenset(found & direct)


def _transpose_operands(builder: SketchBuilder, anchor: str, stored: str, width: int) -> None:
    """Copy an operand that is read across its rows along the last axis into the other order.

    The last axis that fills half a vector, that is, if there is one.
    """
    state = builder.state
    axes = state.stage(stored).tensor.axes
    long_axes = [axis for axis in axes if 2 * extent_of(axis.extent) >= width]
    last = long_axes[-1] if long_axes else axes[-1]
    found = operands(state, state.stage(anchor), state.stage(stored))
    if last.extent == 1 or len(found) < 2:
        return
    links = dict(zip(loads_of(state.stage(anchor).tensor.body), found, strict=True))
    for load, operand in links.items():
        if operand.is_constant or stride_along(operand.load, last.var) in (0, 1):
            continue
        if group_size(operand.load, last.var):
            continue
        across = [n for n, i in enumerate(operand.load.indices) if last.var in free_vars(i)]
        rank = len(load.indices)
        if len(across) == 1 and across[0] != rank - 1:
            order = (*(n for n in range(rank) if n != across[0]), across[0])
            builder.do(CacheRead(load.source.name, anchor, StageScope.GLOBAL, order))


def _is_scattered(state: ScheduleState, anchor: str, stored: str, width: int) -> bool:
    """Whether a product is better stored along its own axes than along those of its reader.

    A transposed convolution is stored with its phases interleaved: along the reader's axes the
    kernel changes with every element, and no axis is left for the rows.  A product whose columns
    become channels of a blocked layout is read with gaps, which a tile would compute for nothing.
    """
    roles = _find_roles(state, anchor, stored, width)
    if roles is not None:
        body = state.stage(stored).tensor.body
        link = next(x for x in loads_of(body) if x.source.name == anchor)
        steps = {c for i in link.indices for m, c in terms_of(i) if m == (roles.lanes.var,)}
        if steps - {1}:
            return True
    if not has_reuse(state.stage(anchor).tensor):
        return False
    own = _find_roles(state, anchor, anchor, width)
    return own is not None and own.rows is not None and (roles is None or roles.rows is None)


def _find_roles(state: ScheduleState, anchor: str, stored: str, width: int) -> _Roles | None:
    found = operands(state, state.stage(anchor), state.stage(stored))
    axes = [axis for axis in state.stage(stored).tensor.axes if extent_of(axis.extent) > 1]
    lanes = _lanes_axis(axes, found, width)
    if lanes is None:
        return None
    others = [axis for axis in axes if axis is not lanes]
    grouped = common_group(found, lanes.var)
    shares = {o: not reads_along(o.load, lanes.var) for o in found}
    shares |= {o: True for o in found if grouped and group_size(o.load, lanes.var)}
    wide = [o for o in found if not shares[o]]
    narrow = [o for o in found if shares[o]]

    def is_read(group: list[Operand], axis: Axis) -> bool:
        return any(reads_along(operand.load, axis.var) for operand in group)

    columns = [a for a in others if narrow and is_read(wide, a) and not is_read(narrow, a)]
    rows = [a for a in others if not all(reads_along(o.load, a.var) for o in wide)]
    rows = [a for a in rows if a not in columns]
    if not rows and not narrow:
        rows = others
    if not rows:
        for axis in others:
            along = [o for o in wide if reads_along(o.load, axis.var)]
            group = common_group(along, axis.var)
            if group and all(group_size(o.load, axis.var) for o in along):
                return _Roles(lanes, columns[-1] if columns else None, axis, None, group, grouped)
    return _Roles(
        lanes,
        columns[-1] if columns else None,
        rows[-1] if rows else None,
        rows[-2] if len(rows) > 1 else None,
        lanes_group=grouped,
    )


_ACROSS = 16.0  # the cost of gathering a vector where a contiguous read costs one
_APART = 8.0  # that of gathering it from a few neighbouring ones, as pooling with a stride does


def _lanes_axis(axes: list[Axis], found: tuple[Operand, ...], width: int) -> Axis | None:
    """The axis with the cheapest vectors; None where every axis is read across rows.

    Reads across rows cost much: they are in the inner loop.  A store across rows costs little: it
    happens once.  Vectors that fill a group exactly read the same from what the group shares.
    """

    def cost(axis: Axis) -> tuple[float, int]:
        total = 0.0 if axis is axes[-1] else 4.0
        group = common_group(found, axis.var)
        for operand in found:
            if group and group_size(operand.load, axis.var):
                continue
            stride = stride_along(operand.load, axis.var)
            if not operand.is_constant and stride not in (0, 1):
                near = len(found) == 1 and stride is not None and 0 < stride <= 4
                total += _APART if near else _ACROSS
        if not any(reads_along(o.load, axis.var) for o in found):
            total += 8.0
        extent = vector_within(group, width) if group else extent_of(axis.extent)
        return total + 16.0 / extent, -extent

    best = min(axes, key=cost, default=None)
    return best if best is not None and cost(best)[0] < _ACROSS else None


_ROWS_FIRST = 0.5


def _activations_per_constant(state: ScheduleState) -> float:
    """Bytes of inputs and outputs for each byte of constants.

    Threads that share out rows read all constants each; threads that share out columns read all
    inputs, half of them from the cache of another core, which has just computed them.
    """
    moved = {True: 0, False: 0}
    outputs = (state.stage(name).tensor for name in state.outputs)
    tensors: tuple[Tensor, ...] = (*state.inputs, *outputs)
    for tensor in tensors:
        size = prod(extent_of(extent) for extent in tensor.shape) * tensor.dtype.size_bytes
        moved[tensor.name in state.constants] += size
    return moved[False] / moved[True] if moved[True] else 0.0


class _Tiling:
    """Mutable working state while one tile sketch is built."""

    def __init__(
        self,
        builder: SketchBuilder,
        target: Target,
        anchor: str,
        stored: str,
        roles: _Roles,
        order: _Order,
        panel: str = "",
    ) -> None:
        self.builder = builder
        self.target = target
        self.anchor = anchor
        self.stored = stored
        self.order = order
        self.panel = panel  # the copy of the wide operand's columns, where there is one
        self.width = vector_within(
            roles.lanes_group, lanes_for(target, builder.state.stage(anchor))
        )
        if roles.rows is None and extent_of(roles.lanes.extent) > self.width:
            roles = replace(roles, rows=roles.columns, columns=None)  # the lanes give the columns
        self.roles = roles
        self.band = ""  # the loop over bands of rows, where there is one
        self.feeding = [
            s.name
            for s in builder.state.stages
            if s.name not in (anchor, stored, panel) and isinstance(s.placement, AtRoot)
        ]
        position = [s.name for s in builder.state.stages].index(stored)
        self.following = [s.name for s in builder.state.stages[position + 1 :]]
        self.feeding = [name for name in self.feeding if name not in self.following]

    def build(self) -> None:
        """Tile the stored stage, place the anchor in its tiles, schedule what feeds it."""
        outer, inner, lanes = self._tile_stored()
        for loop in inner:
            self.builder.do(Unroll(self.stored, loop))
        self.builder.do(Vectorize(self.stored, lanes))
        place, band = self._parallelise(outer)
        if place:
            self.builder.do(ComputeAt(self.anchor, self.stored, place))
        if self.panel:
            place_panel(self.builder, self.panel, self.stored, band, self.target)
        inside = {self.anchor, self.stored}
        for name in reversed(self.feeding):  # readers first: a band may hold what they read too
            readers = {reader.name for reader in self.builder.state.readers(name)}
            if band and not self.panel and readers and readers <= inside:
                self._compute_in_band(name, band)
                inside.add(name)
            else:
                spread(self.builder, name, self.target, name)
        self._schedule_anchor()
        for name in self.following:
            spread(self.builder, name, self.target, name)

    def _tile_stored(self) -> tuple[list[str], list[str], str]:
        """Split and reorder: (loops over tiles, unrolled loops in a tile, the vector loop)."""
        roles, builder, stored = self.roles, self.builder, self.stored
        lanes_extent = extent_of(roles.lanes.extent)
        wide = lanes_extent > self.width
        grouped = wide and roles.lanes_group > 0
        columns_extent = -(-lanes_extent // self.width) if wide else _extent(roles.columns)
        if grouped:  # a tile stays inside its group
            columns_extent = roles.lanes_group // self.width
        tile = default_tile(
            columns_extent,
            roles.group or _extent(roles.rows),
            _extent(roles.more_rows),
            self.target,
            # a tile that fits is shifted back at the end, where a larger one would be masked: that
            # pays where one masked tile is all
            most_columns=lanes_extent // self.width if wide and columns_extent > 3 else 8,
        )
        if grouped:
            tile = (max(divisors(columns_extent, tile[0])), *tile[1:])
        full = tile[0] * self.width
        shifted = wide and lanes_extent % full != 0 and lanes_extent >= full
        most = lanes_extent // self.width if shifted else columns_extent
        choices = divisors(columns_extent, 8) if grouped else _upto(most, (1, 2, 3, 4, 6, 8))
        columns = builder.choose("columns", choices, tile[0])
        column_outer: list[str] = []
        column_inner: list[str] = []
        lanes = roles.lanes.name
        if wide:
            tail = Tail.SHIFT if shifted else Tail.GUARD
            builder.do(Split(stored, lanes, (columns, self.width), tail))
            column_outer, column_inner = [f"{lanes}_0"], [f"{lanes}_1"]
            lanes = f"{lanes}_2"
        elif roles.columns is not None:
            name = roles.columns.name
            self._split(roles.columns, columns, tile[0])
            column_outer, column_inner = [f"{name}_o"], [f"{name}_i"]
        row_outer: list[str] = []
        row_inner: list[str] = []
        factors: list[Index] = [columns]
        sizes = _sizes(_extent(roles.rows), 28)
        rows = tile[1]
        if roles.group:  # a tile stays inside its group
            sizes = divisors(roles.group, 28)
            rows = max(divisors(roles.group, rows))
        for label, axis, values, size in (
            ("more_rows", roles.more_rows, _sizes(_extent(roles.more_rows), 8), tile[2]),
            ("rows", roles.rows, sizes, rows),
        ):
            if axis is None:
                continue
            factors.append(builder.choose(label, values, size))
            if axis is roles.more_rows and self.order is _Order.BANDS:
                self._split_band(axis, factors[-1], size)
                row_outer.append(f"{axis.name}_1")
                row_inner.append(f"{axis.name}_2")
            else:
                self._split(axis, factors[-1], size)
                row_outer.append(f"{axis.name}_o")
                row_inner.append(f"{axis.name}_i")
        builder.limit(tuple(factors), accumulators(self.target))
        taken = {a.name for a in (roles.lanes, roles.columns, roles.rows, roles.more_rows) if a}
        if wide and roles.columns is not None:
            taken.discard(roles.columns.name)
        batch = [
            axis.name for axis in builder.state.stage(stored).tensor.axes if axis.name not in taken
        ]
        if self.band:
            outer = [self.band, *batch, *column_outer, *row_outer]
        elif self.order is _Order.ROWS_OUTSIDE:
            outer = [*batch, *row_outer, *column_outer]
        else:
            outer = [*batch, *column_outer, *row_outer]
        inner = [*column_inner, *row_inner]
        builder.do(Reorder(stored, (*outer, *inner, lanes)))
        return outer, inner, lanes

    def _split(self, axis: Axis, factor: Index, default: int) -> None:
        extent = extent_of(axis.extent)
        tail = Tail.SHIFT if extent % default and extent >= default else Tail.GUARD
        self.builder.do(Split(self.stored, axis.name, (factor,), tail))

    def _split_band(self, axis: Axis, rows: Index, size: int) -> None:
        """Split the second rows into bands of tiles, all channels of a band being one thread's.

        What comes before and after is cut into bands of rows as well, so that a thread mostly
        finds in its own cache what it reads.
        """
        extent = extent_of(axis.extent)
        usual = max(1, round(extent / max(1, round(extent / _BAND_ROWS)) / size))
        band = self.builder.choose("band", _sizes(-(-extent // size), 32), usual, Kind.PARALLEL)
        full = usual * size
        tail = Tail.SHIFT if extent % full and extent >= full else Tail.GUARD
        self.builder.do(Split(self.stored, axis.name, (band, rows), tail))
        self.band = f"{axis.name}_0"

    def _parallelise(self, outer: list[str]) -> tuple[str, str]:
        """Fuse and spread the loops over tiles.

        Returns the loop that holds one tile ("": all is one tile) and the loop that holds a band of
        rows, which is where feeding stages are computed ("": at the root).
        """
        work = points(self.builder.state.stage(self.anchor).tensor)
        if not outer:
            return "", ""
        if self.order is _Order.COLUMNS_OUTSIDE or not (self.feeding or self.panel):
            return parallelise(self.builder, self.stored, outer, work) or outer[-1], ""
        rows = [a for a in (self.roles.more_rows, self.roles.rows) if a is not None]
        cut = outer.index(f"{rows[0].name}_o") + 1 if rows and not self.band else len(outer)
        if self.panel:
            cut = outer.index(f"{rows[0].name}_o")
        if self.band:
            cut = outer.index(f"{rows[0].name}_1")
        band = parallelise(self.builder, self.stored, outer[:cut], work) or outer[cut - 1]
        return (outer[-1] if cut < len(outer) else band), band

    def _compute_in_band(self, name: str, band: str) -> None:
        self.builder.do(ComputeAt(name, self.stored, band))
        last = self.builder.state.stage(name).tensor.axes[-1]
        if extent_of(last.extent) >= 2:
            self.builder.do(Vectorize(name, last.name))

    def _schedule_anchor(self) -> None:
        """Order and unroll the loops of the reduction inside one tile, and pack its constants."""
        builder, name = self.builder, self.anchor
        stage = builder.state.stage(name)
        lanes, tile = self._anchor_axes(stage)
        vector = lanes
        if extent_of(self.roles.lanes.extent) > self.width:
            builder.do(Split(name, lanes, (self.width,)))
            tile = [*tile, f"{lanes}_o"]
            vector = f"{lanes}_i"
        folding, unrolled = self._split_reduction(stage)
        rest = [axis.name for axis in stage.tensor.axes if axis.name not in (lanes, *tile)]
        builder.do(Reorder(name, (*rest, *folding, *unrolled, *tile, vector)))
        for loop in (*unrolled, *tile):
            builder.do(Unroll(name, loop))
        builder.do(Vectorize(name, vector))
        places: dict[str, set[Load]] = {}
        for load in loads_of(stage.tensor.body):
            places.setdefault(load.source.name, set()).add(load)
        for constant, loads in places.items():
            sole = len(builder.state.readers(constant)) == 1
            if constant in builder.state.constants and len(loads) == 1 and sole:
                builder.do(PackConstant(constant, name))
                if folding:
                    builder.do(PrefetchNext(name, constant, folding[-1]))

    def _anchor_axes(self, stage: Stage) -> tuple[str, list[str]]:
        """The anchor's own axes that the roles fall on: that of the lanes, and the others of the
        tile.
        """
        stored = self.builder.state.stage(self.stored).tensor
        link = next(x for x in loads_of(stored.body) if x.source.name == self.anchor)

        def own(role: Axis | None) -> str | None:
            if role is None:
                return None
            for axis, index in zip(stage.tensor.axes, link.indices, strict=True):
                if role.var in free_vars(index):
                    return axis.name
            return None

        lanes = own(self.roles.lanes)
        assert lanes is not None, "the lanes are an axis that the anchor is read along"
        # columns innermost: each read along the rows is then used up at once, by all columns
        roles = (self.roles.more_rows, self.roles.rows, self.roles.columns)
        found = [own(role) for role in roles]
        return lanes, list(dict.fromkeys(x for x in found if x is not None and x != lanes))

    def _split_reduction(self, stage: Stage) -> tuple[list[str], list[str]]:
        """The loops of the reduction: (loops, unrolled loops), outermost first."""
        axes = list(stage.tensor.reduce_axes)
        if prod(extent_of(axis.extent) for axis in axes) <= FULL_UNROLL:
            return [], [axis.name for axis in axes]
        main = max(axes, key=lambda axis: extent_of(axis.extent))
        others = [axis.name for axis in axes if axis is not main]
        extent = extent_of(main.extent)
        block = _block_of(stage, main)
        if block and extent % block:  # the channels of a group end inside a block
            block = 0
        steps = divisors(block or extent, 16)
        step = self.builder.choose("unroll", steps, max(divisors(block or extent, 4)), Kind.UNROLL)
        if block and extent > block:
            inner = exact_div(block, step)
            self.builder.do(Split(stage.name, main.name, (inner, step), Tail.EXACT))
            loops = [f"{main.name}_0", *others, f"{main.name}_1"]
            return loops, [f"{main.name}_2"]
        self.builder.do(Split(stage.name, main.name, (step,), Tail.EXACT))
        return [*others, f"{main.name}_o"], [f"{main.name}_i"]


_BAND_ROWS = 14
FULL_UNROLL = 16  # a reduction of so few terms is unrolled whole


def _block_of(stage: Stage, axis: Axis) -> int:
    """The block of a blocked layout that a reduction axis runs through: b in x[.. k // b .. k %
    b]; 0 if none.
    """
    for load in loads_of(stage.tensor.body):
        for index in load.indices:
            for monomial, _ in terms_of(index):
                for atom in monomial:
                    if isinstance(atom, Mod) and axis.var in free_vars(atom):
                        return atom.divisor if isinstance(atom.divisor, int) else 0
    return 0


def _extent(axis: Axis | None) -> int:
    return extent_of(axis.extent) if axis is not None else 1


def _upto(limit: int, values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(value for value in values if value <= limit) or (1,)


def _sizes(extent: int, limit: int) -> tuple[int, ...]:
    """Tile sizes worth trying along rows: divisors, and some that leave a shifted tail."""
    extra = tuple(n for n in (2, 3, 4, 6, 8, 12, 14) if n <= min(extent, limit))
    return tuple(sorted({*divisors(extent, limit), *extra}))


def default_tile(
    columns: int, rows: int, more_rows: int, target: Target, most_columns: int = 8
) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) with the best estimated share of peak.

    A tile of c vectors by r rows takes c*r multiply-adds, c + r reads and c*r + c + 1 registers
    per step of the reduction; two multiply-adds and two reads start per cycle, and a multiply-add
    takes four cycles.  The vectors come from the second cache, in 1.3 cycles each, and every row
    that uses one again saves reading it: few rows cost up to half.  Tails count as work done for
    nothing.
    """
    best, best_score = (1, 1, 1), -1.0
    for c in range(1, min(columns, most_columns, 8) + 1):
        for second in range(1, min(more_rows, 4) + 1):
            for r in range(1, min(rows, 28) + 1):
                held = c * r * second
                if held + c + 1 > target.vector_registers:
                    continue
                cycles = max(held / 2, (c + r * second) / 2, 1.3 * c, 4.0)
                share = held / 2 / cycles
                for size, extent in ((c, columns), (r, rows), (second, more_rows)):
                    share *= extent / (-(-extent // size) * size)
                share *= 1.0 - 0.5 / (r * second) - 0.01 * (second - 1)
                if share > best_score:
                    best, best_score = (c, r, second), share
    return best
