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
from dataclasses import dataclass

from tensorwright.base import BYTE_TERMS, ByteProduct, CpuTarget, DType
from tensorwright.expr import (
    Apply,
    Axis,
    Cast,
    Fn,
    Load,
    Range,
    Value,
    Var,
    free_vars,
    simplify,
    substitute,
    terms_of,
)
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
)
from tensorwright.tuning.space.axes.accesses import (
    elements_of,
    extent_of,
    loads_from,
    points,
    reads_along,
)
from tensorwright.tuning.space.axes.anchor import only_fold
from tensorwright.tuning.space.defaults.tile_sizes import row_sizes
from tensorwright.tuning.space.register_tile import nest
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder
from tensorwright.tuning.space.steps import (
    ensure_epilogue,
    inline_elementwise,
    parallelise,
    schedule_at_root,
)

_COLUMNS = (1, 2, 3, 4)  # vectors of a tile
_MOST_ROWS = 14
_REGISTERS = 31  # one holds the bytes of a row
_DEFAULT_ROWS = 12
_DATA_BYTES = 512 << 10  # so much stays in the second cache, beside some weights


def byte_product_sketches(state: ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """The sketch; none where the target has no such instruction, or the program is no product of
    bytes with constant ones of whole vectors.
    """
    product = only_fold(state) if target.byte_products else None
    operands = _operands(state, product, target) if product is not None else None
    if product is None or operands is None:
        return
    builder = SketchBuilder(state)
    inline_elementwise(builder, keep=frozenset((operands.data.source.name,)))
    stored = ensure_epilogue(builder, product.name, _is_alike)
    name = product.name if stored != product.name else CacheWrite(product.name).cached
    for stage in builder.state.stages:
        if stage.name not in (name, stored) and isinstance(stage.placement, AtRoot):
            schedule_at_root(builder, stage.name, target, stage.name)
    _tile(builder, name, stored, operands)
    yield builder.sketch("products of bytes")


@dataclass(frozen=True, slots=True)
class _Operands:
    """The data, of which four neighbours along `folded` are read at a time, and the weights.

    instruction   multiplies them
    row, blocks   positions of the axis of rows, and of that of blocks of columns (None: no blocks)
    """

    instruction: ByteProduct

    data: Load
    weights: Load
    folded: Axis
    row: int
    blocks: int | None


def _operands(state: ScheduleState, product: Stage, target: CpuTarget) -> _Operands | None:
    tensor = product.tensor
    loads = _factors(tensor.body)
    if loads is None or len(tensor.axes) < 2 or tensor.dtype is not DType.I32:
        return None
    data, weights = loads
    instruction = next((each for each in target.byte_products if each.data is data.dtype), None)
    if instruction is None:
        return None
    last, lanes = tensor.axes[-1], instruction.lanes
    folded = [axis for axis in tensor.reduce_axes if _is_run(data, axis)]
    if len(folded) != 1 or last.length % lanes or reads_along(data, last.var):
        return None
    if weights.source.name not in state.constants or not reads_along(weights, last.var):
        return None
    own = [at for at, axis in enumerate(tensor.axes[:-1]) if reads_along(weights, axis.var)]
    rows = [at for at, axis in enumerate(tensor.axes[:-1]) if at not in own]
    if not rows or len(own) > 1 or any(reads_along(data, tensor.axes[at].var) for at in own):
        return None
    is_block = bool(own)
    if is_block and last.length != lanes:
        return None
    return _Operands(instruction, data, weights, folded[0], rows[-1], own[0] if is_block else None)


def _is_run(load: Load, axis: Axis) -> bool:
    """Whether four elements after a multiple of four along an axis lie side by side."""
    extent = axis.length
    if extent % BYTE_TERMS:
        return False
    outer, inner = Var(f"{axis.name}_o"), Var(f"{axis.name}_i")
    bounds = {outer: Range.of_extent(extent // BYTE_TERMS), inner: Range.of_extent(BYTE_TERMS)}
    *others, last = (
        simplify(substitute(index, {axis.var: outer * BYTE_TERMS + inner}), bounds)
        for index in load.indices
    )
    along = [coefficient for monomial, coefficient in terms_of(last) if monomial == (inner,)]
    is_linear = along == [1] and inner not in free_vars(last - inner)
    return is_linear and inner not in free_vars(*others)


def _factors(value: Value) -> tuple[Load, Load] | None:
    """i32(load of bytes) * i32(i8 load)."""
    if not isinstance(value, Apply) or value.fn is not Fn.MUL:
        return None
    loads = [each.operand for each in value.args if isinstance(each, Cast)]
    factors = [each for each in loads if isinstance(each, Load)]
    if len(factors) != 2 or factors[1].dtype is not DType.I8:
        return None
    return factors[0], factors[1]


def _is_alike(reader: Stage, product: str) -> bool:
    """Whether a stage has the axes of the product that it reads, each element at its own place."""
    own = tuple(axis.var for axis in reader.tensor.axes)
    loads = loads_from(reader.tensor, product)
    shape = tuple(axis.extent for axis in reader.tensor.axes)
    return {load.indices for load in loads} == {own} and loads[0].source.shape == shape


def _tile(builder: SketchBuilder, name: str, stored: str, operands: _Operands) -> None:
    """Compute a product in register tiles inside the loops of what is stored."""
    axes = builder.state.stage(stored).tensor.axes
    names = [axis.name for axis in axes]
    row, column = names[operands.row], names[-1]
    rows = extent_of(axes[operands.row].extent)
    lanes = operands.instruction.lanes
    if operands.blocks is None:
        vectors = axes[-1].length // lanes
    else:
        vectors = extent_of(axes[operands.blocks].extent)
    sizes = row_sizes(rows, min(_MOST_ROWS, rows))
    usual = _default_rows(rows, sizes)
    choices = tuple(count for count in _COLUMNS if vectors % count == 0)
    fitting = [count for count in choices if count * (usual + 1) <= _REGISTERS]
    wide = builder.choose(f"{stored}_columns", choices, max(fitting, default=1))
    high = builder.choose(f"{stored}_rows", sizes, usual)
    builder.limit((high, wide), _REGISTERS, added=(wide,))
    if operands.blocks is None:
        builder.do(Split(stored, column, (wide, lanes)))
        tiles, inside, vector = f"{column}_0", f"{column}_1", f"{column}_2"
    else:
        block = names[operands.blocks]
        builder.do(Split(stored, block, (wide,), Tail.EXACT))
        tiles, inside, vector = f"{block}_o", f"{block}_i", column
    builder.do(Split(stored, row, (high,), Tail.SHIFT))
    others = [
        n for n in names if n not in (row, column, *names[operands.blocks or len(names) :][:1])
    ]
    outer = [*others, f"{row}_o"]
    data_bytes = elements_of(operands.data.source)
    # data that stay in the second cache are read again for every column, or else the weights are
    outer = [tiles, *outer] if data_bytes <= _DATA_BYTES else [*outer, tiles]
    nest(builder, stored, outer, (inside, f"{row}_i"), vector)
    work = points(builder.state.stage(name).tensor) // (lanes * BYTE_TERMS)
    fused = parallelise(builder, stored, outer, work)
    builder.do(ComputeAt(name, stored, fused or outer[-1]))
    _tensorize(builder, name, operands)


def _tensorize(builder: SketchBuilder, name: str, operands: _Operands) -> None:
    """Let the instruction do the innermost loops of the product of a tile."""
    tensor = builder.state.stage(name).tensor
    *spatial, column = (axis.name for axis in tensor.axes)
    folded = operands.folded.name
    others = [axis.name for axis in tensor.reduce_axes if axis.name != folded]
    columns = []
    vector = column
    if operands.blocks is None:
        builder.do(Split(name, column, (operands.instruction.lanes,)))
        columns, vector = [f"{column}_o"], f"{column}_i"
    builder.do(Split(name, folded, (BYTE_TERMS,), Tail.EXACT))
    order = (f"{folded}_o", *others, *spatial, *columns, vector, f"{folded}_i")
    builder.do(Reorder(name, order))
    for loop in (*spatial, *columns):
        builder.do(Unroll(name, loop))
    builder.do(PackConstant(operands.weights.source.name, name))
    builder.do(Tensorize(name, vector, operands.instruction.intrinsic))


def _default_rows(rows: int, sizes: tuple[int, ...]) -> int:
    """The largest usual size that leaves no rest, if it is not much smaller than the largest."""
    usual = [size for size in sizes if size <= _DEFAULT_ROWS]
    best = max((size for size in usual if rows % size == 0), default=1)
    return best if 2 * best >= usual[-1] else usual[-1]
