"""The rule for products of bytes: by the instruction that multiplies and adds four pairs at once.

    for row tiles, for column tiles @parallel:
      for k in 0..K/4:                         sums of the tile in registers
        dot4: 4 bytes of a row, times 4 bytes of each of 16 columns
      what follows the product, for the tile

The weights are packed so that the four rows of 16 columns lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorwright.base import DType, Target
from tensorwright.expr import Apply, Cast, Compute, Fn, Load, Value, loads_of
from tensorwright.schedule import (
    AtRoot,
    CacheWrite,
    ComputeAt,
    PackConstant,
    Reorder,
    ScheduleState,
    Split,
    Stage,
    Tail,
    Tensorize,
    Unroll,
    Vectorize,
)
from tensorwright.tuning.space.axes.accesses import extent_of, points, stride_along
from tensorwright.tuning.space.defaults.tile_sizes import row_sizes
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder
from tensorwright.tuning.space.steps import inline_elementwise, parallelise, spread

INTRINSIC = "dot4_u8i8_i32"
LANES = 16
FOLDED = 4
_COLUMNS = (1, 2, 3, 4)  # vectors of a tile
_MOST_ROWS = 14
_REGISTERS = 31  # one holds the bytes of a row
_DEFAULT_ROWS = 12
_DATA_BYTES = 512 << 10  # so much stays in the second cache, beside some weights


def byte_product_sketches(state: ScheduleState, target: Target) -> Iterator[Sketch]:
    """The sketch of the rule; none where the target has no such instruction, or the program is no
    product of bytes (u8) with constant ones (i8) of whole vectors.
    """
    products = [stage for stage in state.stages if stage.tensor.reduction is not None]
    if not target.adds_byte_products or len(products) != 1 or len(state.outputs) != 1:
        return
    (product,) = products
    operands = _operands(state, product)
    if operands is None:
        return
    builder = SketchBuilder(state)
    data, weights = operands
    inline_elementwise(builder, keep=frozenset((data.source.name,)))
    stored = _stored(builder, product.name)
    name = product.name if stored != product.name else CacheWrite(product.name).cached
    for stage in builder.state.stages:
        if stage.name not in (name, stored) and isinstance(stage.placement, AtRoot):
            spread(builder, stage.name, target, stage.name)
    _tile(builder, name, stored, data, weights.source.name)
    yield builder.sketch("products of bytes")


def _operands(state: ScheduleState, product: Stage) -> tuple[Load, Load] | None:
    """The data and the weights, if four neighbours of each row of the data are folded at a time,
    and sixteen columns of the weights.
    """
    tensor = product.tensor
    if len(tensor.reduce_axes) != 1 or len(tensor.axes) < 2 or tensor.dtype is not DType.I32:
        return None
    folded, last = tensor.reduce_axes[0], tensor.axes[-1]
    loads = _factors(tensor.body)
    if extent_of(folded.extent) % FOLDED or extent_of(last.extent) % LANES or loads is None:
        return None
    data, weights = loads
    is_data = stride_along(data, folded.var) == 1 and stride_along(data, last.var) == 0
    is_weights = stride_along(weights, last.var) == 1 and weights.source.name in state.constants
    over_rows = any(stride_along(weights, axis.var) != 0 for axis in tensor.axes[:-1])
    return (data, weights) if is_data and is_weights and not over_rows else None


def _factors(value: Value) -> tuple[Load, Load] | None:
    """i32(u8 load) * i32(i8 load)."""
    if not isinstance(value, Apply) or value.fn is not Fn.MUL:
        return None
    loads = [each.operand for each in value.args if isinstance(each, Cast)]
    found = [each for each in loads if isinstance(each, Load)]
    if len(found) != 2 or [each.dtype for each in found] != [DType.U8, DType.I8]:
        return None
    return found[0], found[1]


def _stored(builder: SketchBuilder, product: str) -> str:
    """The stage that is computed for a tile with the product: its only reader, where that has the
    same axes, or a copy of a cached product.
    """
    state = builder.state
    axes = state.stage(product).tensor.axes
    readers = state.readers(product)
    if product not in state.outputs and len(readers) == 1:
        tensor = readers[0].tensor
        own = tuple(axis.var for axis in tensor.axes)
        reads = {load.indices for load in _loads(tensor, product)}
        is_alike = [axis.extent for axis in tensor.axes] == [axis.extent for axis in axes]
        if tensor.reduction is None and is_alike and reads == {own}:
            return readers[0].name
    builder.do(CacheWrite(product))
    return product


def _loads(tensor: Compute, source: str) -> list[Load]:
    return [load for load in loads_of(tensor.body) if load.source.name == source]


def _tile(builder: SketchBuilder, name: str, stored: str, data: Load, weights: str) -> None:
    """Compute a product in register tiles inside the loops of what is stored."""
    tensor = builder.state.stage(stored).tensor
    *leading, row, column = (axis.name for axis in tensor.axes)
    rows, columns = (extent_of(axis.extent) for axis in tensor.axes[-2:])
    vectors = columns // LANES
    choices = tuple(count for count in _COLUMNS if vectors % count == 0)
    most = min(_MOST_ROWS, rows)
    wide = builder.choose(f"{stored}_columns", choices, 2 if 2 in choices else choices[-1])
    sizes = row_sizes(rows, most)
    fitting = [n for n in sizes if n <= _DEFAULT_ROWS]
    high = builder.choose(f"{stored}_rows", sizes, _default_rows(rows, fitting))
    builder.limit((high, wide), _REGISTERS, added=(wide,))
    builder.do(Split(stored, column, (wide, LANES)))
    builder.do(Split(stored, row, (high,), Tail.SHIFT))
    outer = [f"{row}_o", f"{column}_0"]
    data_bytes = prod(extent_of(extent) for extent in data.source.shape)
    if data_bytes <= _DATA_BYTES:  # it stays in the second cache, and weights are read once
        outer.reverse()
    builder.do(Reorder(stored, (*leading, *outer, f"{column}_1", f"{row}_i", f"{column}_2")))
    builder.do(Unroll(stored, f"{column}_1"))
    builder.do(Unroll(stored, f"{row}_i"))
    builder.do(Vectorize(stored, f"{column}_2"))
    work = points(builder.state.stage(name).tensor) // (LANES * FOLDED)
    fused = parallelise(builder, stored, [*leading, *outer], work)
    builder.do(ComputeAt(name, stored, fused or outer[-1]))
    inner = builder.state.stage(name).tensor
    *spatial, own_column = (axis.name for axis in inner.axes)
    folded = inner.reduce_axes[0].name
    builder.do(Split(name, own_column, (LANES,)))
    builder.do(Split(name, folded, (FOLDED,), Tail.EXACT))
    vector = f"{own_column}_i"
    order = (f"{folded}_o", *spatial, f"{own_column}_o", vector, f"{folded}_i")
    builder.do(Reorder(name, order))
    for loop in (*spatial, f"{own_column}_o"):
        builder.do(Unroll(name, loop))
    builder.do(PackConstant(weights, name))
    builder.do(Tensorize(name, vector, INTRINSIC))


def _default_rows(rows: int, sizes: list[int]) -> int:
    """The largest size that leaves no rest, if it is not much smaller than the largest of all."""
    whole = [size for size in sizes if rows % size == 0]
    best = max(whole, default=1)
    return best if 2 * best >= sizes[-1] else sizes[-1]
