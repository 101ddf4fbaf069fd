"""Products of short numbers by an instruction that multiplies matrices in registers.

    for row tiles, for column tiles @parallel:
      for k in 0..K/(16 terms):                sums of the tile in up to four registers
        tile: 16 rows of 64 bytes, times 64 bytes of each of 16 columns
      what follows the product, for the tile, row by row

Rows are those of a matrix, or the pixels of a row of an image; the taps of a convolution are more
terms. Matrices are smaller where sizes do not divide: as many columns and groups of terms as
divide those of the product, and so many rows that few are computed twice.

The terms of a row lie side by side. Where they do not, or an image has a border, the short numbers
are copied first, some rows of an image at a time, for all columns. The few channels of a first
image are terms together with the taps of a row.

    for bands of rows @parallel:
      rows[h, w, c] = those of the band, with their border
      for column tiles, for row tiles in the band: as above
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tensorwright import base, expr, schedule
from tensorwright.ops import NARROW
from tensorwright.tuning.space import steps
from tensorwright.tuning.space.accesses import (
    bytes_of,
    elements_of,
    lanes_for,
    period_along,
    points,
)
from tensorwright.tuning.space.defaults.short_products import (
    DATA_BYTES,
    Operands,
    Product,
    begin,
    dot_sketches,
    operands_of,
    tensorize_tile,
    tile_of_pairs_sketches,
)
from tensorwright.tuning.space.defaults.tile import tile_sketches
from tensorwright.tuning.space.defaults.tile_sizes import row_sizes
from tensorwright.tuning.space.register_tile import nest
from tensorwright.tuning.space.roles import only_fold
from tensorwright.tuning.space.sketch import Kind, Sketch, SketchBuilder, divisors

_SIDE = 2  # matrices along a side of a tile: two registers hold rows of data, two hold columns
_MOST_BAND = 32  # rows of an image that are copied at a time
_PIECES = 8  # bands, for threads
_FEW_CHANNELS = 8  # of which a pixel has all
_MATRIX_RANK, _IMAGE_RANK = 2, 3  # a matrix, a batch of channels of a row: at least


def matrix_sketches(begun: SketchBuilder, target: base.CpuTarget) -> Iterator[Sketch]:
    """Sketches of a product with constants by matrices, best guess first; none for others."""
    instructions = target.matrix_products()
    stage = only_fold(begun.state)
    if stage is None or not instructions:
        return
    filled = 0.0
    for is_copied in (False, True):
        builder = _continued(begun)
        copy = _copy_rows(builder, stage) if is_copied else ""
        if is_copied and not copy:
            return
        product = builder.state.stage(stage.name)
        operands = operands_of(product, builder.state, instructions)
        if operands is None or operands.instruction.speed <= filled:
            continue
        filled = operands.instruction.speed
        count = product.tensor.axes[operands.row].length
        for rows in _heights(count, operands.instruction.rows):
            shape = operands.instruction.of_shape(
                rows, operands.instruction.columns, operands.instruction.groups
            )
            own = replace(operands, instruction=shape)
            yield _sketch(_continued(builder), product, own, target, copy)


def _continued(builder: SketchBuilder) -> SketchBuilder:
    other = SketchBuilder(builder.state)
    other.join(builder)
    return other


def _heights(rows: int, most: int) -> tuple[int, ...]:
    """The rows of matrices that compute the fewest rows twice: of pairs of them, of single ones."""
    computed: dict[int, int] = {}
    for side in range(1, _SIDE + 1):
        if rows >= base.LEAST_MATRIX_ROWS * side:
            tiles = -(-rows // (side * most))
            height = min(-(-rows // (side * tiles)), rows // side)
            computed[height] = side * height * -(-rows // (side * height))
    return tuple(sorted(computed, key=lambda height: (computed[height], -height)))


def _copy_rows(builder: SketchBuilder, stage: schedule.Stage) -> str:
    """Copy the data of a product, with its terms side by side; the name of the copy, "" if there is
    none: the data are made otherwise.
    """
    loads = tuple(expr.loads_of(stage.tensor.body))
    weights = [load for load in loads if load.source.name in builder.state.constants]
    others = [load for load in loads if load not in weights]
    if len(others) != 1 or len(others[0].indices) < _MATRIX_RANK:
        return ""
    (data,) = others
    name = data.source.name
    if not builder.state.has_stage(name):
        cached = schedule.CacheRead(name, stage.name)
        builder.do(cached)
        name = cached.copy
    terms = {axis.var for axis in stage.tensor.reduce_axes}
    weighted = frozenset().union(*(expr.free_vars(*load.indices) for load in weights))
    first, last = (expr.free_vars(data.indices[at]) for at in (1, -1))
    way = "short_rows"
    if len(data.indices) >= _IMAGE_RANK and not (last & terms and last <= weighted):
        way = "channels_last"
    elif len(data.indices) > _IMAGE_RANK and first & last & terms:
        way = "blocks_last"
    few = [axis for axis in stage.tensor.reduce_axes if axis.var in first]
    is_few = way == "channels_last" and len(few) == 1 and few[0].length <= _FEW_CHANNELS
    way = "pixels" if is_few else way
    wanted: list[schedule.Primitive] = [
        schedule.UseAlgorithm(name, way),
        schedule.ComputeInline(name),
    ]
    if is_few:
        wanted.append(schedule.UseAlgorithm(stage.name, "joined_taps"))
        wanted.append(schedule.FoldConstant(f"{stage.name}_weights"))
    for step in wanted:
        if not schedule.is_legal(step, builder.state):
            return ""
        builder.do(step)
    return f"{name}_pixels" if is_few else f"{name}_rows"


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Loops over tiles of a product that is stored, and those inside a tile, outermost first.

    columns, rows   over tiles          band    over bands of rows that are copied at a time
    beside, down    inside a tile       lanes   of a row of a matrix
    """

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    band: tuple[str, ...]
    beside: str
    down: tuple[str, ...]
    lanes: str


