"""The Winograd rule: convolutions of 3 x 3 taps by fewer multiplications, in register tiles.

The stages are those of `schedule/algorithms/winograd.py`; the kernel's are computed when the
program is built.  Vectors lie along the channels everywhere, so each transform reads and writes
whole vectors, a tile at a time, in registers.  The product is tiled as the tile rule tiles one:
vectors of output channels, rows of tiles.

- bands: a thread takes a band of rows of tiles through all stages, while they are in its cache.
- whole: each stage is computed whole before the next, the product shared out along its parts and
  output channels: every weight is read once, by one thread.  For many channels on few tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from tensorwright.base import Target
from tensorwright.expr import Axis, Index, Mod, Tensor, Var, free_vars, loads_of, terms_of
from tensorwright.schedule import (
    TAPS,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    Convolution,
    FoldConstant,
    PackConstant,
    Prefetch,
    Reorder,
    ScheduleState,
    Split,
    Stage,
    Tail,
    Unroll,
    UseAlgorithm,
    Vectorize,
    find_convolution,
)
from tensorwright.tune.space.common import (
    accumulators,
    inline_elementwise,
    lanes_for,
    parallelise,
    spread,
)
from tensorwright.tune.space.roles import extent_of, points
from tensorwright.tune.space.sketch import Kind, Sketch, SketchBuilder, divisors
from tensorwright.tune.space.tile import default_tile

TILES = (4, 2)  # outputs of a tile along each direction
_MOST_ROWS = 28
_MOST_BAND = 8
_AHEAD = 64  # vectors of weights: so many are on the way from the third cache
_LEAST_CHANNELS = 16  # with fewer, on either side, the transforms cost more than they save


class _Place(Enum):
    """Where the stages between the data and the outputs are computed."""

    BANDS = "bands"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class _Roles:
    """Axes of the convolution by what they are, and the axes of the stored stage at them.

    rows, columns  the directions in which the kernel slides
    lanes          the last axis: output channels
    blocks         blocks of output channels, if the layout has them
    batch          all others
    """

    rows: Axis
    columns: Axis
    lanes: Axis
    blocks: Axis | None
    batch: tuple[Axis, ...]
    stored: dict[Var, str]


def winograd_sketches(state: ScheduleState, target: Target) -> tuple[Sketch, ...]:
    """Sketches of the Winograd rule; none where it does not apply.

    It applies to a program of one output and one reduction, a convolution whose kernel is constant,
    where the last dimension of data and output are channels.
    """
    folding = [stage for stage in state.stages if stage.tensor.reduction is not None]
    if len(folding) != 1 or len(state.outputs) != 1:
        return ()
    (anchor,) = folding
    found = find_convolution(anchor.tensor)
    if found is None or not _is_suitable(state, anchor, found):
        return ()
    built = (
        _sketch(state, target, anchor, found, tile, place) for tile in TILES for place in _Place
    )
    return tuple(sketch for sketch in built if sketch is not None)


def _is_suitable(state: ScheduleState, anchor: Stage, found: Convolution) -> bool:
    kernel = found.kernel.source.name
    slides = {slide.out.var for slide in (found.rows, found.columns)}
    lanes = anchor.tensor.axes[-1].var
    inputs = prod(extent_of(axis.extent) for axis in anchor.tensor.reduce_axes) // TAPS**2
    outputs = prod(
        extent_of(axis.extent)
        for axis in anchor.tensor.axes
        if axis.var in free_vars(*found.kernel.indices)
    )
    return (
        min(inputs, outputs) >= _LEAST_CHANNELS
        and kernel in state.constants
        and len(state.readers(kernel)) == 1
        and lanes not in free_vars(*found.data.indices)
        and not slides & (free_vars(found.data.indices[-1]) | {lanes})
    )


def _sketch(
    state: ScheduleState,
    target: Target,
    anchor: Stage,
    found: Convolution,
    tile: int,
    place: _Place,
) -> Sketch | None:
    builder = SketchBuilder(state)
    name = anchor.name
    builder.do(UseAlgorithm(name, f"winograd{tile}"))
    builder.do(FoldConstant(f"{name}_kernel_f64"))
    builder.do(FoldConstant(f"{name}_kernel"))
    kept = {f"{name}_{part}" for part in ("data", "rows", "columns", "product", "sums")}
    if not builder.state.has_stage(f"{name}_data"):
        kept.add(found.data.source.name)
    inline_elementwise(builder, keep=frozenset({*kept, name}))
    roles = _find_roles(builder.state, anchor, found)
    if roles is None:
        return None
    places = [
        load
        for reader in builder.state.readers(name)
        for load in loads_of(reader.tensor.body)
        if load.source.name == name
    ]
    if len(places) == 1:
        builder.do(ComputeInline(name))
    _Scheduling(builder, target, name, tile, roles, place).run()
    return builder.sketch(f"winograd{tile}, {place.value}")


def _find_roles(state: ScheduleState, anchor: Stage, found: Convolution) -> _Roles | None:
    """None where what stores the output does not have the axes of the convolution."""
    stored = state.stage(state.outputs[0]).tensor
    axes = anchor.tensor.axes
    links = {axis.var: axis.var for axis in axes}
    if stored.name != anchor.name:
        loads = [load for load in loads_of(stored.body) if load.source.name == anchor.name]
        if len({load.indices for load in loads}) != 1:
            return None
        own = {axis.var for axis in stored.axes}
        pairs = zip(axes, loads[0].indices, strict=True)
        links = {axis.var: i for axis, i in pairs if isinstance(i, Var) and i in own}
        if len(set(links.values())) != len(own):
            return None
    rows, columns, lanes = found.rows.out, found.columns.out, axes[-1]
    if links.get(lanes.var) != stored.axes[-1].var:
        return None
    others = [axis for axis in axes if axis not in (rows, columns, lanes)]
    if any(axis.extent != 1 and axis.var not in links for axis in (rows, columns, *others)):
        return None
    if rows.var not in links or columns.var not in links:
        return None
    along_kernel = free_vars(*found.kernel.indices)
    blocks = [axis for axis in others if axis.var in along_kernel and axis.extent != 1]
    if len(blocks) > 1:
        return None
    batch = tuple(axis for axis in others if axis not in blocks)
    names = {var: link.name for var, link in links.items()}
    return _Roles(rows, columns, lanes, blocks[0] if blocks else None, batch, names)


class _Scheduling:
    """Mutable working state while one sketch is built."""

    def __init__(
        self,
        builder: SketchBuilder,
        target: Target,
        name: str,
        tile: int,
        roles: _Roles,
        place: _Place,
    ) -> None:
        self.builder = builder
        self.do = builder.do
        self.target = target
        self.name = name
        self.tile = tile
        self.roles = roles
        self.place = place
        self.stored = builder.state.outputs[0]
        self.product = f"{name}_product"
        self.width = lanes_for(target, builder.state.stage(self.product))
        self.tile_rows = -(-extent_of(roles.rows.extent) // tile)
        self.tile_columns = -(-extent_of(roles.columns.extent) // tile)
        known = {f"{name}_{part}" for part in ("rows", "columns", "product", "sums")}
        self.feeding = [
            stage.name
            for stage in builder.state.stages
            if stage.name not in {*known, name, self.stored}
        ]

    def run(self) -> None:
        """Schedule every stage."""
        self.do(CacheWrite(self.product))
        band, rows = self._choose_rows()
        outer = self._tile_stored(band)
        self._schedule_product(outer, rows)
        self._schedule_columns(outer)

    def _axis_name(self, axis: Axis) -> str:
        return self.roles.stored[axis.var]

    def _tail(self, extent: int, factor: Index) -> Tail:
        """Promise whole tiles where the default makes them."""
        return Tail.EXACT if isinstance(factor, int) and extent % factor == 0 else Tail.GUARD

    def _choose_rows(self) -> tuple[Index, Index]:
        """The rows of tiles of a band, and those of a register tile."""
        most = self.tile_rows
        if self.place is _Place.WHOLE:
            sizes = tuple(n for n in (1, 2, 3, 4, 5, 6, 7) if n <= most)
            default = self._default_tile()[2]
            return most, self.builder.choose("more_rows", sizes, default, node=self.product)
        pairs = [
            (band, more)
            for band in range(1, min(_MOST_BAND, most) + 1)
            for more in divisors(band, 4)
            if -(-most // band) * band - most <= 1
        ]
        band, more = self.builder.choose_rows(
            ("band", "more_rows"), tuple(pairs), self._default_band(), Kind.PARALLEL, self.product
        )
        return band, more

    def _default_band(self) -> tuple[int, int]:
        """Rows of tiles of a band, and of a register tile, by rule.

        Weights that stay in the second cache allow bands of one row; others are read again for
        every band, which is then as high as that cache allows.
        """
        state, name = self.builder.state, self.name
        kernel = next(each for each in state.inputs if each.name == f"{name}_kernel")
        if _size_bytes(kernel) <= self.target.l2_bytes // 2:
            return 1, 1
        between = (state.stage(f"{name}_{part}").tensor for part in ("columns", "product"))
        images = prod(extent_of(axis.extent) for axis in self.roles.batch)
        row_bytes = sum(map(_size_bytes, between)) // (images * self.tile_rows)
        most = max(1, min(_MOST_BAND, self.tile_rows // 2, self.target.l2_bytes // 2 // row_bytes))
        more = default_tile(self._column_count(), self.tile_columns, most, self.target)[2]
        return most, max(divisors(most, more))

    def _default_tile(self) -> tuple[int, int, int]:
        """The register tile by rule: vectors, tiles along the columns, and along the rows.

        All tiles at once, where registers hold them: then each weight is read once.
        """
        if self.place is _Place.BANDS:
            return default_tile(self._column_count(), self.tile_columns, 1, self.target)
        if self.tile_columns * self.tile_rows <= self.target.vector_registers - 4:
            vectors = (self.target.vector_registers - 4) // (self.tile_columns * self.tile_rows)
            return min(vectors, 2, self._column_count()), self.tile_columns, self.tile_rows
        return default_tile(self._column_count(), self.tile_columns, self.tile_rows, self.target)

    def _column_count(self) -> int:
        """How many vectors lie beside each other."""
        lanes = -(-extent_of(self.roles.lanes.extent) // self.width)
        blocks = self.roles.blocks
        return lanes if lanes > 1 or blocks is None else extent_of(blocks.extent)

    def _tile_stored(self, band: Index) -> str:
        """Compute the outputs of a tile at a time from its sums; returns the outermost loop."""
        roles, stored = self.roles, self.stored
        rows, columns = self._axis_name(roles.rows), self._axis_name(roles.columns)
        lanes = self._axis_name(roles.lanes)
        batch = [self._axis_name(axis) for axis in roles.batch if axis.var in roles.stored]
        blocks = [self._axis_name(axis) for axis in (roles.blocks,) if axis is not None]
        height, length = extent_of(roles.rows.extent), extent_of(roles.columns.extent)
        self.do(Split(stored, columns, (self.tile,), self._tail(length, self.tile)))
        tail = self._tail(height, self.tile)
        if self.place is _Place.WHOLE:
            self.do(Split(stored, rows, (self.tile,), tail))
            outer, inner, row = [*batch, *blocks, f"{rows}_o"], [], f"{rows}_i"
        else:
            if not isinstance(band, int) or height % (band * self.tile):
                tail = Tail.GUARD
            self.do(Split(stored, rows, (band, self.tile), tail))
            outer, inner, row = [*batch, f"{rows}_0"], [*blocks, f"{rows}_1"], f"{rows}_2"
        inner.append(f"{columns}_o")
        vector = lanes
        if extent_of(roles.lanes.extent) > self.width:
            self.do(Split(stored, lanes, (self.width,)))
            inner.append(f"{lanes}_o")
            vector = f"{lanes}_i"
        unrolled = (row, f"{columns}_i")
        self.do(Reorder(stored, (*outer, *inner, *unrolled, vector)))
        for loop in unrolled:
            self.do(Unroll(stored, loop))
        self.do(Vectorize(stored, vector))
        work = points(self.builder.state.stage(f"{self.product}_cache").tensor)
        fused = parallelise(self.builder, stored, outer, work) or outer[-1]
        sums = f"{self.name}_sums"
        if self.builder.state.has_stage(self.name) and self.name != stored:
            self.do(ComputeAt(self.name, stored, inner[-1]))
            self._write_out(self.name, (roles.rows.name, roles.columns.name), roles.lanes.name)
        self.do(ComputeAt(sums, stored, inner[-1]))
        self._write_out(sums, ("p", "v"), roles.lanes.name)
        return fused

    def _write_out(self, stage: str, unrolled: tuple[str, ...], vector: str) -> None:
        for loop in unrolled:
            self.do(Unroll(stage, loop))
        self.do(Vectorize(stage, vector))

    def _schedule_product(self, outer: str, more: Index) -> None:
        """Tile the products of each part: copied out of registers in which they are summed."""
        roles, product, builder = self.roles, self.product, self.builder
        cache = f"{product}_cache"
        if self.place is _Place.BANDS:
            self.do(ComputeAt(product, self.stored, outer))
        rows, columns = f"{roles.rows.name}_t", f"{roles.columns.name}_t"
        count = self._column_count()
        default = self._default_tile()
        sizes = tuple(n for n in (1, 2, 3, 4) if n <= count)
        vectors = builder.choose("columns", sizes, default[0], node=product)
        lengths = tuple(sorted({*divisors(self.tile_columns, _MOST_ROWS), default[1]}))
        length = builder.choose("rows", lengths, default[1], node=product)
        builder.limit((vectors, length, more), accumulators(self.target))
        self.do(Split(product, columns, (length,), self._tail(self.tile_columns, length)))
        whole_rows = self.tile_rows if self.place is _Place.WHOLE else more
        exact = isinstance(whole_rows, int) and isinstance(more, int) and whole_rows % more == 0
        self.do(Split(product, rows, (more,), Tail.EXACT if exact else Tail.GUARD))
        lanes, vector, beside, over = self._split_vectors(vectors)
        tile = [f"{rows}_i", f"{columns}_i", *beside]
        batch = [axis.name for axis in roles.batch]
        order = ("u", "v", *over, *batch, f"{rows}_o", f"{columns}_o", *tile, vector)
        self.do(Reorder(product, order))
        for loop in tile:
            self.do(Unroll(product, loop))
        self.do(Vectorize(product, vector))
        if self.place is _Place.WHOLE:
            work = points(builder.state.stage(cache).tensor)
            parallelise(builder, product, ["u", "v", *over], work)
        self.do(ComputeAt(cache, product, f"{columns}_o"))
        self._schedule_sum(cache, lanes)

    def _split_vectors(self, vectors: Index) -> tuple[str, str, list[str], list[str]]:
        """(lanes, vector loop, loops over vectors of a tile, loops over these)."""
        roles, product = self.roles, self.product
        lanes, blocks = roles.lanes.name, roles.blocks
        over = [] if blocks is None else [blocks.name]
        if extent_of(roles.lanes.extent) > self.width:
            self.do(Split(product, lanes, (vectors, self.width)))
            return lanes, f"{lanes}_2", [f"{lanes}_1"], [*over, f"{lanes}_0"]
        if blocks is None:
            return lanes, lanes, [], []
        count = extent_of(blocks.extent)
        self.do(Split(product, blocks.name, (vectors,), self._tail(count, vectors)))
        return lanes, lanes, [f"{blocks.name}_i"], [f"{blocks.name}_o"]

    def _schedule_sum(self, cache: str, lanes: str) -> None:
        """Order and unroll the loops of the sum inside one register tile, and pack the kernel."""
        roles, builder = self.roles, self.builder
        stage = builder.state.stage(cache)
        vector, beside = lanes, []
        if extent_of(roles.lanes.extent) > self.width:
            self.do(Split(cache, lanes, (self.width,)))
            vector, beside = f"{lanes}_i", [f"{lanes}_o"]
        elif roles.blocks is not None:
            beside = [roles.blocks.name]
        (main, *others) = sorted(
            stage.tensor.reduce_axes, key=lambda axis: extent_of(axis.extent), reverse=True
        )
        block = _block_along(stage, main) or extent_of(main.extent)
        step = builder.choose(
            "unroll", divisors(block, 16), max(divisors(block, 4)), Kind.UNROLL, cache
        )
        self.do(Split(cache, main.name, (step,), self._tail(extent_of(main.extent), step)))
        folding = [*(axis.name for axis in others), f"{main.name}_o"]
        tile = [f"{roles.rows.name}_t", f"{roles.columns.name}_t", *beside]
        kept = ["u", "v", *(axis.name for axis in roles.batch)]
        if roles.blocks is not None and roles.blocks.name not in beside:
            kept.append(roles.blocks.name)
        unrolled = [f"{main.name}_i", *tile]
        self.do(Reorder(cache, (*kept, *folding, *unrolled, vector)))
        for loop in unrolled:
            self.do(Unroll(cache, loop))
        self.do(Vectorize(cache, vector))
        kernel = f"{self.name}_kernel"
        self.do(PackConstant(kernel, cache))
        if self.place is _Place.WHOLE:
            ahead = builder.choose("ahead", (16, 64, 256), _AHEAD, Kind.OTHER, cache)
            self.do(Prefetch(cache, kernel, f"{main.name}_i", ahead))

    def _schedule_columns(self, outer: str) -> None:
        """Transform the data a tile at a time, for a band or whole."""
        roles, builder, name = self.roles, self.builder, self.name
        columns, rows = f"{name}_columns", f"{name}_rows"
        if self.place is _Place.BANDS:
            self.do(ComputeAt(columns, self.stored, outer))
        axes = builder.state.stage(columns).tensor.axes
        vector, over = axes[-1].name, []
        if extent_of(axes[-1].extent) > self.width:
            self.do(Split(columns, vector, (self.width,)))
            vector, over = f"{vector}_i", [f"{vector}_o"]
        batch = [axis.name for axis in axes[2:-1]]
        self.do(Reorder(columns, (*batch, *over, "u", "v", vector)))
        self._write_out(columns, ("u", "v"), vector)
        band = outer
        host = self.stored
        if self.place is _Place.WHOLE:
            host = columns
            work = points(builder.state.stage(columns).tensor)
            band = parallelise(builder, columns, batch[:-1], work) or batch[-2]
        inner = over[-1] if over else batch[-1]
        self.do(ComputeAt(rows, columns, inner))
        own = [axis.name for axis in builder.state.stage(rows).tensor.axes]
        sliding = roles.columns.name
        outside = [loop for loop in own[:-1] if loop not in ("u", sliding)]
        self.do(Reorder(rows, (*outside, sliding, "u", own[-1])))
        self._write_out(rows, (sliding, "u"), own[-1])
        inside = {rows}
        for feeding in reversed(self.feeding):
            readers = {reader.name for reader in builder.state.readers(feeding)}
            if readers and readers <= inside:
                self.do(ComputeAt(feeding, host, band))
                self.do(Vectorize(feeding, builder.state.stage(feeding).tensor.axes[-1].name))
                inside.add(feeding)
            else:
                spread(builder, feeding, self.target, feeding)


def _size_bytes(tensor: Tensor) -> int:
    return prod(extent_of(extent) for extent in tensor.shape) * tensor.dtype.size_bytes


def _block_along(stage: Stage, axis: Axis) -> int:
    """The block of a layout that an axis runs through: b in x[.. k // b .. k % b]; 0 if none."""
    for load in loads_of(stage.tensor.body):
        for index in load.indices:
            for monomial, _ in terms_of(index):
                for atom in monomial:
                    if isinstance(atom, Mod) and axis.var in free_vars(atom):
                        return atom.divisor if isinstance(atom.divisor, int) else 0
    return 0
