"""The operands of a product of bytes, and the loops around the tiles of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorwright.base import BYTE_TERMS, CpuTarget, DType
from tensorwright.expr import (
    Apply,
    Axis,
    Cast,
    Fn,
    Index,
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
    ScheduleState,
    Split,
    Stage,
    Tail,
)
from tensorwright.tuning.space.axes.accesses import (
    elements_of,
    extent_of,
    loads_from,
    points,
    reads_along,
)
from tensorwright.tuning.space.register_tile import nest
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.steps import (
    ensure_epilogue,
    inline_elementwise,
    parallelise,
    schedule_at_root,
)

_DATA_BYTES = 512 << 10  # bytes that stay in the second cache, beside some weights


@dataclass(frozen=True, slots=True)
class Operands:
    """The data, of which four neighbours along `folded` are read at a time, and the weights.

    lanes         columns that belong together: of a block, or of a vector
    row, blocks   positions of the axis of rows, and of that of blocks of columns (None: no blocks)
    """

    lanes: int
    data: Load
    weights: Load
    folded: Axis
    row: int
    blocks: int | None


def operands_of(
    product: Stage, state: ScheduleState, lanes: Mapping[DType, int]
) -> Operands | None:
    """The operands of a product, if they are bytes and constant ones of whole vectors.

    lanes   the number of columns that belong together, by the type of the data
    """
    tensor = product.tensor
    loads = _factors(tensor.body)
    if loads is None or len(tensor.axes) < 2 or tensor.dtype is not DType.I32:
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


def _is_run(load: Load, axis: Axis) -> bool:
    """Whether four elements from a multiple of four along an axis are adjacent."""
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


def begin(builder: SketchBuilder, product: Stage, operands: Operands, target: CpuTarget) -> Product:
    """Schedule the stages around a product, and say what is computed in its tiles."""
    inline_elementwise(builder, keep=frozenset((operands.data.source.name,)))
    stored = ensure_epilogue(builder, product.name, _is_alike)
    name = product.name if stored != product.name else CacheWrite(product.name).cached
    for stage in builder.state.stages:
        if stage.name not in (name, stored) and isinstance(stage.placement, AtRoot):
            schedule_at_root(builder, stage.name, target, stage.name)
    axes = builder.state.stage(stored).tensor.axes
    rows = extent_of(axes[operands.row].extent)
    if operands.blocks is None:
        return Product(name, stored, operands, rows, axes[-1].length // operands.lanes)
    return Product(name, stored, operands, rows, extent_of(axes[operands.blocks].extent))


def place_tiles(
    builder: SketchBuilder,
    product: Product,
    wide: Index,
    high: Index,
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
        builder.do(Split(stored, column, (wide * parts, vector)))
        tiles, inside, lanes = f"{column}_0", [f"{column}_1"], f"{column}_2"
    else:
        block = names[operands.blocks]
        builder.do(Split(stored, block, (wide,), Tail.EXACT))
        tiles, inside, lanes = f"{block}_o", [f"{block}_i"], column
        if parts > 1:
            builder.do(Split(stored, column, (vector,), Tail.EXACT))
            inside, lanes = [f"{block}_i", f"{column}_o"], f"{column}_i"
    builder.do(Split(stored, row, (high,), Tail.SHIFT))
    rows = [f"{row}_i"]
    if group > 1:
        builder.do(Split(stored, f"{row}_i", (group,), Tail.EXACT))
        rows = [f"{row}_i_o", f"{row}_i_i"]
    blocks = names[operands.blocks or len(names) :][:1]
    outer = [*(n for n in names if n not in (row, column, *blocks)), f"{row}_o"]
    data_bytes = elements_of(operands.data.source)
    # data that stay in the second cache are read again for every column, or else the weights are
    outer = [tiles, *outer] if data_bytes <= _DATA_BYTES else [*outer, tiles]
    nest(builder, stored, outer, (*inside, *rows), lanes)
    work = points(builder.state.stage(product.name).tensor) // (operands.lanes * BYTE_TERMS)
    fused = parallelise(builder, stored, outer, work)
    builder.do(ComputeAt(product.name, stored, fused or outer[-1]))