def _sketch(
    builder: SketchBuilder,
    stage: schedule.Stage,
    operands: Operands,
    target: base.CpuTarget,
    copy: str,
) -> Sketch:
    """Tiles of matrices, and the copy of the data for some of them."""
    data, weights = operands.data.source, operands.weights.source
    in_bands = bool(copy) and bytes_of(data) > bytes_of(weights)  # or all is copied at once
    product = begin(builder, stage, operands, target, copy)
    tiles = _tiles(builder, product, in_bands=in_bands)
    loops = builder.state.stage(product.stored).loops
    inner = (*tiles.down, tiles.beside, tiles.lanes)
    others = [n for n in loops if n not in (*tiles.columns, *tiles.rows, *tiles.band, *inner)]
    if in_bands:
        shared = [*others, *tiles.band]
        outer = [*shared, *tiles.columns, *tiles.rows]
    elif elements_of(data) <= DATA_BYTES:
        outer = shared = [*tiles.columns, *others, *tiles.rows]
    else:
        outer = shared = [*others, *tiles.rows, *tiles.columns]
    nest(builder, product.stored, (*outer, *tiles.down), (tiles.beside,), tiles.lanes)
    work = points(builder.state.stage(product.name).tensor) // operands.lanes
    fused = steps.parallelise(builder, product.stored, shared, work)
    inside = outer[-1] if in_bands or not fused else fused
    builder.do(schedule.ComputeAt(product.name, product.stored, inside))
    if in_bands:
        builder.do(schedule.ComputeAt(copy, product.stored, fused or shared[-1]))
    if copy:
        _fill_vectors(builder, copy, target, is_root=not in_bands)
    tensorize_tile(builder, product)
    return builder.sketch("matrices of short numbers")


