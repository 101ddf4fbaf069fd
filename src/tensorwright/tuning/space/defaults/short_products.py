"""Products of short numbers, bytes or i16, by the instructions that a target has.

By an instruction that multiplies one row by the columns of a vector, some terms at once:

    for row tiles, for column tiles @parallel:
      for k in 0..K/terms:                     sums of the tile in registers
        dot: the terms of a row, times as many of each column of a vector
      what follows the product, for the tile

By an instruction that multiplies two rows by two columns, two groups of terms each:

    for row tiles, for column tiles @parallel:
      for k in 0..K/(2 terms):                 sums of the tile in registers, four in each
        mmla: two groups of each of 2 rows, times two groups of each of 2 columns
      what follows the product, for the tile, two columns at a time

By an instruction that multiplies matrices: `matrices.py`.

Rows are those of a matrix, or pixels of a row whose channels lie in blocks; then the blocks of the
result are more columns, and the groups of a row lie in neighbouring blocks. The weights are packed
so that an instruction reads neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tensorwright import base, expr, schedule
from tensorwright.tuning.space import steps
from tensorwright.tuning.space.accesses import (
    elements_of,
    extent_of,
    group_size,
    loads_from,
    points,
    reads_along,
)
from tensorwright.tuning.space.defaults.tile_sizes import LATENCY_CYCLES, default_tile, row_sizes
from tensorwright.tuning.space.register_tile import nest
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder, divisors

DATA_BYTES = 512 << 10  # bytes that stay in the second cache, beside some weights


@dataclass(frozen=True, slots=True)
class Operands:
    """The data, of which neighbours along `folded` are read at a time, and the weights.

    instruction   what multiplies them
    row, blocks   positions of the axis of rows, and of that of blocks of columns (None: no blocks)
    group         so many blocks of columns read the same data (0: all)
    """

    instruction: base.ShortProduct
    data: expr.Load
    weights: expr.Load
    folded: expr.Axis
    row: int
    blocks: int | None
    group: int = 0

    @property
    def lanes(self) -> int:
        """Columns that belong together: of a block, or of a vector."""
        return self.instruction.width


def operands_of(
    product: schedule.Stage,
    state: schedule.ScheduleState,
    instructions: Sequence[base.ShortProduct],
) -> Operands | None:
    """The operands of a product, if an instruction takes them and the weights are constant ones of
    whole vectors.
    """
    tensor = product.tensor
    loads = short_factors(tensor.body)
    if loads is None or len(tensor.axes) < 2:
        return None
    data, weights = loads
    types = data.dtype, weights.dtype, tensor.dtype
    suited = (each for each in instructions if (each.data, each.weights, each.sums) == types)
    fitted = next((pair for each in suited for pair in _fitted(each, data, tensor)), None)
    last = tensor.axes[-1]
    if fitted is None or reads_along(data, last.var):
        return None
    instruction, folded = fitted
    if weights.source.name not in state.constants or not reads_along(weights, last.var):
        return None
    outer = [*enumerate(tensor.axes[:-1])]
    own = [n for n, axis in outer if axis.length > 1 and reads_along(weights, axis.var)]
    rows = [at for at, axis in enumerate(tensor.axes[:-1]) if at not in own]
    if not rows or len(own) > 1:
        return None
    if own and not instruction.is_matrix and last.length != instruction.width:
        return None
    variables = [tensor.axes[at].var for at in own if reads_along(data, tensor.axes[at].var)]
    if variables and not instruction.is_matrix:
        return None
    group = group_size(data, variables[0]) or 1 if variables else 0
    return Operands(instruction, data, weights, folded, rows[-1], own[0] if own else None, group)


def _fitted(
    instruction: base.ShortProduct, data: expr.Load, tensor: expr.Compute
) -> Iterator[tuple[base.ShortProduct, expr.Axis]]:
    """An instruction that takes whole runs of terms along an axis, and whole columns: of matrices
    that with the most groups and columns, if they fill its registers well.
    """
    columns = tensor.axes[-1].length
    shapes = [instruction]
    if instruction.is_matrix:
        wide = max(divisors(columns, instruction.columns))
        groups = range(instruction.groups, 0, -1)
        shapes = [instruction.of_shape(instruction.rows, wide, each) for each in groups]
    for shaped in shapes:
        axes = [axis for axis in tensor.reduce_axes if _is_run(data, axis, shaped.run)]
        is_filled = shaped.speed >= 1 or not shaped.is_matrix
        if len(axes) == 1 and columns % shaped.width == 0 and is_filled:
            yield shaped, axes[0]


def products_of(
    state: schedule.ScheduleState, instructions: Sequence[base.ShortProduct]
) -> list[tuple[schedule.Stage, Operands]]:
    """The products that an instruction computes, and their operands."""
    folds = [stage for stage in state.stages if stage.tensor.reduction is not None]
    pairs = [(stage, operands_of(stage, state, instructions)) for stage in folds]
    return [(stage, operands) for stage, operands in pairs if operands is not None]


def _is_run(load: expr.Load, axis: expr.Axis, terms: int) -> bool:
    """Whether some elements from a multiple of their number along an axis are adjacent."""
    extent = axis.length
    if extent % terms:
        return False
    outer, inner = expr.Var(f"{axis.name}_o"), expr.Var(f"{axis.name}_i")
    bounds = {
        outer: expr.Range.of_extent(extent // terms),
        inner: expr.Range.of_extent(terms),
    }
    *others, last = (
        expr.simplify(expr.substitute(index, {axis.var: outer * terms + inner}), bounds)
        for index in load.indices
    )
    along = [coefficient for monomial, coefficient in expr.terms_of(last) if monomial == (inner,)]
    is_linear = along == [1] and inner not in expr.free_vars(last - inner)
    return is_linear and inner not in expr.free_vars(*others)


def short_factors(value: expr.Value) -> tuple[expr.Load, expr.Load] | None:
    """i32(load) * i32(load)."""
    if not isinstance(value, expr.Apply) or value.fn is not expr.Fn.MUL:
        return None
    loads = [each.operand for each in value.args if isinstance(each, expr.Cast)]
    factors = [each for each in loads if isinstance(each, expr.Load)]
    if len(factors) != 2:
        return None
    return factors[0], factors[1]


def is_alike(reader: schedule.Stage, product: str) -> bool:
    """Whether a stage has the axes of the product that it reads, each element at its position."""
    own = tuple(axis.var for axis in reader.tensor.axes)
    loads = loads_from(reader.tensor, product)
    shape = tuple(axis.extent for axis in reader.tensor.axes)
    return {load.indices for load in loads} == {own} and loads[0].source.shape == shape


def _is_alike_but_columns(reader: schedule.Stage, product: str) -> bool:
    """Whether it is so, or the reader leaves out the last columns, which are there to fill up
    vectors.
    """
    own = tuple(axis.var for axis in reader.tensor.axes)
    loads = loads_from(reader.tensor, product)
    *shape, last = (axis.extent for axis in reader.tensor.axes)
    *rows, columns = loads[0].source.shape
    is_part = isinstance(last, int) and isinstance(columns, int) and last <= columns
    return {load.indices for load in loads} == {own} and rows == shape and is_part


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
    builder: SketchBuilder,
    product: schedule.Stage,
    operands: Operands,
    target: base.CpuTarget,
    inside: str = "",
    fits: Callable[[schedule.Stage, str], bool] = is_alike,
) -> Product:
    """Schedule the stages around a product, and say what is computed in its tiles.

    inside   a stage that is left to be computed in the loops of the product
    fits     whether a reader of the product may store the tiles
    """
    steps.inline_elementwise(builder, keep=frozenset((operands.data.source.name,)))
    stored = steps.ensure_epilogue(builder, product.name, fits)
    name = product.name if stored != product.name else schedule.CacheWrite(product.name).cached
    for stage in builder.state.stages:
        if stage.name not in (name, stored, inside) and isinstance(
            stage.placement, schedule.AtRoot
        ):
            steps.schedule_at_root(builder, stage.name, target, stage.name)
    axes = builder.state.stage(stored).tensor.axes
    rows = extent_of(axes[operands.row].extent)
    if operands.blocks is None:
        columns = product.tensor.axes[-1].length // operands.lanes
        return Product(name, stored, operands, rows, columns)
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
    outer = [tiles, *outer] if data_bytes <= DATA_BYTES else [*outer, tiles]
    nest(builder, stored, outer, (*inside, *rows), lanes)
    work = points(builder.state.stage(product.name).tensor) // (
        operands.lanes * operands.instruction.terms
    )
    fused = steps.parallelise(builder, stored, outer, work)
    builder.do(schedule.ComputeAt(product.name, stored, fused or outer[-1]))


_COLUMNS = (1, 2, 3, 4)  # vectors of a tile
_MOST_ROWS = 14
_STEPS = (4, 2, 1)  # of the reduction that one pass of its loop makes


def dot_sketches(begun: SketchBuilder, target: base.CpuTarget) -> Iterator[Sketch]:
    """The sketch of a product with constants of whole vectors; none for other programs."""
    state = begun.state
    products = products_of(state, target.short_products())
    if len(products) != 1:
        return
    ((product, operands),) = products
    registers = target.vector_registers - operands.instruction.temporaries
    builder = SketchBuilder(state)
    builder.join(begun)
    tiled = begin(builder, product, operands, target, fits=_is_alike_but_columns)
    choices = tuple(count for count in _COLUMNS if tiled.columns % count == 0)
    columns, rows, _ = default_tile(
        tiled.columns,
        tiled.rows,
        1,
        replace(target, vector_registers=registers + 1),
        choices[-1],
        blocks=(1, 0, 0),
        most_rows=(_MOST_ROWS, 1),
        latency_cycles=LATENCY_CYCLES,
    )
    wide = builder.choose(f"{tiled.stored}_columns", choices, columns)
    sizes = {*row_sizes(tiled.rows, min(_MOST_ROWS, tiled.rows)), rows}
    high = builder.choose(f"{tiled.stored}_rows", tuple(sorted(sizes)), rows)
    builder.limit(high * wide + wide, registers)
    place_tiles(builder, tiled, wide, high, operands.lanes)
    _tensorize(builder, tiled)
    yield builder.sketch("products of short numbers")


def _tensorize(builder: SketchBuilder, product: Product) -> None:
    """Let the instruction do the innermost loops of the product of a tile."""
    name, operands = product.name, product.operands
    tensor = builder.state.stage(name).tensor
    *spatial, column = (axis.name for axis in tensor.axes)
    folded = operands.folded.name
    others = [axis.name for axis in tensor.reduce_axes if axis.name != folded]
    vector = column
    if operands.blocks is None:
        builder.do(schedule.Split(name, column, (operands.lanes,)))
        columns, vector = [f"{column}_o"], f"{column}_i"
    else:  # inside of the rows: else all their bytes, spread, are alive, and sums are spilled
        columns = [spatial.pop(operands.blocks)]
    terms = operands.instruction.terms
    steps_at_once = next(n for n in _STEPS if operands.folded.length % (n * terms) == 0)
    builder.do(schedule.Split(name, folded, (steps_at_once, terms), schedule.Tail.EXACT))
    step = f"{folded}_1"
    order = (f"{folded}_0", *others, step, *spatial, *columns, vector, f"{folded}_2")
    builder.do(schedule.Reorder(name, order))
    for loop in (step, *spatial, *columns):
        builder.do(schedule.Unroll(name, loop))
    builder.do(schedule.PackConstant(operands.weights.source.name, name))
    builder.do(schedule.Tensorize(name, vector, operands.instruction.intrinsic))


_PAIR = 2  # rows, and columns, of an instruction
_TILE_COLUMNS = (1, 2, 3, 4)  # times the columns of a block
_MOST_PAIRS = 7  # of rows
_TILE_REGISTERS = 30  # two hold the bytes of two pairs of columns
_PAIR_STEPS = 3  # instructions that bring the bytes of a pair of rows into a register
_LOOP_STEPS = 3


def tile_of_pairs_sketches(begun: SketchBuilder, target: base.CpuTarget) -> Iterator[Sketch]:
    """The sketch of a product with constants, of two rows or more, by pairs of rows and columns.

    None for other programs and targets.
    """
    state = begun.state
    products = products_of(state, target.short_products(_PAIR))
    if len(products) != 1:
        return
    ((product, operands),) = products
    groups = operands.instruction.groups
    if operands.folded.length % (groups * operands.instruction.terms):
        return
    builder = SketchBuilder(state)
    builder.join(begun)
    tiled = begin(builder, product, operands, target)
    pairs = tiled.rows // _PAIR
    if not pairs:
        return
    sizes = tuple(n for n in range(1, _MOST_PAIRS + 1) if n <= pairs)
    choices = tuple(count for count in _TILE_COLUMNS if tiled.columns % count == 0)
    held = 1 if operands.blocks is None else groups  # registers that hold a pair's bytes
    fitting = [(h, w) for h in sizes for w in choices if 2 * h * w + held * h <= _TILE_REGISTERS]
    usual, columns = max(fitting, key=lambda tile: _share(tile[0], tile[1], tiled.rows))
    wide = builder.choose(f"{tiled.stored}_columns", choices, columns)
    high = builder.choose(f"{tiled.stored}_pairs", sizes, usual)
    builder.limit(2 * high * wide + held * high, _TILE_REGISTERS)
    place_tiles(builder, tiled, wide, high * _PAIR, _PAIR, _PAIR)
    tensorize_tile(builder, tiled)
    yield builder.sketch("tiles of short numbers")


def _share(pairs: int, wide: int, rows: int) -> float:
    """The share of useful multiplications, in `pairs` of rows by `wide` times four columns."""
    high = pairs * _PAIR
    wanted = rows / (-(-rows // high) * high)
    products = 2 * pairs * wide
    return wanted * products / (products + _PAIR_STEPS * pairs + 2 * wide + _LOOP_STEPS)


def tensorize_tile(builder: SketchBuilder, product: Product) -> None:
    """Let an instruction for several rows do the innermost loops of the product of a tile."""
    name, operands = product.name, product.operands
    instruction, tensor = operands.instruction, builder.state.stage(name).tensor
    *spatial, column = (axis.name for axis in tensor.axes)
    row, folded = spatial[operands.row], operands.folded.name
    others = [axis.name for axis in tensor.reduce_axes if axis.name != folded]
    builder.do(schedule.Split(name, row, (instruction.rows,), schedule.Tail.EXACT))
    builder.do(schedule.Split(name, column, (instruction.columns,), schedule.Tail.EXACT))
    parts = (instruction.groups, instruction.terms)
    builder.do(schedule.Split(name, folded, parts, schedule.Tail.EXACT))
    tiles, inside = [f"{column}_o", f"{row}_o"], [f"{row}_i", f"{column}_i", f"{folded}_1"]
    if instruction.is_matrix:
        tiles, inside = tiles[::-1], [inside[0], inside[2], inside[1]]
    outside = (*(n for n in spatial if n != row), *tiles)
    inside.append(f"{folded}_2")
    builder.do(schedule.Reorder(name, (f"{folded}_0", *others, *outside, *inside)))
    for loop in outside:
        builder.do(schedule.Unroll(name, loop))
    builder.do(schedule.PackConstant(operands.weights.source.name, name))
    builder.do(schedule.Tensorize(name, inside[0], instruction.intrinsic))
