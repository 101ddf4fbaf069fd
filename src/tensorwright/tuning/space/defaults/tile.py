"""The tile heuristic: products of tensors (convolution, matmul), computed in register tiles.

The stage that stores the result is tiled over three axes: lanes (contiguous in memory), columns
(more vectors of the operand that the lanes read) and rows (the axis along which that operand is
used again).  The reduction is computed inside the loop over tiles, into a buffer of the tile's
size: all of it stays in vector registers, its loops unrolled. Constants that the reduction reads
are packed into the order in which it reads them.

A window that shares no operand between rows (depthwise convolution, pooling) is bound by memory.
There the padding is inlined: tiles in the middle read the input itself, those at its border skip
the taps beside it.  In other products padding is a separate stage, because padding that is inlined
into a tile halves the speed, unless it lies along axes of which a tile has one position.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.expr import Select, Tensor, loads_of
from tensorwright.tuning.space import accesses
from tensorwright.tuning.space.defaults import tile_anchor
from tensorwright.tuning.space.defaults.pack_operand import (
    copies_much,
    inline_transposed,
    pack_operand,
    packed_weights_of,
    transpose_operands,
)
from tensorwright.tuning.space.defaults.tiling import Order, Tiling
from tensorwright.tuning.space.register_tile import CPU_LIMITS
from tensorwright.tuning.space.roles import (
    Anchor,
    AxisRoles,
    find_roles,
    is_scattered,
    only_fold,
    rows_inside_columns,
)
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder
from tensorwright.tuning.space.steps import ensure_epilogue, inline_elementwise, widens


def tile_sketches(state: schedule.ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """Sketches of the tile heuristic, each made when it is asked for; none if it does not apply.

    It applies to one reduction in a program of one output, if its reads are contiguous (or the
    same) along some axis.
    """
    anchor = only_fold(state)
    if anchor is None or all(axis.extent == 1 for axis in anchor.tensor.axes):
        return
    late: list[Sketch] = []
    for sketch in _in_all_orders(state, target, anchor):
        # an operand put into another order is not worth the work for every band again
        if (
            accesses.has_reuse(anchor.tensor)
            and any(isinstance(step, schedule.CacheRead) for step in sketch.trace)
            and not _feeds_whole(sketch)
        ):
            late.append(sketch)
        else:
            yield sketch
    yield from late


def _in_all_orders(
    state: schedule.ScheduleState, target: CpuTarget, anchor: schedule.Stage
) -> Iterator[Sketch]:
    if packed_weights_of(anchor, state) is not None:
        sketch = _tile_sketch(state, target, anchor.name, Order.PACKED_PANELS)
        yield from () if sketch is None else (sketch,)
        return
    orders: tuple[Order, ...] = (Order.BANDS, Order.COLUMNS_OUTSIDE)
    if not accesses.has_reuse(anchor.tensor) and _only_pads(state, anchor):
        orders = _window_orders(state, anchor, target)
    if accesses.has_reuse(anchor.tensor):
        orders = (Order.PACKED_PANELS, *_shared_orders(state, target, anchor))
    usual = 0
    copied: list[Order] = []
    for order in orders:
        sketch = _tile_sketch(state, target, anchor.name, order)
        if sketch is not None:
            usual = max(usual, _skips(sketch))
            copied += [order] if _reads_images(sketch) else []
            yield sketch
    for order in copied:
        sketch = _tile_sketch(state, target, anchor.name, order, copies_borders=True)
        if sketch is not None:
            yield sketch
    if _has_border(state, anchor):
        flat = (_tile_sketch(state, target, anchor.name, o, skips_rows=True) for o in orders)
        yield from (sketch for sketch in flat if sketch is not None and _skips(sketch) > usual)


def _shared_orders(
    state: schedule.ScheduleState, target: CpuTarget, anchor: schedule.Stage
) -> tuple[Order, ...]:
    """The orders of rows and columns if rows share an operand: the usual order first."""
    if _columns_leave_caches(state, anchor, target):
        return (Order.COLUMNS_OUTSIDE,)
    if _gathers_each_row(state, anchor, target):
        return (Order.COLUMNS_OUTSIDE,)
    has_many_activations = _activations_per_constant(state) > _ROWS_FIRST
    keeps_panels = _has_long_panels(state, anchor, target) or _streams_constants(
        state, anchor, target
    )
    if (has_many_activations and not keeps_panels) or _rows_leave_cache(state, anchor, target):
        return Order.ROWS_OUTSIDE, Order.COLUMNS_OUTSIDE
    return Order.COLUMNS_OUTSIDE, Order.ROWS_OUTSIDE


def _window_orders(
    state: schedule.ScheduleState, anchor: schedule.Stage, target: CpuTarget
) -> tuple[Order, ...]:
    """Whether a window is padded: first the order that reads most vectors whole.

    Taps along the lanes have conditions at the border.  In windows of many terms they are loops, in
    which the conditions stay. Rows shorter than a vector are all border: unless masks cost nothing,
    they are read lane by lane.
    """
    padded = (Order.BANDS, Order.COLUMNS_OUTSIDE)
    width = accesses.lanes_for(target, anchor)
    roles = find_roles(_alone(state, anchor), width)
    terms = accesses.count_of(anchor.tensor.reduce_axes)
    is_first = terms <= CPU_LIMITS.whole_fold
    if roles is not None:
        slides = accesses.slides_along(loads_of(anchor.tensor.body), anchor.tensor, roles.lanes.var)
        if slides and roles.lanes.length < width and not target.has_masks:
            return padded
        is_first = is_first or not slides
    return (Order.INLINED, *padded) if is_first else (*padded, Order.INLINED)


def _alone(state: schedule.ScheduleState, anchor: schedule.Stage) -> Anchor:
    """A reduction, with its own elements as the stored ones."""
    return Anchor(state, anchor.name, anchor.name)


def _has_long_panels(
    state: schedule.ScheduleState, anchor: schedule.Stage, target: CpuTarget
) -> bool:
    """Whether a panel of constants is used for many outer rows, such as images or slices."""
    roles = find_roles(_alone(state, anchor), accesses.lanes_for(target, anchor))
    return roles is not None and bool(rows_inside_columns(state, anchor.name, roles, target))


def _gathers_each_row(
    state: schedule.ScheduleState, anchor: schedule.Stage, target: CpuTarget
) -> bool:
    """Whether elements that windows share would be gathered for each row again.

    These are reflected elements, if the rows of a tile are channels.
    """
    width = accesses.lanes_for(target, anchor)
    roles = find_roles(_alone(state, anchor), width)
    feeding = frozenset(n for n in _feeding(state, anchor.name) if _is_gathered(state, n))
    return roles is not None and any(
        copies_much(_alone(state, anchor), feeding, axis, 1, width)
        for axis in (*roles.columns, *roles.batch)
        if axis is not roles.column or roles.lanes.length > width
    )


def _is_gathered(state: schedule.ScheduleState, name: str) -> bool:
    """Whether a stage computes the positions from which it reads, one by one."""
    tensor = state.stage(name).tensor
    loads = loads_of(tensor.body) if tensor.axes else ()
    return any(accesses.stride_along(load, tensor.axes[-1].var) is None for load in loads)


def _streams_constants(
    state: schedule.ScheduleState, anchor: schedule.Stage, target: CpuTarget
) -> bool:
    """Whether tiles with rows outside would read constants from beyond the second cache, too fast.

    With few registers a tile has few rows, and reads a vector of constants in every other cycle or
    so.  With columns outside, those of a panel stay in the second cache.  The inputs are then
    computed whole, in memory: that pays if each of their elements is used often.
    """
    if target.vector_registers > _FEW_REGISTERS:
        return False
    loads = tuple(loads_of(anchor.tensor.body))
    constants = {load.source for load in loads if load.source.name in state.constants}
    if sum(accesses.bytes_of(tensor) for tensor in constants) <= target.l2_bytes // 2:
        return False
    fed = {load.source for load in loads if state.has_stage(load.source.name)}
    elements = sum(accesses.elements_of(tensor) for tensor in fed)
    return accesses.points(anchor.tensor) >= _USES_OF_A_COPY * elements


def _rows_leave_cache(
    state: schedule.ScheduleState, anchor: schedule.Stage, target: CpuTarget
) -> bool:
    """Whether the rows of a product of two activations are far larger than the second cache.

    Rows and columns are of one matrix of a batch, and the columns stay in the cache. Examples are
    the values of attention: each panel of columns would fetch all weights again.
    """
    loads = tuple(loads_of(anchor.tensor.body))
    if state.constants & {load.source.name for load in loads}:
        return False
    columns, rows = _operand_bytes(state, anchor, target)
    return 2 * columns <= target.l2_bytes < rows // 2


def _columns_leave_caches(
    state: schedule.ScheduleState, anchor: schedule.Stage, target: CpuTarget
) -> bool:
    """Whether each band of rows would read all columns from memory again, while rows stay.

    Examples are the scores of a language model, whose columns are the words.
    """
    columns, rows = _operand_bytes(state, anchor, target)
    return 2 * rows <= target.l3_bytes < columns // 2


def _operand_bytes(
    state: schedule.ScheduleState, anchor: schedule.Stage, target: CpuTarget
) -> tuple[int, int]:
    """The bytes that lanes read for all rows, and those read row by row, of one matrix."""
    roles = find_roles(_alone(state, anchor), accesses.lanes_for(target, anchor))
    if roles is None or roles.row is None:
        return 0, 0
    matrix = (roles.lanes, roles.row, *anchor.tensor.reduce_axes)
    columns = rows = 0
    for load in loads_of(anchor.tensor.body):
        read = prod(axis.length for axis in matrix if accesses.reads_along(load, axis.var))
        if accesses.reads_along(load, roles.row.var):
            rows += read * load.dtype.size_bytes
        else:
            columns += read * load.dtype.size_bytes
    return columns, rows


def _skips(sketch: Sketch) -> int:
    return sum(isinstance(step, schedule.SkipZeros) for step in sketch.trace)


def _reads_images(sketch: Sketch) -> bool:
    """Whether terms are skipped beside an image that is not copied with a border."""
    inlined = {step.stage for step in sketch.trace if isinstance(step, schedule.ComputeInline)}
    return any(
        isinstance(step, schedule.SkipZeros) and step.tensor in inlined for step in sketch.trace
    )


def _feeds_whole(sketch: Sketch) -> bool:
    whole = (Order.COLUMNS_OUTSIDE.value, Order.PACKED_PANELS.value, Order.INLINED.value)
    return sketch.name.startswith(whole)


def _has_border(state: schedule.ScheduleState, anchor: schedule.Stage) -> bool:
    """Whether the inputs of a product may be zero beside the image."""
    feeding = (state.stage(name).tensor.body for name in _feeding(state, anchor.name))
    return accesses.has_reuse(anchor.tensor) and any(isinstance(body, Select) for body in feeding)


def _tile_sketch(
    state: schedule.ScheduleState,
    target: CpuTarget,
    anchor: str,
    order: Order,
    *,
    skips_rows: bool = False,
    copies_borders: bool = False,
) -> Sketch | None:
    """One sketch; None if it does not apply.

    skips_rows      tiles are one row high, and taps in rows beside the image are skipped
    copies_borders  the image is copied with a border, even if only whole taps lie beside it: a tile
                    then reads adjacent memory
    """
    only = anchor
    product = _product(state, target, anchor, is_inlined=order is Order.INLINED)
    if product is None:
        return None
    common, anchor, stored, width, roles = product
    builder = SketchBuilder(state)
    builder.join(common)
    packed_panel = ""
    if order is Order.PACKED_PANELS:
        weights = packed_weights_of(state.stage(only), state)
        packed_panel = (
            weights.name
            if weights is not None
            else pack_operand(builder, anchor, stored, roles.lanes, roles.row, target)
        )
        if not packed_panel or roles.lanes.length <= width:
            return None
    taps: list[str] = []
    if not copies_borders:
        taps = _skipped_taps(builder, Anchor(builder.state, anchor, stored), roles, skips_rows)
    tile_anchor.build_tiles(
        Tiling(
            builder,
            target,
            anchor,
            stored,
            roles,
            order,
            packed_panel,
            skips_rows=skips_rows,
            taps=taps,
        )
    )
    name = f"{order.value}, border copied" if copies_borders else order.value
    return builder.sketch(f"{name}, no rows beside" if skips_rows else name)


@lru_cache(maxsize=4)
def _product(
    state: schedule.ScheduleState, target: CpuTarget, anchor: str, *, is_inlined: bool
) -> tuple[SketchBuilder, str, str, int, AxisRoles] | None:
    """What all orders share: the steps before any tile, the reduction, its stored stage, the width
    of vectors, the roles of axes.  None if there are no lanes.

    is_inlined   whether padding is read in place
    """
    builder = SketchBuilder(state)
    feeding = _feeding(state, anchor)
    inline_elementwise(builder, keep=feeding)
    stored = ensure_epilogue(builder, anchor)
    width = accesses.lanes_for(target, builder.state.stage(anchor))
    if stored != anchor and is_scattered(Anchor(builder.state, anchor, stored), width):
        builder.do(schedule.CacheWrite(anchor))
        stored = anchor
    if stored == anchor:
        anchor = schedule.CacheWrite(anchor).cached
    if is_inlined:
        _inline_padding(builder, anchor, stored, width, feeding)
    inline_transposed(builder, anchor, stored, width)
    transpose_operands(builder, anchor, stored, width)
    roles = find_roles(Anchor(builder.state, anchor, stored), width)
    return None if roles is None else (builder, anchor, stored, width, roles)


def _skipped_taps(
    builder: SketchBuilder, anchor: Anchor, roles: AxisRoles, skips_rows: bool
) -> list[str]:
    """The loops over taps beside the image, which are left out where tiles lie wholly there."""
    if not accesses.has_reuse(anchor.tensor):
        return []
    several = [roles.lanes, roles.column, roles.row, None if skips_rows else roles.second_row]
    names = (axis.name for axis in several if axis is not None)
    tiled = frozenset(loop for name in names for loop in anchor.own_axes.get(name, ()))
    return tile_anchor.inline_skipped(builder, anchor.name, tiled)


def _inline_padding(
    builder: SketchBuilder, anchor: str, stored: str, width: int, padding: frozenset[str]
) -> None:
    """Read the input itself instead of its padded copy, and skip the taps that lie beside it.

    A tap is skipped for a whole vector: taps along the lanes are selected, lane by lane.
    """
    product = Anchor(builder.state, anchor, stored)
    roles = find_roles(product, width)
    if roles is not None:
        lanes = product.own_axes[roles.lanes.name]
        tile_anchor.skip_zeros(builder, anchor, frozenset(lanes), {}, least=0.0)
    for name in padding:
        builder.do(schedule.ComputeInline(name))


def _feeding(state: schedule.ScheduleState, anchor: str) -> frozenset[str]:
    """The stages that the anchor reads and that read nothing computed but each other.

    Constants of bf16 are widened where they are read.
    """
    feeding: set[str] = set()
    pending = [anchor]
    while pending:
        name = pending.pop()
        for load in loads_of(state.stage(name).tensor.body):
            if state.has_stage(load.source.name) and load.source.name not in feeding:
                feeding.add(load.source.name)
                pending.append(load.source.name)
    direct = schedule.reads_of(state.stage(anchor).tensor)
    return frozenset(n for n in feeding & direct if not widens(state.stage(n).tensor))


def _only_pads(state: schedule.ScheduleState, anchor: schedule.Stage) -> bool:
    """Whether the anchor has inputs, all of them copies with a border.

    Read in the middle of the image, such a copy equals its source: the tiles there need no
    condition.
    """
    feeding = [state.stage(name).tensor for name in _feeding(state, anchor.name)]
    return bool(feeding) and all(map(tile_anchor.is_bordered_copy, feeding))


_ROWS_FIRST = 0.5
_FEW_REGISTERS = 16  # of vectors
_USES_OF_A_COPY = 512  # of an element, so that its copy through memory is cheap


def _activations_per_constant(state: schedule.ScheduleState) -> float:
    """Bytes of inputs and outputs for each byte of constants.

    Threads that divide rows read all constants each; threads that divide columns read all inputs,
    half of them from the cache of another core, which has just computed them.
    """
    moved = {True: 0, False: 0}
    outputs = (state.stage(name).tensor for name in state.outputs)
    tensors: tuple[Tensor, ...] = (*state.inputs, *outputs)
    for tensor in tensors:
        moved[tensor.name in state.constants] += accesses.bytes_of(tensor)
    return moved[False] / moved[True] if moved[True] else 0.0