def _tiles(builder: SketchBuilder, product: Product, *, in_bands: bool) -> _Tiles:
    """Split the loops of the stage that stores a product."""
    stored, operands = product.stored, product.operands
    instruction = operands.instruction
    axes = builder.state.stage(stored).tensor.axes
    row, column = axes[operands.row].name, axes[-1].name
    block = None if operands.blocks is None else axes[operands.blocks]
    if block is None or axes[-1].length > instruction.columns:
        widths = divisors(axes[-1].length // instruction.columns, _SIDE)
        wide = builder.choose(f"{stored}_columns", widths, widths[-1])
        builder.do(schedule.Split(stored, column, (wide, instruction.columns), _EXACT))
        columns = (*([] if block is None else [block.name]), f"{column}_0")
        beside, lanes = f"{column}_1", f"{column}_2"
    else:
        widths = divisors(operands.group or block.length, _SIDE)
        wide = builder.choose(f"{stored}_columns", widths, widths[-1])
        builder.do(schedule.Split(stored, block.name, (wide,), _EXACT))
        columns, beside, lanes = (f"{block.name}_o",), f"{block.name}_i", column
    heights = tuple(n for n in range(1, _SIDE + 1) if n * instruction.rows <= product.rows)
    high = builder.choose(f"{stored}_rows", heights, heights[-1])
    builder.do(schedule.Split(stored, row, (high, instruction.rows), schedule.Tail.SHIFT))
    band: list[str] = []
    rows, down = [f"{row}_0"], [f"{row}_1", f"{row}_2"]
    tall = _tall_axis(operands, axes)
    if tall is not None:
        depths = tuple(range(1, min(_SIDE, tall.length) + 1))
        usual = depths[-1] if heights[-1] == 1 else 1
        deep = builder.choose(f"{stored}_more_rows", depths, usual)
        builder.limit(high * deep, _SIDE)
        factors: tuple[expr.Index, ...] = (deep,)
        if in_bands:
            sizes = row_sizes(max(1, tall.length // _SIDE), _MOST_BAND)
            several = max((n for n in sizes if n * usual * _PIECES <= tall.length), default=1)
            factors = (builder.choose(f"{stored}_band", sizes, several, Kind.PARALLEL), deep)
        step = schedule.Split(stored, tall.name, factors, schedule.Tail.SHIFT)
        builder.do(step)
        *band, over, inside = step.children
        rows, down = [over, *rows], [inside, *down]
    return _Tiles(columns, tuple(rows), tuple(band), beside, tuple(down), lanes)


def _tall_axis(operands: Operands, axes: Sequence[expr.Axis]) -> expr.Axis | None:
    """The axis of the rows of an image around that of its pixels; None for matrices."""
    before = [axis for at, axis in enumerate(axes[: operands.row]) if at != operands.blocks]
    is_image = len(operands.data.indices) > _IMAGE_RANK and len(before) > 1
    return before[-1] if is_image and before[-1].length > 1 else None


def _fill_vectors(
    builder: SketchBuilder, copy: str, target: base.CpuTarget, *, is_root: bool
) -> None:
    """Copy by whole vectors: neighbours of a block, or terms that lie side by side."""
    stage = builder.state.stage(copy)
    *outer, last = stage.tensor.axes
    lanes = lanes_for(target, stage)
    period = period_along(expr.loads_of(stage.tensor.body), last)
    width = min(lanes, period or lanes)
    builder.do(schedule.Split(copy, last.name, (width,)))
    builder.do(schedule.Vectorize(copy, f"{last.name}_i"))
    if is_root:
        steps.parallelise(builder, copy, [axis.name for axis in outer], points(stage.tensor))


_EXACT = schedule.Tail.EXACT


_SKETCHES = (matrix_sketches, tile_of_pairs_sketches, dot_sketches)


def short_product_sketches(
    state: schedule.ScheduleState, target: base.CpuTarget
) -> Iterator[Sketch]:
    """The sketches, the best guess first; none if the target has no instruction that suits the
    program.

    Products of bf16 have those of f32, too: a price decides whether vectors are widened.  Those are
    the best guess if no instruction multiplies bf16 faster than f32.
    """
    builder = SketchBuilder(state)
    has_widened = False
    for stage in state.stages:
        inline = schedule.ComputeInline(stage.name)
        if steps.widens(stage.tensor, NARROW) and schedule.is_legal(inline, builder.state):
            builder.do(inline)
            has_widened = True
    short = chain.from_iterable(each(builder, target) for each in _SKETCHES)
    first = next(short, None)
    if first is None:
        return
    short = chain((first,), short)
    if not has_widened:
        yield from short
    elif target.is_fast(*NARROW):
        yield from chain(short, tile_sketches(state, target))
    else:
        yield from chain(tile_sketches(state, target), short)
