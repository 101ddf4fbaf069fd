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
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tensorwright import schedule
from tensorwright.base import CpuTarget
from tensorwright.expr import Compute, Select, Tensor, loads_of
from tensorwright.tuning.space import accesses
from tensorwright.tuning.space.defaults import tile_anchor
from tensorwright.tuning.space.defaults.pack_operand import (
    copies_much,
    inline_transposed,
    pack_operand,
    packed_weights_of,
    transpose_operands,
    widened_panel,
    widened_weights_of,
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
from tensorwright.tuning.space.steps import (
    ensure_epilogue,
    inline_elementwise,
    widened_often,
    widens,
)


@dataclass(frozen=True, slots=True)
class _Fold:
    """The reduction of a program before any step; what it is like decides the orders of loops."""

    state: schedule.ScheduleState
    target: CpuTarget
    name: str

    @property
    def tensor(self) -> Compute:
        """The tensor of the reduction."""
        return self.state.stage(self.name).tensor

    @property
    def anchor(self) -> Anchor:
        """The reduction, with its own elements as the stored ones."""
        return Anchor(self.state, self.name, self.name)

    @property
    def width(self) -> int:
        """The number of elements of a vector."""
        return accesses.lanes_for(self.target, self.state.stage(self.name))

    @property
    def roles(self) -> AxisRoles | None:
        """The roles of its axes; None without lanes."""
        return find_roles(self.anchor, self.width)

    @property
    def shares_operands(self) -> bool:
        """Whether its elements share operands, so that tiling pays."""
        return accesses.has_reuse(self.tensor)

    @property
    def feeding(self) -> frozenset[str]:
        """The stages that it reads and that read nothing computed but each other.

        Constants of bf16 are widened where they are read, but those of which a tile spreads each
        element over a vector: they would be widened one by one.
        """
        read: set[str] = set()
        pending = [self.name]
        while pending:
            name = pending.pop()
            for load in loads_of(self.state.stage(name).tensor.body):
                if self.state.has_stage(load.source.name) and load.source.name not in read:
                    read.add(load.source.name)
                    pending.append(load.source.name)
        direct = read & schedule.reads_of(self.tensor)
        return frozenset(n for n in direct if not self._widens_vectors(n))

    def _widens_vectors(self, name: str) -> bool:
        """Whether a stage widens bf16, other than elements that are spread and used often."""
        roles, tensor = self.roles, self.state.stage(name).tensor
        if not widens(tensor) or roles is None or name not in widened_often(self.state):
            return widens(tensor)
        loads = accesses.loads_from(self.tensor, name)
        return any(accesses.reads_along(load, roles.lanes.var) for load in loads)

    @property
    def fed(self) -> tuple[Compute, ...]:
        """The tensors of these stages."""
        return tuple(self.state.stage(name).tensor for name in self.feeding)


def tile_sketches(state: schedule.ScheduleState, target: CpuTarget) -> Iterator[Sketch]:
    """Sketches of the tile heuristic, each made when it is asked for; none if it does not apply.

    It applies to one reduction in a program of one output, if its reads are contiguous (or the
    same) along some axis.
    """
    anchor = only_fold(state)
    if anchor is None or all(axis.extent == 1 for axis in anchor.tensor.axes):
        return
    fold = _Fold(state, target, anchor.name)
    whole = (Order.COLUMNS_OUTSIDE.value, Order.PACKED_PANELS.value, Order.INLINED.value)
    late: list[Sketch] = []
    for sketch in _in_all_orders(fold):
        # an operand put into another order is not worth the work for every band again
        if (
            fold.shares_operands
            and any(isinstance(step, schedule.CacheRead) for step in sketch.trace)
            and not sketch.name.startswith(whole)
        ):
            late.append(sketch)
        else:
            yield sketch
    yield from late


def _in_all_orders(fold: _Fold) -> Iterator[Sketch]:
    product = fold.state.stage(fold.name)
    is_packed = packed_weights_of(product, fold.state) is not None
    # many rows share what is widened once; for each tile again, it takes an eighth of the time
    widened = fold.shares_operands and not fold.feeding and widened_weights_of(product, fold.state)
    if is_packed or widened:
        sketch = _tile_sketch(fold, Order.PACKED_PANELS)
        yield from () if sketch is None else (sketch,)
        if is_packed or sketch is not None:
            return
    orders: tuple[Order, ...] = (Order.BANDS, Order.COLUMNS_OUTSIDE)
    if fold.shares_operands:
        orders = (Order.PACKED_PANELS, *_shared_orders(fold))
    elif fold.feeding and all(map(tile_anchor.is_bordered_copy, fold.fed)):
        # read in the middle of the image, such a copy equals its source: no condition is needed
        orders = _window_orders(fold)
    usual = 0
    copied: list[Order] = []
    for order in orders:
        sketch = _tile_sketch(fold, order)
        if sketch is not None:
            usual = max(usual, len(_skips(sketch)))
            inlined = {x.stage for x in sketch.trace if isinstance(x, schedule.ComputeInline)}
            # terms are skipped beside an image that is not copied with a border
            copied += [order] if inlined & {step.tensor for step in _skips(sketch)} else []
            yield sketch
    for order in copied:
        sketch = _tile_sketch(fold, order, copies_borders=True)
        if sketch is not None:
            yield sketch
    if fold.shares_operands and any(isinstance(tensor.body, Select) for tensor in fold.fed):
        flat = (_tile_sketch(fold, order, skips_rows=True) for order in orders)
        yield from (each for each in flat if each is not None and len(_skips(each)) > usual)


def _skips(sketch: Sketch) -> list[schedule.SkipZeros]:
    return [step for step in sketch.trace if isinstance(step, schedule.SkipZeros)]


_ROWS_FIRST = 0.5
_FEW_REGISTERS = 16  # of vectors
_USES_OF_A_COPY = 512  # of an element, so that its copy through memory is cheap


def _shared_orders(fold: _Fold) -> tuple[Order, ...]:
    """The orders of rows and columns if rows share an operand: the usual order first."""
    state, target, roles = fold.state, fold.target, fold.roles
    columns, rows = _operand_bytes(fold)
    # Each band of rows would read all columns from memory again, while rows stay: the scores of a
    # language model, whose columns are the words.
    if 2 * rows <= target.l3_bytes < columns // 2 or _gathers_each_row(fold):
        return (Order.COLUMNS_OUTSIDE,)
    # The rows of a product of two activations are far larger than the second cache, and the columns
    # stay there: each panel of columns would fetch all weights of attention again for its values.
    read = {load.source.name for load in loads_of(fold.tensor.body)}
    if not state.constants & read and 2 * columns <= target.l2_bytes < rows // 2:
        return Order.ROWS_OUTSIDE, Order.COLUMNS_OUTSIDE
    # A panel of constants is used for many outer rows, such as images or slices.
    keeps_panels = roles is not None and rows_inside_columns(state, fold.name, roles, target)
    if _activations_per_constant(state) > _ROWS_FIRST and not (
        keeps_panels or _streams_constants(fold)
    ):
        return Order.ROWS_OUTSIDE, Order.COLUMNS_OUTSIDE
    return Order.COLUMNS_OUTSIDE, Order.ROWS_OUTSIDE


def _window_orders(fold: _Fold) -> tuple[Order, ...]:
    """Whether a window is padded: first the order that reads most vectors whole.

    Taps along the lanes have conditions at the border.  In windows of many terms they are loops, in
    which the conditions stay. Rows shorter than a vector are all border: unless masks cost nothing,
    they are read lane by lane.
    """
    padded = (Order.BANDS, Order.COLUMNS_OUTSIDE)
    tensor, roles = fold.tensor, fold.roles
    is_first = accesses.count_of(tensor.reduce_axes) <= CPU_LIMITS.whole_fold
    if roles is not None:
        slides = accesses.slides_along(loads_of(tensor.body), tensor, roles.lanes.var)
        if slides and roles.lanes.length < fold.width and not fold.target.has_masks:
            return padded
        is_first = is_first or not slides
    return (Order.INLINED, *padded) if is_first else (*padded, Order.INLINED)


def _gathers_each_row(fold: _Fold) -> bool:
    """Whether elements that windows share would be gathered for each row again.

    These are reflected elements, if the rows of a tile are channels.
    """
    width, roles = fold.width, fold.roles
    feeding: set[str] = set()
    for tensor in fold.fed:  # that compute the positions from which they read, one by one
        loads = loads_of(tensor.body) if tensor.axes else ()
        if any(accesses.stride_along(load, tensor.axes[-1].var) is None for load in loads):
            feeding.add(tensor.name)
    return roles is not None and any(
        copies_much(fold.anchor, frozenset(feeding), axis, 1, width)
        for axis in (*roles.columns, *roles.batch)
        if axis is not roles.column or roles.lanes.length > width
    )


def _streams_constants(fold: _Fold) -> bool:
    """Whether tiles with rows outside would read constants from beyond the second cache, too fast.

    With few registers a tile has few rows, and reads a vector of constants in every other cycle or
    so.  With columns outside, those of a panel stay in the second cache.  The inputs are then
    computed whole, in memory: that pays if each of their elements is used often.
    """
    state, target = fold.state, fold.target
    if target.vector_registers > _FEW_REGISTERS:
        return False
    read = {load.source for load in loads_of(fold.tensor.body)}
    constants = (tensor for tensor in read if tensor.name in state.constants)
    if sum(map(accesses.bytes_of, constants)) <= target.l2_bytes // 2:
        return False
    elements = sum(accesses.elements_of(tensor) for tensor in read if state.has_stage(tensor.name))
    return accesses.points(fold.tensor) >= _USES_OF_A_COPY * elements


def _operand_bytes(fold: _Fold) -> tuple[int, int]:
    """The bytes that lanes read for all rows, and those read row by row, of one matrix."""
    roles = fold.roles
    if roles is None or roles.row is None:
        return 0, 0
    matrix = (roles.lanes, roles.row, *fold.tensor.reduce_axes)
    columns = rows = 0
    for load in loads_of(fold.tensor.body):
        read = prod(axis.length for axis in matrix if accesses.reads_along(load, axis.var))
        if accesses.reads_along(load, roles.row.var):
            rows += read * load.dtype.size_bytes
        else:
            columns += read * load.dtype.size_bytes
    return columns, rows


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


def _tile_sketch(
    fold: _Fold, order: Order, *, skips_rows: bool = False, copies_borders: bool = False
) -> Sketch | None:
    """One sketch; None if it does not apply.

    skips_rows      tiles are one row high, and taps in rows beside the image are skipped
    copies_borders  the image is copied with a border, even if only whole taps lie beside it: a tile
                    then reads adjacent memory
    """
    is_packed = order is Order.PACKED_PANELS
    widened = widened_weights_of(fold.state.stage(fold.name), fold.state) if is_packed else ""
    product = _product(fold, is_inlined=order is Order.INLINED, widened=widened)
    if product is None:
        return None
    common, anchor, stored, width, roles = product
    builder = SketchBuilder(fold.state)
    builder.join(common)
    packed_panel = ""
    if is_packed:
        weights = packed_weights_of(fold.state.stage(fold.name), fold.state)
        if weights is not None:
            packed_panel = weights.name
        elif widened:
            packed_panel = widened_panel(builder, widened, anchor, stored, roles)
        else:
            packed_panel = pack_operand(
                builder, anchor, stored, roles.lanes, roles.row, fold.target
            )
        if not packed_panel or (not widened and roles.lanes.length <= width):
            return None
    taps: list[str] = []
    built = Anchor(builder.state, anchor, stored)
    if not copies_borders and accesses.has_reuse(built.tensor):
        # taps beside the image are left out where tiles lie wholly there
        several = [roles.lanes, roles.column, roles.row, None if skips_rows else roles.second_row]
        names = (axis.name for axis in several if axis is not None)
        tiled = frozenset(loop for name in names for loop in built.own_axes.get(name, ()))
        taps = tile_anchor.inline_skipped(builder, anchor, tiled)
    tile_anchor.build_tiles(
        Tiling(
            builder,
            fold.target,
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
    fold: _Fold, *, is_inlined: bool, widened: str = ""
) -> tuple[SketchBuilder, str, str, int, AxisRoles] | None:
    """What all orders share: the steps before any tile, the reduction, its stored stage, the width
    of vectors, the roles of axes.  None if there are no lanes.

    is_inlined   whether padding is read in place, and the taps that lie beside it are skipped: for
                 a whole vector, so that taps along the lanes are selected, lane by lane
    widened      a stage that widens constants, of which panels are widened before their use
    """
    builder, anchor, feeding = SketchBuilder(fold.state), fold.name, fold.feeding
    inline_elementwise(builder, keep=feeding | ({widened} if widened else frozenset()))
    stored = ensure_epilogue(builder, anchor)
    width = accesses.lanes_for(fold.target, builder.state.stage(anchor))
    if stored != anchor and is_scattered(Anchor(builder.state, anchor, stored), width):
        builder.do(schedule.CacheWrite(anchor))
        stored = anchor
    if stored == anchor:
        anchor = schedule.CacheWrite(anchor).cached
    if is_inlined:
        product = Anchor(builder.state, anchor, stored)
        roles = find_roles(product, width)
        if roles is not None:
            lanes = product.own_axes[roles.lanes.name]
            tile_anchor.skip_zeros(builder, anchor, frozenset(lanes), {}, least=0.0)
        for name in feeding:
            builder.do(schedule.ComputeInline(name))
    inline_transposed(builder, anchor, stored, width)
    transpose_operands(builder, anchor, stored, width)
    roles = find_roles(Anchor(builder.state, anchor, stored), width)
    return None if roles is None else (builder, anchor, stored, width, roles)
