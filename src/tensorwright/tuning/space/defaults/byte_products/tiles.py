"""Products of bytes: by the instruction that multiplies two rows by two columns, eight bytes each.

    for row tiles, for column tiles @parallel:
      for k in 0..K/8:                         sums of the tile in registers, four in each
        mmla: 8 bytes of each of 2 rows, times 8 bytes of each of 2 columns
      what follows the product, for the tile, two columns at a time

Rows and columns are those of `dots.py`. Eight bytes of a row are two groups of four, which lie in
neighbouring blocks where channels do.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorwright.base import BYTE_GROUPS, BYTE_TERMS, BYTE_TILE, CpuTarget
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
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder

_LANES = BYTE_TILE * BYTE_TILE  # columns of a block
_COLUMNS = (1, 2, 3, 4)  # times the columns of a block
_MOST_PAIRS = 7  # of rows
_REGISTERS = 30  # two hold the bytes of two pairs of columns
_PAIR_STEPS = 3  # instructions that bring the bytes of a pair of rows into a register
_LOOP_STEPS = 3


def byte_tile_sketches(state: ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """The sketch of a product of bytes with constant ones, of two rows or more.

    The terms are whole runs of eight bytes. None for other programs and targets.
    """
    instructions = {each.data: each for each in target.byte_tiles}
    product = only_fold(state) if instructions else None
    if product is None:
        return
    operands = operands_of(product, state, dict.fromkeys(instructions, _LANES))
    if operands is None or operands.folded.length % (BYTE_GROUPS * BYTE_TERMS):
        return
    builder = SketchBuilder(state)
    tiled = begin(builder, product, operands, target)
    pairs = tiled.rows // BYTE_TILE
    if not pairs:
        return
    sizes = tuple(n for n in range(1, _MOST_PAIRS + 1) if n <= pairs)
    choices = tuple(count for count in _COLUMNS if tiled.columns % count == 0)
    held = 1 if operands.blocks is None else BYTE_GROUPS  # registers that hold a pair's bytes
    fitting = [(h, w) for h in sizes for w in choices if 2 * h * w + held * h <= _REGISTERS]
    usual, columns = max(fitting, key=lambda tile: _share(tile[0], tile[1], tiled.rows))
    wide = builder.choose(f"{tiled.stored}_columns", choices, columns)
    high = builder.choose(f"{tiled.stored}_pairs", sizes, usual)
    builder.limit(2 * high * wide + held * high, _REGISTERS)
    place_tiles(builder, tiled, wide, high * BYTE_TILE, BYTE_TILE, BYTE_TILE)
    _tensorize(builder, tiled, instructions[operands.data.dtype].intrinsic)
    yield builder.sketch("tiles of bytes")


def _share(pairs: int, wide: int, rows: int) -> float:
    """The share of useful multiplications, in `pairs` of rows by `wide` times four columns."""
    high = pairs * BYTE_TILE
    wanted = rows / (-(-rows // high) * high)
    products = 2 * pairs * wide
    return wanted * products / (products + _PAIR_STEPS * pairs + 2 * wide + _LOOP_STEPS)


def _tensorize(builder: SketchBuilder, product: Product, intrinsic: str) -> None:
    """Let the instruction do the innermost loops of the product of a tile."""
    name, operands = product.name, product.operands
    tensor = builder.state.stage(name).tensor
    *spatial, column = (axis.name for axis in tensor.axes)
    row, folded = spatial[operands.row], operands.folded.name
    others = [axis.name for axis in tensor.reduce_axes if axis.name != folded]
    builder.do(Split(name, row, (BYTE_TILE,), Tail.EXACT))
    builder.do(Split(name, column, (BYTE_TILE,), Tail.EXACT))
    builder.do(Split(name, folded, (BYTE_GROUPS, BYTE_TERMS), Tail.EXACT))
    outside = (*(n for n in spatial if n != row), f"{column}_o", f"{row}_o")
    inside = (f"{row}_i", f"{column}_i", f"{folded}_1", f"{folded}_2")
    builder.do(Reorder(name, (f"{folded}_0", *others, *outside, *inside)))
    for loop in outside:
        builder.do(Unroll(name, loop))
    builder.do(PackConstant(operands.weights.source.name, name))
    builder.do(Tensorize(name, inside[0], intrinsic))
