"""Packed panels: the columns of an operand that a column of tiles reads, copied to lie together.

A product of two activations reads its wide operand one row after the other, each row in another
page, or many of them in one set of the first cache.  If several tiles of rows then use the same
columns, a thread copies these columns first and all its tiles read the copy.

Source:  the packing of B in Goto, van de Geijn: Anatomy of high-performance matrix multiplication,
ACM TOMS 2008.

Bands of rows of tiles: their number, and what is computed again in each.

A thread computes all channels of a band, and before them the stages that feed it: so most of its
reads are in its own cache.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from tensorwright import expr, schedule
from tensorwright.base import CpuTarget
from tensorwright.tuning.space import accesses, steps
from tensorwright.tuning.space.register_tile import nest
from tensorwright.tuning.space.roles import Anchor, AxisRoles, filled_lanes, find_roles, lines_held
from tensorwright.tuning.space.sketch import SketchBuilder, divisors
from tensorwright.tuning.space.steps import is_cheap

MOST_BAND_ROWS = 14
SHORT_ROWS = 8  # where bands are all that the threads share out
FEWEST_BANDS = 6

ENOUGH_PIECES = 16  # of work, where what feeds a piece is worth not doing again

_EXPENSIVE = 8  # multiply-adds that take as long as an expensive element
_ACROSS = 2  # as long as one that is read across its rows
_GATHERED = 32  # as long as one whose position is computed, with divisions
_FEW_AGAIN = 4  # times what is computed again may be all that a product takes
_VECTORS_PER_COPY = 120  # multiply-adds of vectors that take 20 times as long as to copy a vector
_LEAST_AGAIN = 1.5
_ENOUGH_BANDS = 8  # pieces that keep the threads busy, if a band costs nothing


def tiles_of_band(extent: int, size: int, most_rows: int, fewest: int) -> int:
    """The number of tiles of `size` rows in a band, so that there are enough bands."""
    usual = max(1, round(extent / max(1, round(extent / most_rows)) / size))
    short = max(1, extent // fewest // size)
    if short < usual:
        return max(divisors(-(-extent // size), short))
    return usual


def enough_bands(axes: Sequence[expr.Axis], roles: AxisRoles) -> int:
    """The number of bands that keeps the threads busy, with the loops fused with theirs."""
    taken = {axis.name for axis in (roles.lanes, roles.row, roles.second_row) if axis is not None}
    around = prod(axis.length for axis in axes if axis.name not in taken)
    return -(-_ENOUGH_BANDS // max(1, around))


def is_fed_again(
    anchor: Anchor,
    tiles: Sequence[tuple[expr.Axis, int]],
    feeding: Collection[str],
) -> bool:
    """Whether much of what feeds the product would be computed again in some loops over tiles.

    In each loop along which the product's inputs do not differ, all of them are computed again;
    otherwise the part that windows share.  That is much if the rows of a tile are output channels
    and their inputs take long, and if windows reach far beyond a tile, as with dilations.

    tiles   the axes of these loops, and the number of tiles along each
    """
    again = 0.0
    for load in (operand.load for operand in anchor.operands):
        if load.source.name not in feeding:
            continue
        tensor = anchor.state.stage(load.source.name).tensor
        times = prod(count for axis, count in tiles if not accesses.reads_along(load, axis.var))
        overlap = _overlap(anchor, load, tiles)
        again += (times * overlap - 1) * accesses.points(tensor) * _cost(tensor)
    return _FEW_AGAIN * again > accesses.points(anchor.tensor)


def copies_much(
    anchor: Anchor, feeding: frozenset[str], axis: expr.Axis, rows: int, width: int
) -> bool:
    """Whether stages that feed a product are expensive if they are computed for a few rows at once.

    Windows that overlap copy the rows that they share again: a window of 7 rows that moves by 2
    copies all 3.5 times.  That matters if a copy serves few products, or fills few lanes.

    rows   of the axis that are computed at once     width   lanes of a vector
    """
    copied = 0
    for operand in anchor.operands:
        shape = [accesses.extent_of(extent) for extent in operand.load.source.shape]
        along = [n for n, i in enumerate(operand.load.indices) if axis.var in expr.free_vars(i)]
        if operand.load.source.name not in feeding or len(along) != 1:
            continue
        window = _window(anchor, operand.load.indices[along[0]], axis, rows)
        total = window * -(-axis.length // rows)
        if total > _LEAST_AGAIN * shape[along[0]]:
            lines = prod(shape[:-1]) // shape[along[0]]
            copied += total * lines * -(-shape[-1] // width)
    return copied * _VECTORS_PER_COPY * width > accesses.points(anchor.tensor)


def _window(anchor: Anchor, index: expr.Index, axis: expr.Axis, size: int) -> int:
    """How many neighbours windows at some positions along an axis read with an index."""
    steps = dict(expr.terms_of(index))
    taps = anchor.tensor.reduce_axes
    reach = sum(abs(steps.get((tap.var,), 0)) * (tap.length - 1) for tap in taps)
    return reach + 1 + (size - 1) * abs(steps.get((axis.var,), 0))


def _overlap(anchor: Anchor, load: expr.Load, tiles: Sequence[tuple[expr.Axis, int]]) -> float:
    """How often an element is computed if each tile computes all that its windows read."""
    times = 1.0
    for index, extent in zip(load.indices, map(accesses.extent_of, load.source.shape), strict=True):
        moving = [(axis, count) for axis, count in tiles if axis.var in expr.free_vars(index)]
        if len(moving) != 1 or _window(anchor, index, moving[0][0], 1) == 1:
            continue
        ((axis, count),) = moving
        window = _window(anchor, index, axis, -(-axis.length // max(1, count)))
        times *= max(1.0, count * min(window, extent) / max(1, extent))
    return times


def _cost(feeding: expr.Compute) -> int:
    """The number of multiply-adds that take as long as an element of a feeding stage."""
    if not is_cheap(feeding.body):
        return _EXPENSIVE
    loads = expr.loads_of(feeding.body) if feeding.axes else ()
    strides = {accesses.stride_along(load, feeding.axes[-1].var) for load in loads}
    if None in strides:
        return _GATHERED
    return 1 if strides <= {0, 1} else _ACROSS


_APART_BYTES = 2048  # rows further apart than that are copied; measured on Sapphire Rapids
_MANY = 128  # rows that need more pages than a first-level TLB holds
_FEW_RESULTS = 16  # of each element, for which it is not copied into another order
_USES = 24  # rows of the result that are worth the copy
_TIMES = 4  # the lines of a panel, as a multiple of those of the first cache
_WIDE = 64  # bytes of vectors that hide that; narrower ones lose a sixth of the speed, on Zen 4


def pack_operand(
    builder: SketchBuilder,
    anchor: str,
    stored: str,
    lanes: expr.Axis,
    rows: expr.Axis | None,
    target: CpuTarget,
) -> str:
    """Let the anchor read a copy of its wide operand; the name of the copy, "" if none pays.

    The operand is an input, contiguous along the lanes and the same for all rows.
    """
    state = builder.state
    stage = state.stage(anchor)
    loads = tuple(expr.loads_of(stage.tensor.body))
    operands = Anchor(state, anchor, stored).operands
    if rows is None or rows.length < _USES:
        return ""
    folded = max(stage.tensor.reduce_axes, key=lambda axis: axis.length)
    for load, operand in zip(loads, operands, strict=True):
        name = load.source.name
        if operand.is_constant or state.has_stage(name):
            continue
        if accesses.stride_along(operand.load, lanes.var) != 1 or accesses.reads_along(
            operand.load, rows.var
        ):
            continue
        apart_bytes = accesses.bytes_along(operand.load, folded.var)
        lines = folded.length
        is_crowded = target.vector_bytes < _WIDE and (
            _TIMES * lines_held(apart_bytes, target) < lines
        )
        is_apart = apart_bytes > _APART_BYTES and lines >= _MANY
        is_read_once = sum(other.source.name == name for other in loads) == 1
        if (is_apart or is_crowded) and is_read_once:
            step = schedule.CacheRead(name, anchor, schedule.Scope.GLOBAL)
            builder.do(step)
            return step.copy
    return ""


def transpose_operands(builder: SketchBuilder, anchor: str, stored: str, width: int) -> None:
    """Make a transposed copy of an operand that is read across its rows along the last axis.

    The last axis here is the last one that fills half a vector, and no other axis may have better
    vectors already.
    """
    state = builder.state
    axes = state.stage(stored).tensor.axes
    long_axes = [axis for axis in axes if 2 * axis.length >= width]
    last = long_axes[-1] if long_axes else axes[-1]
    link = Anchor(state, anchor, stored)
    operands = link.operands
    if last.extent == 1 or len(operands) < 2 or _has_vectors(link, last, width):
        return
    links = dict(zip(expr.loads_of(link.tensor.body), operands, strict=True))
    copied: set[str] = set()  # a copy serves all reads of the operand by the anchor
    for load, operand in links.items():
        if operand.is_constant or accesses.stride_along(operand.load, last.var) in (0, 1):
            continue
        if load.source.name in copied:
            continue
        if accesses.group_size(operand.load, last.var) or _is_folded_in_rows(load, link.tensor):
            continue
        across = [n for n, i in enumerate(operand.load.indices) if last.var in expr.free_vars(i)]
        rank = len(load.indices)
        if (
            len(across) != 1
            or dict(expr.terms_of(operand.load.indices[across[0]])).get((last.var,)) != 1
        ):
            continue  # neighbours would be apart in the copy, too
        if across[0] != rank - 1:
            order = accesses.dimension_last(rank, across[0])
            builder.do(schedule.CacheRead(load.source.name, anchor, schedule.Scope.GLOBAL, order))
            copied.add(load.source.name)


def _is_folded_in_rows(load: expr.Load, tensor: expr.Compute) -> bool:
    """Whether an operand is folded along its rows, for few results each: a copy takes longer.

    Whole rows are folded so: each of their elements is spread over few columns of the other
    operand.
    """
    elements = accesses.elements_of(load.source)
    axes = [axis for axis in tensor.reduce_axes if axis.extent != 1]
    folded = [axis for axis in axes if accesses.stride_along(load, axis.var) == 1]
    is_whole = any(load.indices[-1] == axis.var for axis in folded)
    return bool(folded) and accesses.points(tensor) < (_FEW_RESULTS if is_whole else 2) * elements


def _has_vectors(anchor: Anchor, last: expr.Axis, width: int) -> bool:
    """Whether lanes along another axis than the last, stored across its rows, are better than a
    copy.

    They are better if the last axis fills fewer lanes, because its sums are under a mask.  If the
    result is stored across the axis of the copy as well, it must fill many more.
    """
    roles = find_roles(anchor, width)
    if roles is None or roles.lanes is last:
        return False
    is_across = last is not anchor.axes[-1]
    return (1 + is_across) * filled_lanes(roles, width) > min(last.length, width)


def inline_transposed(builder: SketchBuilder, anchor: str, stored: str, width: int) -> None:
    """Read the narrow operand of a product directly instead of a transposed copy of it.

    Its elements are spread over all lanes one by one, so their order costs nothing.
    """
    state = builder.state
    product = Anchor(state, anchor, stored)
    roles = find_roles(product, width)
    if roles is None or not accesses.has_reuse(product.tensor):
        return
    for operand in product.operands:
        name = operand.load.source.name
        if accesses.reads_along(operand.load, roles.lanes.var) or not state.has_stage(name):
            continue
        body = state.stage(name).tensor.body
        if isinstance(body, expr.Load) and all(
            isinstance(index, expr.Var) or index == 0 for index in body.indices
        ):
            builder.do(schedule.ComputeInline(name))


def packed_weights_of(
    product: schedule.Stage, state: schedule.ScheduleState
) -> schedule.Stage | None:
    """The stage (k, n) that takes constants apart by shifts, which a product folds along k."""
    tensor = product.tensor
    if len(tensor.reduce_axes) != 1 or not tensor.axes:
        return None
    wanted = (tensor.reduce_axes[0].var, tensor.axes[-1].var)
    for load in expr.loads_of(tensor.body):
        name = load.source.name
        if load.indices != wanted or not state.has_stage(name):
            continue
        stage = state.stage(name)
        if steps.takes_codes_apart(state, name) and not steps.widens(stage.tensor):
            return stage
    return None


def widened_weights_of(product: schedule.Stage, state: schedule.ScheduleState) -> str:
    """The stage that widens constants of bf16 which a product reads; "" if there is none."""
    names = sorted(name for name in schedule.reads_of(product.tensor) if state.has_stage(name))
    stages = [state.stage(name) for name in names]
    wide = (s for s in stages if schedule.reads_of(s.tensor) <= state.constants)
    return next((stage.name for stage in wide if steps.widens(stage.tensor)), "")


def widened_panel(
    builder: SketchBuilder, widened: str, anchor: str, stored: str, roles: AxisRoles
) -> str:
    """The stage that widens constants for the lanes, in their order; "" if no panel of it pays.

    It is the one that widens, or a copy of it in another order, which then widens.
    """
    rows = [axis for axis in (roles.row, roles.second_row) if axis is not None]
    if prod(axis.length for axis in rows) < steps.OFTEN_WIDENED:
        return ""
    for load in (operand.load for operand in Anchor(builder.state, anchor, stored).operands):
        name: str = load.source.name
        is_copy = builder.state.has_stage(name) and {widened} == schedule.reads_of(
            builder.state.stage(name).tensor
        )
        if (
            (name == widened or is_copy)
            and accesses.stride_along(load, roles.lanes.var) == 1
            and not any(accesses.reads_along(load, axis.var) for axis in rows)
        ):
            if is_copy:
                builder.do(schedule.ComputeInline(widened))
            return name
    return ""


def place_packed_panel(
    builder: SketchBuilder, copy: str, host: str, loop: str, target: CpuTarget
) -> None:
    """Copy a panel at a loop of the stage that is stored, vector by vector.

    What takes words apart does so with all codes of a word at once.
    """
    stage = builder.state.stage(copy)
    first, last = stage.tensor.axes[0], stage.tensor.axes[-1].name
    loads = tuple(expr.loads_of(stage.tensor.body))
    periods = {accesses.period_along([load], first) for load in loads} - {0}
    builder.do(schedule.Split(copy, last, (accesses.lanes_for(target, stage),)))
    if periods and not isinstance(stage.tensor.body, expr.Load):
        word, block = min(periods), max(periods)
        sizes = (block // word, word)
        builder.do(schedule.Split(copy, first.name, sizes, schedule.Tail.EXACT))
        blocks, words, parts = (f"{first.name}_{level}" for level in range(3))
        nest(builder, copy, (blocks, words), (f"{last}_o", parts), f"{last}_i")
    else:
        builder.do(schedule.Vectorize(copy, f"{last}_i"))
    builder.do(schedule.ComputeAt(copy, host, loop))
    steps.pack_constants(builder, copy)
