"""The loops of each stage of Winograd's algorithm, from the last to the first."""

from __future__ import annotations

from tensorwright.expr import Axis, Index, loads_of
from tensorwright.schedule import (
    CacheWrite,
    ComputeAt,
    PackConstant,
    Prefetch,
    Split,
    Tail,
    Vectorize,
)
from tensorwright.tuning.space.axes.accesses import period_along, points
from tensorwright.tuning.space.defaults.winograd.axes import Case, Portion
from tensorwright.tuning.space.defaults.winograd.sizes import Sizes, choose_sizes
from tensorwright.tuning.space.register_tile import nest, split_vectors, write_out
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors
from tensorwright.tuning.space.steps import parallelise, schedule_at_root
from tensorwright.tuning.space.tile_limits import CPU_LIMITS

_AHEAD = 64  # vectors of weights on the way from the third cache


def schedule_stages(builder: SketchBuilder, case: Case) -> None:
    """Schedule every stage of a program to which the algorithm has been applied."""
    builder.do(CacheWrite(case.product))
    sizes = choose_sizes(builder, case)
    stages = _Stages(builder, case, sizes)
    outer = stages.tile_stored()
    stages.schedule_product(outer)
    stages.schedule_columns(outer)


class _Stages:
    """Mutable working state while one sketch is built."""

    def __init__(self, builder: SketchBuilder, case: Case, sizes: Sizes[Index]) -> None:
        self.builder = builder
        self.do = builder.do
        self.case = case
        self.sizes = sizes
        self.roles = case.roles
        self.is_whole = case.portion is Portion.WHOLE
        arranged = {f"{case.name}_{part}" for part in ("rows", "columns", "product", "sums")}
        arranged |= {case.name, case.stored, f"{case.product}_cache"}
        self.feeding = [stage.name for stage in builder.state.stages if stage.name not in arranged]

    def _axis_name(self, axis: Axis) -> str:
        return self.roles.stored[axis.var]

    def _tail(self, extent: Index, factor: Index) -> Tail:
        """Promise whole tiles if the default makes them."""
        is_known = isinstance(extent, int) and isinstance(factor, int)
        return Tail.EXACT if is_known and extent % factor == 0 else Tail.GUARD

    def tile_stored(self) -> str:
        """Compute the outputs of a tile at a time from its sums; returns the outermost loop."""
        case, roles, stored = self.case, self.roles, self.case.stored
        rows, columns = self._axis_name(roles.rows), self._axis_name(roles.columns)
        lanes = self._axis_name(roles.lanes)
        batch = [self._axis_name(axis) for axis in roles.batch if axis.var in roles.stored]
        blocks = [self._axis_name(axis) for axis in (roles.blocks,) if axis is not None]
        slices = [self._axis_name(axis) for axis in (roles.slices,) if axis is not None]
        height, length = roles.rows.length, roles.columns.length
        self.do(Split(stored, columns, (case.tile,), self._tail(length, case.tile)))
        if self.is_whole:
            self.do(Split(stored, rows, (case.tile,), self._tail(height, case.tile)))
            outer, inner = [*batch, *blocks, *slices, f"{rows}_o"], []
            row = f"{rows}_i"
        else:
            tall = self.sizes.band
            tail = self._tail(height, tall * case.tile)
            self.do(Split(stored, rows, (tall, case.tile), tail))
            for axis in slices:
                many = self.sizes.slices
                self.do(Split(stored, axis, (many,), self._tail(case.slice_count, many)))
            outer = [*batch, *(f"{axis}_o" for axis in slices), f"{rows}_0"]
            inner = [*(f"{axis}_i" for axis in slices), *blocks, f"{rows}_1"]
            row = f"{rows}_2"
        inner.append(f"{columns}_o")
        vectors, vector = split_vectors(self.builder, stored, lanes, case.width)
        inner += vectors
        nest(self.builder, stored, (*outer, *inner), (row, f"{columns}_i"), vector)
        work = points(self.builder.state.stage(f"{case.product}_cache").tensor)
        fused = parallelise(self.builder, stored, outer, work) or outer[-1]
        self._place_sums(inner[-1])
        return fused

    def _place_sums(self, loop: str) -> None:
        """Sum the products of a tile in registers, where it is stored."""
        case, roles = self.case, self.roles
        if self.builder.state.has_stage(case.name) and case.name != case.stored:
            self.do(ComputeAt(case.name, case.stored, loop))
            unrolled = (roles.rows.name, roles.columns.name)
            write_out(self.builder, case.name, unrolled, roles.lanes.name)
        sums = f"{case.name}_sums"
        self.do(ComputeAt(sums, case.stored, loop))
        write_out(self.builder, sums, ("p", "v"), roles.lanes.name)

    def schedule_product(self, outer: str) -> None:
        """Tile the products of each part: copied out of registers in which they are summed."""
        case, roles, builder, sizes = self.case, self.roles, self.builder, self.sizes
        product, cache = case.product, f"{case.product}_cache"
        if not self.is_whole:
            self.do(ComputeAt(product, case.stored, outer))
        rows, columns = f"{roles.rows.name}_t", f"{roles.columns.name}_t"
        self.do(
            Split(product, columns, (sizes.length,), self._tail(case.tile_columns, sizes.length))
        )
        tall = case.tile_rows if self.is_whole else sizes.band
        self.do(Split(product, rows, (sizes.more_rows,), self._tail(tall, sizes.more_rows)))
        over_slices, inside = [], []
        if roles.slices is not None:
            axis, many = roles.slices.name, sizes.more_slices
            deep = case.slice_count if self.is_whole else sizes.slices
            self.do(Split(product, axis, (many,), self._tail(deep, many)))
            over_slices, inside = [f"{axis}_o"], [f"{axis}_i"]
        lanes, vector, beside, over = self._split_vectors(sizes.vectors)
        tile = [*inside, f"{rows}_i", f"{columns}_i", *beside]
        batch = [axis.name for axis in roles.batch]
        around = (*batch, *over_slices, f"{rows}_o", f"{columns}_o")
        nest(builder, product, ("u", "v", *over, *around), tile, vector)
        if self.is_whole:
            work = points(builder.state.stage(cache).tensor)
            parallelise(builder, product, ["u", "v", *over], work)
        self.do(ComputeAt(cache, product, f"{columns}_o"))
        self._schedule_sum(cache, lanes)

    def _split_vectors(self, vectors: Index) -> tuple[str, str, list[str], list[str]]:
        """(lanes, vector loop, loops over vectors of a tile, loops over these)."""
        case, roles, product = self.case, self.roles, self.case.product
        lanes, blocks = roles.lanes.name, roles.blocks
        over = [] if blocks is None else [blocks.name]
        if case.has_many_lanes:
            self.do(Split(product, lanes, (vectors, case.width)))
            return lanes, f"{lanes}_2", [f"{lanes}_1"], [*over, f"{lanes}_0"]
        if blocks is None:
            return lanes, lanes, [], []
        count = blocks.length
        self.do(Split(product, blocks.name, (vectors,), self._tail(count, vectors)))
        return lanes, lanes, [f"{blocks.name}_i"], [f"{blocks.name}_o"]

    def _schedule_sum(self, cache: str, lanes: str) -> None:
        """Order and unroll the loops of the sum inside one register tile, and pack the kernel."""
        case, roles, builder = self.case, self.roles, self.builder
        stage = builder.state.stage(cache)
        beside, vector = split_vectors(builder, cache, lanes, case.width)
        if not beside and roles.blocks is not None:
            beside = (roles.blocks.name,)
        (main, *others) = sorted(
            stage.tensor.reduce_axes, key=lambda axis: axis.length, reverse=True
        )
        block = period_along(loads_of(stage.tensor.body), main) or main.length
        step = builder.choose(
            "unroll",
            divisors(block, CPU_LIMITS.unrolled),
            max(divisors(block, 4)),
            Kind.UNROLL,
            cache,
        )
        self.do(Split(cache, main.name, (step,), self._tail(main.length, step)))
        folding = [*(axis.name for axis in others), f"{main.name}_o"]
        slices = [axis.name for axis in (roles.slices,) if axis is not None]
        tile = [*slices, f"{roles.rows.name}_t", f"{roles.columns.name}_t", *beside]
        kept = ["u", "v", *(axis.name for axis in roles.batch)]
        if roles.blocks is not None and roles.blocks.name not in beside:
            kept.append(roles.blocks.name)
        nest(builder, cache, (*kept, *folding), (f"{main.name}_i", *tile), vector)
        kernel = f"{case.name}_kernel"
        self.do(PackConstant(kernel, cache))
        if self.is_whole:
            ahead = builder.choose("ahead", (16, 64, 256), _AHEAD, Kind.OTHER, cache)
            self.do(Prefetch(cache, kernel, f"{main.name}_i", ahead))

    def schedule_columns(self, outer: str) -> None:
        """Transform the data a tile at a time, for a band or whole."""
        case, roles, builder = self.case, self.roles, self.builder
        columns, rows = f"{case.name}_columns", f"{case.name}_rows"
        if not self.is_whole:
            self.do(ComputeAt(columns, case.stored, outer))
        axes = builder.state.stage(columns).tensor.axes
        over, vector = split_vectors(builder, columns, axes[-1].name, case.width)
        batch = [axis.name for axis in axes[2:-1]]
        nest(builder, columns, (*batch, *over), ("u", "v"), vector)
        host, band = case.stored, outer
        if self.is_whole:
            work = points(builder.state.stage(columns).tensor)
            host, band = columns, parallelise(builder, columns, batch[:-1], work) or batch[-2]
        elif not over and len(batch) > 2:
            host, band = columns, batch[-3]
        self.do(ComputeAt(rows, columns, over[-1] if over else batch[-1]))
        own = [axis.name for axis in builder.state.stage(rows).tensor.axes]
        sliding = roles.columns.name
        outside = [loop for loop in own[:-1] if loop not in ("u", sliding)]
        nest(builder, rows, outside, (sliding, "u"), own[-1])
        self._place_feeding(host, band)

    def _place_feeding(self, host: str, loop: str) -> None:
        """Compute what the transform reads beside it; what others read too, before."""
        builder = self.builder
        inside = {f"{self.case.name}_rows"}
        for feeding in reversed(self.feeding):
            readers = {reader.name for reader in builder.state.readers(feeding)}
            if readers and readers <= inside:
                self.do(ComputeAt(feeding, host, loop))
                axes = builder.state.stage(feeding).tensor.axes
                if axes:
                    self.do(Vectorize(feeding, axes[-1].name))
                inside.add(feeding)
            else:
                schedule_at_root(builder, feeding, self.case.target, feeding)
