"""Products of bytes, by the instructions that a target has. Read `byte_products.py` first.

The operands of a product of bytes, and the loops around the tiles of its result.

Products of bytes: by the instruction that multiplies and adds four pairs at once.

    for row tiles, for column tiles @parallel:
      for k in 0..K/4:                         sums of the tile in registers
        dot4: 4 bytes of a row, times 4 bytes of each column of a vector
      what follows the product, for the tile

Rows are those of a matrix, or pixels of a row whose channels lie in blocks; then the blocks of the
result are more columns. The weights are packed so that four rows of a vector's columns lie side by
side.

Products of bytes: by the instruction that multiplies two rows by two columns, eight bytes each.

    for row tiles, for column tiles @parallel:
      for k in 0..K/8:                         sums of the tile in registers, four in each
        mmla: 8 bytes of each of 2 rows, times 8 bytes of each of 2 columns
      what follows the product, for the tile, two columns at a time

Rows and columns are those of `byte_products.py`. Eight bytes of a row are two groups of four, which
lie in neighbouring blocks where channels do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tensorwright import base, expr, schedule
from tensorwright.tuning.space import steps
from tensorwright.tuning.space.accesses import (
    elements_of,
    extent_of,
    loads_from,
    points,
    reads_along,
)
from tensorwright.tuning.space.defaults.tile_sizes import row_sizes
from tensorwright.tuning.space.register_tile import nest
from tensorwright.tuning.space.roles import only_fold
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder

_DATA_BYTES = 512 << 10  # bytes that stay in the second cache, beside some weights


@dataclass(frozen=True, slots=True)
class Operands:
    """The data, of which four neighbours along `folded` are read at a time, and the weights.

    lanes         columns that belong together: of a block, or of a vector
    row, blocks   positions of the axis of rows, and of that of blocks of columns (None: no blocks)
    """

    lanes: int
    data: expr.Load
    weights: expr.Load
    folded: expr.Axis
    row: int
    blocks: int | None


def operands_of(
    product: schedule.Stage, state: schedule.ScheduleState, lanes: Mapping[base.DType, int]
) -> Operands | None:
    """The operands of a product, if they are bytes and constant ones of whole vectors.

    lanes   the number of columns that belong together, by the type of the data
    """
    tensor = product.tensor
    loads = _factors(tensor.body)
    if loads is None or len(tensor.axes) < 2 or tensor.dtype is not base.DType.I32:
        return None
    data, weights = loads
    width = lanes.get(data.dtype)
    if width is None:
        return None
    last = tensor.axes[-1]
    folded = [axis for axis in tensor.reduce_axes if _is_run(data, axis)]
    if len(folded) != 1 or last.length % width or reads_along(data, last.var):
        return None
    if weights.source.name not in state.constants or not reads_along(weights, last.var):
        return None
    own = [at for at, axis in enumerate(tensor.axes[:-1]) if reads_along(weights, axis.var)]
    rows = [at for at, axis in enumerate(tensor.axes[:-1]) if at not in own]
    if not rows or len(own) > 1 or any(reads_along(data, tensor.axes[at].var) for at in own):
        return None
    is_block = bool(own)
    if is_block and last.length != width:
        return None
    return Operands(width, data, weights, folded[0], rows[-1], own[0] if is_block else None)


def _is_run(load: expr.Load, axis: expr.Axis) -> bool:
    """Whether four elements from a multiple of four along an axis are adjacent."""
    extent = axis.length
    if extent % base.BYTE_TERMS:
        return False
    outer, inner = expr.Var(f"{axis.name}_o"), expr.Var(f"{axis.name}_i")
    bounds = {
        outer: expr.Range.of_extent(extent // base.BYTE_TERMS),
        inner: expr.Range.of_extent(base.BYTE_TERMS),
    }
    *others, last = (
        expr.simplify(expr.substitute(index, {axis.var: outer * base.BYTE_TERMS + inner}), bounds)
        for index in load.indices
    )
    along = [coefficient for monomial, coefficient in expr.terms_of(last) if monomial == (inner,)]
    is_linear = along == [1] and inner not in expr.free_vars(last - inner)
    return is_linear and inner not in expr.free_vars(*others)


def _factors(value: expr.Value) -> tuple[expr.Load, expr.Load] | None:
    """i32(load of bytes) * i32(i8 load)."""
    if not isinstance(value, expr.Apply) or value.fn is not expr.Fn.MUL:
        return None
    loads = [each.operand for each in value.args if isinstance(each, expr.Cast)]
    factors = [each for each in loads if isinstance(each, expr.Load)]
    if len(factors) != 2 or factors[1].dtype is not base.DType.I8:
        return None
    return factors[0], factors[1]


def _is_alike(reader: schedule.Stage, product: str) -> bool:
    """Whether a stage has the axes of the product that it reads, each element at its position."""
    own = tuple(axis.var for axis in reader.tensor.axes)
    loads = loads_from(reader.tensor, product)
    shape = tuple(axis.extent for axis in reader.tensor.axes)
    return {load.indices for load in loads} == {own} and loads[0].source.shape == shape


@dataclass(frozen=True, slots=True)
class Product:
    """A product of bytes in a sketch: the stage that computes it and the one that stores it.

    rows      of the axis along which tiles are high
    columns   vectors, or blocks, along which they are wide
    """

    name: str
    stored: str
    operands: Operands
    rows: int
    columns: int


def begin(
    builder: SketchBuilder, product: schedule.Stage, operands: Operands, target: base.CpuTarget
) -> Product:
    """Schedule the stages around a product, and say what is computed in its tiles."""
    steps.inline_elementwise(builder, keep=frozenset((operands.data.source.name,)))
    stored = steps.ensure_epilogue(builder, product.name, _is_alike)
    name = product.name if stored != product.name else schedule.CacheWrite(product.name).cached
    for stage in builder.state.stages:
        if stage.name not in (name, stored) and isinstance(stage.placement, schedule.AtRoot):
            steps.schedule_at_root(builder, stage.name, target, stage.name)
    axes = builder.state.stage(stored).tensor.axes
    rows = extent_of(axes[operands.row].extent)
    if operands.blocks is None:
        return Product(name, stored, operands, rows, axes[-1].length // operands.lanes)
    return Product(name, stored, operands, rows, extent_of(axes[operands.blocks].extent))


def place_tiles(
    builder: SketchBuilder,
    product: Product,
    wide: expr.Index,
    high: expr.Index,
    vector: int,
    group: int = 1,
) -> None:
    """Store a product in tiles, and compute it inside the loops over them.

    vector   elements that are stored at once     group   rows that are computed at once
    """
    operands, stored = product.operands, product.stored
    axes = builder.state.stage(stored).tensor.axes
    names = [axis.name for axis in axes]
    row, column = names[operands.row], names[-1]
    parts = operands.lanes // vector
    if operands.blocks is None:
        builder.do(schedule.Split(stored, column, (wide * parts, vector)))
        tiles, inside, lanes = f"{column}_0", [f"{column}_1"], f"{column}_2"
    else:
        block = names[operands.blocks]
        builder.do(schedule.Split(stored, block, (wide,), schedule.Tail.EXACT))
        tiles, inside, lanes = f"{block}_o", [f"{block}_i"], column
        if parts > 1:
            builder.do(schedule.Split(stored, column, (vector,), schedule.Tail.EXACT))
            inside, lanes = [f"{block}_i", f"{column}_o"], f"{column}_i"
    builder.do(schedule.Split(stored, row, (high,), schedule.Tail.SHIFT))
    rows = [f"{row}_i"]
    if group > 1:
        builder.do(schedule.Split(stored, f"{row}_i", (group,), schedule.Tail.EXACT))
        rows = [f"{row}_i_o", f"{row}_i_i"]
    blocks = names[operands.blocks or len(names) :][:1]
    outer = [*(n for n in names if n not in (row, column, *blocks)), f"{row}_o"]
    data_bytes = elements_of(operands.data.source)
    # data that stay in the second cache are read again for every column, or else the weights are
    outer = [tiles, *outer] if data_bytes <= _DATA_BYTES else [*outer, tiles]
    nest(builder, stored, outer, (*inside, *rows), lanes)
    work = points(builder.state.stage(product.name).tensor) // (operands.lanes * base.BYTE_TERMS)
    fused = steps.parallelise(builder, stored, outer, work)
    builder.do(schedule.ComputeAt(product.name, stored, fused or outer[-1]))


_COLUMNS = (1, 2, 3, 4)  # vectors of a tile
_MOST_ROWS = 14
_REGISTERS = 31  # one holds the bytes of a row
_DEFAULT_ROWS = 12


def byte_dot_sketches(state: schedule.ScheduleState, target: base.CpuTarget) -> Iterator[Sketch]:
    """The sketch of a product of bytes with constant bytes of whole vectors; none for others."""
    instructions = {each.data: each for each in reversed(target.byte_products())}
    product = only_fold(state) if instructions else None
    if product is None:
        return
    operands = operands_of(product, state, {d: i.columns for d, i in instructions.items()})
    if operands is None:
        return
    builder = SketchBuilder(state)
    tiled = begin(builder, product, operands, target)
    sizes = row_sizes(tiled.rows, min(_MOST_ROWS, tiled.rows))
    usual = _default_rows(tiled.rows, sizes)
    choices = tuple(count for count in _COLUMNS if tiled.columns % count == 0)
    fitting = [count for count in choices if count * (usual + 1) <= _REGISTERS]
    wide = builder.choose(f"{tiled.stored}_columns", choices, max(fitting, default=1))
    high = builder.choose(f"{tiled.stored}_rows", sizes, usual)
    builder.limit(high * wide + wide, _REGISTERS)
    place_tiles(builder, tiled, wide, high, operands.lanes)
    _tensorize(builder, tiled, instructions[operands.data.dtype].intrinsic)
    yield builder.sketch("products of bytes")


def _tensorize(builder: SketchBuilder, product: Product, intrinsic: str) -> None:
    """Let the instruction do the innermost loops of the product of a tile."""
    name, operands = product.name, product.operands
    tensor = builder.state.stage(name).tensor
    *spatial, column = (axis.name for axis in tensor.axes)
    folded = operands.folded.name
    others = [axis.name for axis in tensor.reduce_axes if axis.name != folded]
    columns = []
    vector = column
    if operands.blocks is None:
        builder.do(schedule.Split(name, column, (operands.lanes,)))
        columns, vector = [f"{column}_o"], f"{column}_i"
    builder.do(schedule.Split(name, folded, (base.BYTE_TERMS,), schedule.Tail.EXACT))
    order = (f"{folded}_o", *others, *spatial, *columns, vector, f"{folded}_i")
    builder.do(schedule.Reorder(name, order))
    for loop in (*spatial, *columns):
        builder.do(schedule.Unroll(name, loop))
    builder.do(schedule.PackConstant(operands.weights.source.name, name))
    builder.do(schedule.Tensorize(name, vector, intrinsic))


def _default_rows(rows: int, sizes: tuple[int, ...]) -> int:
    """The largest usual size without a rest, if it is not much smaller than the largest."""
    usual = [size for size in sizes if size <= _DEFAULT_ROWS]
    best = max((size for size in usual if rows % size == 0), default=1)
    return best if 2 * best >= usual[-1] else usual[-1]


_PAIR = 2  # rows, and columns, of an instruction
_LANES = 4  # columns of a block
_TILE_COLUMNS = (1, 2, 3, 4)  # times the columns of a block
_GROUPS = 2  # of bytes of each row
_MOST_PAIRS = 7  # of rows
_TILE_REGISTERS = 30  # two hold the bytes of two pairs of columns
_PAIR_STEPS = 3  # instructions that bring the bytes of a pair of rows into a register
_LOOP_STEPS = 3


def byte_tile_sketches(state: schedule.ScheduleState, target: base.CpuTarget) -> Iterator[Sketch]:
    """The sketch of a product of bytes with constant ones, of two rows or more.

    The terms are whole runs of eight bytes. None for other programs and targets.
    """
    instructions = {each.data: each for each in target.byte_products(_PAIR)}
    product = only_fold(state) if instructions else None
    if product is None:
        return
    operands = operands_of(product, state, dict.fromkeys(instructions, _LANES))
    if operands is None or operands.folded.length % (_GROUPS * base.BYTE_TERMS):
        return
    builder = SketchBuilder(state)
    tiled = begin(builder, product, operands, target)
    pairs = tiled.rows // _PAIR
    if not pairs:
        return
    sizes = tuple(n for n in range(1, _MOST_PAIRS + 1) if n <= pairs)
    choices = tuple(count for count in _TILE_COLUMNS if tiled.columns % count == 0)
    held = 1 if operands.blocks is None else _GROUPS  # registers that hold a pair's bytes
    fitting = [(h, w) for h in sizes for w in choices if 2 * h * w + held * h <= _TILE_REGISTERS]
    usual, columns = max(fitting, key=lambda tile: _share(tile[0], tile[1], tiled.rows))
    wide = builder.choose(f"{tiled.stored}_columns", choices, columns)
    high = builder.choose(f"{tiled.stored}_pairs", sizes, usual)
    builder.limit(2 * high * wide + held * high, _TILE_REGISTERS)
    place_tiles(builder, tiled, wide, high * _PAIR, _PAIR, _PAIR)
    _tensorize_tile(builder, tiled, instructions[operands.data.dtype].intrinsic)
    yield builder.sketch("tiles of bytes")


def _share(pairs: int, wide: int, rows: int) -> float:
    """The share of useful multiplications, in `pairs` of rows by `wide` times four columns."""
    high = pairs * _PAIR
    wanted = rows / (-(-rows // high) * high)
    products = 2 * pairs * wide
    return wanted * products / (products + _PAIR_STEPS * pairs + 2 * wide + _LOOP_STEPS)


def _tensorize_tile(builder: SketchBuilder, product: Product, intrinsic: str) -> None:
    """Let the instruction do the innermost loops of the product of a tile."""
    name, operands = product.name, product.operands
    tensor = builder.state.stage(name).tensor
    *spatial, column = (axis.name for axis in tensor.axes)
    row, folded = spatial[operands.row], operands.folded.name
    others = [axis.name for axis in tensor.reduce_axes if axis.name != folded]
    builder.do(schedule.Split(name, row, (_PAIR,), schedule.Tail.EXACT))
    builder.do(schedule.Split(name, column, (_PAIR,), schedule.Tail.EXACT))
    builder.do(schedule.Split(name, folded, (_GROUPS, base.BYTE_TERMS), schedule.Tail.EXACT))
    outside = (*(n for n in spatial if n != row), f"{column}_o", f"{row}_o")
    inside = (f"{row}_i", f"{column}_i", f"{folded}_1", f"{folded}_2")
    builder.do(schedule.Reorder(name, (f"{folded}_0", *others, *outside, *inside)))
    for loop in outside:
        builder.do(schedule.Unroll(name, loop))
    builder.do(schedule.PackConstant(operands.weights.source.name, name))
    builder.do(schedule.Tensorize(name, inside[0], intrinsic))


_SKETCHES = (byte_tile_sketches, byte_dot_sketches)


def byte_product_sketches(
    state: schedule.ScheduleState, target: base.CpuTarget
) -> Iterator[Sketch]:
    """The sketches, the best guess first; none if the target has no instruction that suits the
    program.
    """
    for each in _SKETCHES:
        yield from each(state, target)
