"""Convolutions of 3x3 taps by Winograd's algorithm.

The loops of each stage of Winograd's algorithm, from the last to the first.

The Winograd heuristic: convolutions of 3 x 3 taps by fewer multiplications, in register tiles.

The stages are those of `schedule/algorithms/winograd.py`; the kernel's are computed when the
program is built.  Vectors lie along the channels everywhere, so each transform reads and writes
whole vectors, a tile at a time, in registers.  The product is tiled as `tile.py` tiles one:
vectors of output channels, rows of tiles.

- bands: a thread takes a band of rows of tiles through all stages, while they are in its cache;
  of several images or slices of a volume, which share weights, some at once.
- whole: each stage is computed whole before the next, the product shared out along its parts and
  output channels: every weight is read once, by one thread.  For many channels on few tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.expr import Axis, Compute, Index, free_vars, loads_of
from tensorwright.tuning.space import accesses
from tensorwright.tuning.space.defaults.winograd_sizes import (
    Case,
    Portion,
    Sizes,
    choose_sizes,
    find_axes,
    weight_bytes,
)
from tensorwright.tuning.space.register_tile import CPU_LIMITS, nest, split_vectors, write_out
from tensorwright.tuning.space.roles import only_fold
from tensorwright.tuning.space.sketch import Kind, Sketch, SketchBuilder, divisors
from tensorwright.tuning.space.steps import (
    fold_widened,
    inline_elementwise,
    parallelise,
    schedule_at_root,
)

_AHEAD = 64  # vectors of weights on the way from the third cache


def schedule_stages(builder: SketchBuilder, case: Case) -> None:
    """Schedule every stage of a program to which the algorithm has been applied."""
    builder.do(schedule.CacheWrite(case.product))
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

    def _tail(self, extent: Index, factor: Index) -> schedule.Tail:
        """Promise whole tiles if the default makes them."""
        is_known = isinstance(extent, int) and isinstance(factor, int)
        return schedule.Tail.EXACT if is_known and extent % factor == 0 else schedule.Tail.GUARD

    def tile_stored(self) -> str:
        """Compute the outputs of a tile at a time from its sums; returns the outermost loop."""
        case, roles, stored = self.case, self.roles, self.case.stored
        rows, columns = self._axis_name(roles.rows), self._axis_name(roles.columns)
        lanes = self._axis_name(roles.lanes)
        batch = [self._axis_name(axis) for axis in roles.batch if axis.var in roles.stored]
        blocks = [self._axis_name(axis) for axis in (roles.blocks,) if axis is not None]
        slices = [self._axis_name(axis) for axis in (roles.slices,) if axis is not None]
        height, length = roles.rows.length, roles.columns.length
        self.do(schedule.Split(stored, columns, (case.tile,), self._tail(length, case.tile)))
        if self.is_whole:
            self.do(schedule.Split(stored, rows, (case.tile,), self._tail(height, case.tile)))
            outer, inner = [*batch, *blocks, *slices, f"{rows}_o"], []
            row = f"{rows}_i"
        else:
            tall = self.sizes.band
            tail = self._tail(height, tall * case.tile)
            self.do(schedule.Split(stored, rows, (tall, case.tile), tail))
            for axis in slices:
                many = self.sizes.slices
                self.do(schedule.Split(stored, axis, (many,), self._tail(case.slice_count, many)))
            outer = [*batch, *(f"{axis}_o" for axis in slices), f"{rows}_0"]
            inner = [*(f"{axis}_i" for axis in slices), *blocks, f"{rows}_1"]
            row = f"{rows}_2"
        inner.append(f"{columns}_o")
        vectors, vector = split_vectors(self.builder, stored, lanes, case.width)
        inner += vectors
        nest(self.builder, stored, (*outer, *inner), (row, f"{columns}_i"), vector)
        work = accesses.points(self.builder.state.stage(f"{case.product}_cache").tensor)
        fused = parallelise(self.builder, stored, outer, work) or outer[-1]
        self._place_sums(inner[-1])
        return fused

    def _place_sums(self, loop: str) -> None:
        """Sum the products of a tile in registers, where it is stored."""
        case, roles = self.case, self.roles
        if self.builder.state.has_stage(case.name) and case.name != case.stored:
            self.do(schedule.ComputeAt(case.name, case.stored, loop))
            unrolled = (roles.rows.name, roles.columns.name)
            write_out(self.builder, case.name, unrolled, roles.lanes.name)
        sums = f"{case.name}_sums"
        self.do(schedule.ComputeAt(sums, case.stored, loop))
        write_out(self.builder, sums, ("p", "v"), roles.lanes.name)

    def schedule_product(self, outer: str) -> None:
        """Tile the products of each part: copied out of registers in which they are summed."""
        case, roles, builder, sizes = self.case, self.roles, self.builder, self.sizes
        product, cache = case.product, f"{case.product}_cache"
        if not self.is_whole:
            self.do(schedule.ComputeAt(product, case.stored, outer))
        rows, columns = f"{roles.rows.name}_t", f"{roles.columns.name}_t"
        self.do(
            schedule.Split(
                product, columns, (sizes.length,), self._tail(case.tile_columns, sizes.length)
            )
        )
        tall = case.tile_rows if self.is_whole else sizes.band
        self.do(
            schedule.Split(product, rows, (sizes.more_rows,), self._tail(tall, sizes.more_rows))
        )
        over_slices, inside = [], []
        if roles.slices is not None:
            axis, many = roles.slices.name, sizes.more_slices
            deep = case.slice_count if self.is_whole else sizes.slices
            self.do(schedule.Split(product, axis, (many,), self._tail(deep, many)))
            over_slices, inside = [f"{axis}_o"], [f"{axis}_i"]
        lanes, vector, beside, over = self._split_vectors(sizes.vectors)
        tile = [*inside, f"{rows}_i", f"{columns}_i", *beside]
        batch = [axis.name for axis in roles.batch]
        around = (*batch, *over_slices, f"{rows}_o", f"{columns}_o")
        nest(builder, product, ("u", "v", *over, *around), tile, vector)
        if self.is_whole:
            work = accesses.points(builder.state.stage(cache).tensor)
            parallelise(builder, product, ["u", "v", *over], work)
        self.do(schedule.ComputeAt(cache, product, f"{columns}_o"))
        self._schedule_sum(cache, lanes)

    def _split_vectors(self, vectors: Index) -> tuple[str, str, list[str], list[str]]:
        """(lanes, vector loop, loops over vectors of a tile, loops over these)."""
        case, roles, product = self.case, self.roles, self.case.product
        lanes, blocks = roles.lanes.name, roles.blocks
        over = [] if blocks is None else [blocks.name]
        if case.has_many_lanes:
            self.do(schedule.Split(product, lanes, (vectors, case.width)))
            return lanes, f"{lanes}_2", [f"{lanes}_1"], [*over, f"{lanes}_0"]
        if blocks is None:
            return lanes, lanes, [], []
        count = blocks.length
        self.do(schedule.Split(product, blocks.name, (vectors,), self._tail(count, vectors)))
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
        block = accesses.period_along(loads_of(stage.tensor.body), main) or main.length
        step = builder.choose(
            "unroll",
            divisors(block, CPU_LIMITS.unrolled),
            max(divisors(block, 4)),
            Kind.UNROLL,
            cache,
        )
        self.do(schedule.Split(cache, main.name, (step,), self._tail(main.length, step)))
        folding = [*(axis.name for axis in others), f"{main.name}_o"]
        slices = [axis.name for axis in (roles.slices,) if axis is not None]
        tile = [*slices, f"{roles.rows.name}_t", f"{roles.columns.name}_t", *beside]
        kept = ["u", "v", *(axis.name for axis in roles.batch)]
        if roles.blocks is not None and roles.blocks.name not in beside:
            kept.append(roles.blocks.name)
        nest(builder, cache, (*kept, *folding), (f"{main.name}_i", *tile), vector)
        kernel = f"{case.name}_kernel"
        self.do(schedule.PackConstant(kernel, cache))
        if self.is_whole:
            ahead = builder.choose("ahead", (16, 64, 256), _AHEAD, Kind.OTHER, cache)
            self.do(schedule.Prefetch(cache, kernel, f"{main.name}_i", ahead))

    def schedule_columns(self, outer: str) -> None:
        """Transform the data a tile at a time, for a band or whole."""
        case, roles, builder = self.case, self.roles, self.builder
        columns, rows = f"{case.name}_columns", f"{case.name}_rows"
        if not self.is_whole:
            self.do(schedule.ComputeAt(columns, case.stored, outer))
        axes = builder.state.stage(columns).tensor.axes
        over, vector = split_vectors(builder, columns, axes[-1].name, case.width)
        batch = [axis.name for axis in axes[2:-1]]
        nest(builder, columns, (*batch, *over), ("u", "v"), vector)
        host, band = case.stored, outer
        if self.is_whole:
            work = accesses.points(builder.state.stage(columns).tensor)
            host, band = columns, parallelise(builder, columns, batch[:-1], work) or batch[-2]
        elif not over and len(batch) > 2:
            host, band = columns, batch[-3]
        self.do(schedule.ComputeAt(rows, columns, over[-1] if over else batch[-1]))
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
                self.do(schedule.ComputeAt(feeding, host, loop))
                axes = builder.state.stage(feeding).tensor.axes
                if axes:
                    self.do(schedule.Vectorize(feeding, axes[-1].name))
                inside.add(feeding)
            else:
                schedule_at_root(builder, feeding, self.case.target, feeding)


VARIANTS = ((4, Portion.BANDS), (2, Portion.BANDS), (4, Portion.WHOLE), (2, Portion.WHOLE))
"""Outputs of a tile along each direction, and where stages are computed: the best most often
first."""

_MOST_AGAIN = 8  # second caches full of weights: bands, which read all of them, do not pay beyond
_LEAST_CHANNELS = 16  # with fewer, on either side, the transforms cost more than they save


def winograd_sketches(state: schedule.ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """Sketches of Winograd's algorithm, each built when asked for; none if it does not apply.

    It applies to a program of one output and one reduction, a convolution with a constant kernel,
    if the last dimension of data and output are channels; groups of them are whole vectors.
    """
    if winograd_anchor(state, target) is None:
        return
    for tile, variant in VARIANTS:
        builder = SketchBuilder(state)
        if schedule_winograd(builder, target, tile, variant):
            yield builder.sketch(f"winograd{tile}, {variant.value}")


def winograd_anchor(
    state: schedule.ScheduleState, target: CpuTarget
) -> tuple[schedule.Stage, schedule.Convolution] | None:
    """The convolution of a program to which the heuristic applies; None for other programs."""
    builder = SketchBuilder(state)
    fold_widened(builder)
    state = builder.state
    anchor = only_fold(state)
    if anchor is None or not accesses.points(anchor.tensor):
        return None
    convolution = schedule.find_convolution(anchor.tensor)
    if convolution is None:
        return None
    slides = {slide.out.var for slide in (convolution.rows, convolution.columns)}
    lanes = anchor.tensor.axes[-1].var
    if slides & (free_vars(convolution.data.indices[-1]) | {lanes}):
        return None
    group = accesses.group_size(convolution.data, lanes)
    is_shared = lanes not in free_vars(*convolution.data.indices)
    if not is_shared and (not group or group % accesses.lanes_for(target, anchor)):
        return None
    suits = saves_products(state, anchor.tensor, convolution, group)
    return (anchor, convolution) if suits else None


def saves_products(
    state: schedule.ScheduleState,
    tensor: Compute,
    convolution: schedule.Convolution,
    group: int = 0,
) -> bool:
    """Whether the kernel is a constant that nothing else reads, and channels are enough.

    group   channels of the result that read the same channels; 0: all
    """
    kernel = convolution.kernel
    inputs = accesses.count_of(tensor.reduce_axes) // schedule.TAPS**2
    used = free_vars(*kernel.indices)
    outputs = group or prod(axis.length for axis in tensor.axes if axis.var in used)
    is_own = kernel.source.name in state.constants and len(state.readers(kernel.source.name)) == 1
    return is_own and min(inputs, outputs) >= _LEAST_CHANNELS


def schedule_winograd(
    builder: SketchBuilder, target: CpuTarget, tile: int, portion: Portion
) -> bool:
    """Take all steps, for a program to which the heuristic applies; False if they do not pay.

    tile, portion   as in `VARIANTS`
    """
    fold_widened(builder)
    suitable = winograd_anchor(builder.state, target)
    assert suitable is not None, "the heuristic applies"
    anchor, convolution = suitable
    name = anchor.name
    builder.do(schedule.UseAlgorithm(name, f"winograd{tile}"))
    builder.do(schedule.FoldConstant(f"{name}_kernel_f64"))
    builder.do(schedule.FoldConstant(f"{name}_kernel"))
    most = _MOST_AGAIN * target.l2_bytes
    if portion is Portion.BANDS and weight_bytes(builder.state, name) > most:
        return False
    kept = {f"{name}_{part}" for part in ("data", "rows", "columns", "product", "sums")}
    if not builder.state.has_stage(f"{name}_data"):
        kept.add(convolution.data.source.name)
    inline_elementwise(builder, keep=frozenset({*kept, name}))
    roles = find_axes(builder.state, anchor, convolution)
    if roles is None:
        return False
    readers = builder.state.readers(name)
    if sum(len(accesses.loads_from(reader.tensor, name)) for reader in readers) == 1:
        builder.do(schedule.ComputeInline(name))
    schedule_stages(builder, Case.of(builder.state, name, tile, portion, roles, target))
    return True
