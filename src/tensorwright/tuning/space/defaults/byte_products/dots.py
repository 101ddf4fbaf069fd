"""Products of bytes: by the instruction that multiplies and adds four pairs at once.

    for row tiles, for column tiles @parallel:
      for k in 0..K/4:                         sums of the tile in registers
        dot4: 4 bytes of a row, times 4 bytes of each column of a vector
      what follows the product, for the tile

Rows are those of a matrix, or pixels of a row whose channels lie in blocks; then the blocks of the
result are more columns. The weights are packed so that four rows of a vector's columns lie side by
side.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.base import BYTE_TERMS, CpuTarget
from tensorwright.schedule import (
    PackConstant,
    Reorder,
    ScheduleState,
    Split,
    Tail,
    Tensorize,
    Unroll,
)
from tensorwright.tuning.space.axes.anchor import only_fold
from tensorwright.tuning.space.defaults.byte_products.operands import (
    Product,
    begin,
    operands_of,
    place_tiles,
)
from tensorwright.tuning.space.defaults.tile_sizes import row_sizes
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder

_COLUMNS = (1, 2, 3, 4)  # vectors of a tile
_MOST_ROWS = 14
_REGISTERS = 31  # one holds the bytes of a row
_DEFAULT_ROWS = 12


def byte_dot_sketches(state: ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """The sketch of a product of bytes with constant bytes of whole vectors; none for others."""
    instructions = {each.data: each for each in reversed(target.byte_products)}
    product = only_fold(state) if instructions else None
    if product is None:
        return
    operands = operands_of(product, state, {d: i.lanes for d, i in instructions.items()})
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
        builder.do(Split(name, column, (operands.lanes,)))
        columns, vector = [f"{column}_o"], f"{column}_i"
    builder.do(Split(name, folded, (BYTE_TERMS,), Tail.EXACT))
    order = (f"{folded}_o", *others, *spatial, *columns, vector, f"{folded}_i")
    builder.do(Reorder(name, order))
    for loop in (*spatial, *columns):
        builder.do(Unroll(name, loop))
    builder.do(PackConstant(operands.weights.source.name, name))
    builder.do(Tensorize(name, vector, intrinsic))


def _default_rows(rows: int, sizes: tuple[int, ...]) -> int:
    """The largest usual size without a rest, if it is not much smaller than the largest."""
    usual = [size for size in sizes if size <= _DEFAULT_ROWS]
    best = max((size for size in usual if rows % size == 0), default=1)
    return best if 2 * best >= usual[-1] else usual[-1]
