"""The reduction of a product inside one register tile: its loops and its packed constants.

Taps of a window that lie beside the image, and when it pays to skip them.

The loops of a reduction inside one tile: which are unrolled, which one is the innermost.

A reduction is blocked if the weights of one panel do not fit the second cache: otherwise every tile
would read them again from beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tensorwright import expr, schedule
from tensorwright.tuning.space import accesses
from tensorwright.tuning.space.defaults.tiling import Order, Tiling
from tensorwright.tuning.space.register_tile import CPU_LIMITS, nest, split_vectors
from tensorwright.tuning.space.roles import PAGE_BYTES
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors
from tensorwright.tuning.space.steps import pack_constants

LEAST_SAVED = 0.03  # of the terms of a sum
_LEAST_IN_TILES = 0.1  # where tiles have several positions, or may have
_LEAST_OF_POSITIONS = 0.04  # of which each that is near the border has code of its own
_MOST_PARTLY = 3  # taps that are skipped for some positions of a tile
_MOST_PAIRS = 1024  # an image so long has hardly any border


def skip_zeros(
    builder: SketchBuilder,
    name: str,
    lanes: frozenset[str],
    tile: Mapping[str, int],
    least: float = LEAST_SAVED,
) -> list[str]:
    """Skip the taps of a sum that lie beside the image, for whole tiles or single positions.

    lanes   the names of the axes along which vectors lie: nothing is skipped along them
    tile    the usual number of positions of a tile along each other axis
    least   the share of the terms that must be skipped along a direction

    Returns the axes of the taps: their loops should be around all others of the sum.
    """
    skipped: list[str] = []
    partly: list[tuple[float, schedule.SkipZeros]] = []
    for step in _possible(builder.state, builder.state.stage(name)):
        conditions = step.conditions(builder.state)
        axes = _axes_of(builder.state.stage(name), conditions)
        names = {axis.name for axis in axes}
        if names & lanes:
            continue
        is_tiled = bool(names & tile.keys())
        if _saved(conditions, axes, tile) >= (max(least, _LEAST_IN_TILES) if is_tiled else least):
            builder.do(step)
            skipped.append(step.axis)
        elif is_tiled and _is_cut_cleanly(conditions, axes, tile):
            partly.append(
                (_saved(conditions, axes, {}), replace(step, of=schedule.Skipped.POSITIONS))
            )
    best = _best_of_positions(builder.state.stage(name), partly, skipped)
    if best is not None:
        builder.do(best)
        skipped.append(best.axis)
    return list(dict.fromkeys(skipped))  # two factors may be zero along one axis


def _best_of_positions(
    stage: schedule.Stage, steps: list[tuple[float, schedule.SkipZeros]], skipped: list[str]
) -> schedule.SkipZeros | None:
    """The last of the best steps that skip terms for some positions, given with their savings.

    None if little is saved, or if no loop of the sum would be left but those of taps.
    """
    left = {axis.name for axis in stage.tensor.reduce_axes if axis.extent != 1} - set(skipped)
    worth = [
        (saved, step)
        for saved, step in reversed(steps)
        if saved >= _LEAST_OF_POSITIONS and step.axis in left and left - {step.axis}
    ]
    return max(worth, key=lambda each: each[0], default=(0.0, None))[1]


def _is_cut_cleanly(
    conditions: tuple[expr.Condition, ...], axes: list[expr.Axis], tile: Mapping[str, int]
) -> bool:
    """Whether code for few taps, and for the first and the last tile, needs no conditions.

    Taps must be few, with less than a tile beside the image.  A last tile that is shifted is like
    no other, so only one position is allowed then.  Taps must lie beside both ends: with strides
    that leave them beside one end, reading each row for each tap costs more than is saved.
    """
    kept = _kept(conditions, axes, {})
    if kept is None or len(axes) != 2 or axes[0].name not in tile:
        return False
    position, tap = axes
    beside = kept.shape[0] - int(kept.sum(axis=0).min())
    size = tile[position.name]
    most = size if position.length % size == 0 else 1
    has_both_ends = not kept[0].all() and not kept[-1].all()
    return has_both_ends and tap.length <= _MOST_PARTLY and beside <= most


def inline_skipped(builder: SketchBuilder, name: str, tiled: frozenset[str]) -> list[str]:
    """Read images themselves instead of padded copies, if a sum skips all of the padding.

    It does if the border lies only along axes of which a tile has one position.

    tiled   the axes of the sum along which a tile has several elements

    Returns the axes of the taps, as `skip_zeros`.
    """
    skipped: list[str] = []
    stage = builder.state.stage(name)
    possible = _possible(builder.state, stage) if is_folded_in_loops(stage) else []
    for padded in dict.fromkeys(step.tensor for step in possible):
        state, steps = builder.state, [step for step in possible if step.tensor == padded]
        borders = set(steps[0].borders(state))
        axes = {axis.name for axis in _axes_of(state.stage(name), tuple(borders))}
        left = borders.difference(*(step.conditions(state) for step in steps))
        is_own = [stage.name for stage in state.readers(padded)] == [name]
        if left or axes & tiled or not is_own or not is_bordered_copy(state.stage(padded).tensor):
            continue
        for step in steps:
            builder.do(step)
            skipped.append(step.axis)
        builder.do(schedule.ComputeInline(padded))
    return list(dict.fromkeys(skipped))


def is_folded_in_loops(stage: schedule.Stage) -> bool:
    """Whether a sum has a loop over taps: not all of its terms are unrolled."""
    axes = stage.tensor.reduce_axes
    return len(axes) > 1 and accesses.count_of(axes) > CPU_LIMITS.whole_fold


def is_bordered_copy(tensor: expr.Compute) -> bool:
    """Whether a tensor is a copy of another with a border of one number."""
    body = tensor.body
    is_choice = isinstance(body, expr.Select)
    return is_choice and all(
        isinstance(part, expr.Load | expr.Const) for part in expr.children(body)
    )


def _possible(state: schedule.ScheduleState, stage: schedule.Stage) -> list[schedule.SkipZeros]:
    """The steps that skip terms of a sum, for each padded factor and axis."""
    sources = dict.fromkeys(load.source.name for load in expr.loads_of(stage.tensor.body))
    computed = filter(state.has_stage, sources)
    pairs = product(computed, stage.tensor.reduce_axes)
    steps = [schedule.SkipZeros(stage.name, source, axis.name) for source, axis in pairs]
    return [step for step in steps if schedule.is_legal(step, state)]


def _axes_of(stage: schedule.Stage, conditions: tuple[expr.Condition, ...]) -> list[expr.Axis]:
    used: frozenset[expr.Var] = frozenset().union(
        *(expr.free_vars(*expr.condition_sides(each)) for each in conditions)
    )
    return [a for a in (*stage.tensor.axes, *stage.tensor.reduce_axes) if a.var in used]


def _saved(
    conditions: tuple[expr.Condition, ...], axes: list[expr.Axis], tile: Mapping[str, int]
) -> float:
    """The share of the terms that is skipped; 0 if `_kept` is None."""
    kept = _kept(conditions, axes, tile)
    return 1 - int(kept.sum()) / kept.size if kept is not None else 0.0


def _kept(
    conditions: tuple[expr.Condition, ...], axes: list[expr.Axis], tile: Mapping[str, int]
) -> NDArray[np.bool_] | None:
    """Which terms count for some position of their tile, along each axis.

    Along an axis without a tile, for their own position. None for images so long that the border
    hardly matters, for those without elements, and if positions are read from memory.
    """
    extents = [axis.length for axis in axes]
    sides = [side for each in conditions for side in expr.condition_sides(each)]
    if not 0 < prod(extents) <= _MOST_PAIRS or any(map(expr.has_element, sides)):
        return None
    places = dict(zip((axis.var for axis in axes), np.indices(extents, sparse=True), strict=True))
    starts = [range(0, n, tile.get(axis.name, 1)) for axis, n in zip(axes, extents, strict=True)]
    kept = np.ones(extents, np.bool_)
    for condition in conditions:
        holds = expr.evaluate_condition(
            condition, lambda side: expr.evaluate_index(side, places.__getitem__)
        )
        kept &= _anywhere_in_tile(np.broadcast_to(holds, extents), starts)
    return kept


def _anywhere_in_tile(holds: NDArray[np.bool_], starts: list[range]) -> NDArray[np.bool_]:
    """For each point, whether a condition holds at some point of its tile."""
    extents = holds.shape
    for dimension, first in enumerate(starts):
        holds = np.logical_or.reduceat(holds, first, axis=dimension)
    for dimension, (first, extent) in enumerate(zip(starts, extents, strict=True)):
        holds = np.repeat(holds, first.step, axis=dimension).take(range(extent), axis=dimension)
    return holds


_UNROLLED = 4  # terms of a longer one, at least
_MOST_UNROLLED_TERMS = 8  # of a product
_UNROLLED_ADDS = 96  # multiply-adds of a step of a product, more or less
_LINE_TERMS = 16  # that lie in one line of the caches
_FEW_USES = 64  # of an element: part of their operands come from beyond the second cache
_MOST_LINE_ADDS = 192  # multiply-adds of a step of that many terms
_MOST_TAPS = 16  # of a row of a window that is unrolled whole
_MOST_WINDOW = 49  # taps of a window


class Choose(Protocol):
    """Makes a choice of a sketch: its name, the values, the usual one, its kind."""

    def __call__(self, name: str, values: tuple[int, ...], default: int, kind: Kind) -> expr.Index:
        """The decision."""


def split_reduction(
    builder: SketchBuilder,
    stage: schedule.Stage,
    taps: list[str],
    choose: Choose,
    *,
    sums: int,
    is_window: bool,
) -> tuple[list[str], list[str]]:
    """The loops of the reduction: (loops, unrolled loops), outermost first.

    taps       axes of which terms are skipped: their loops are around the others, if there are any
    sums       of a tile, by rule
    is_window  neighbours share most of what they read, and the padding beside it is inlined
    """
    axes = list(stage.tensor.reduce_axes)
    if accesses.count_of(axes) <= CPU_LIMITS.whole_fold:
        return [], [axis.name for axis in axes]
    if is_window:
        return _split_taps(builder, stage, [axis for axis in axes if axis.extent != 1], choose)
    inside = [axis for axis in axes if axis.name not in taps]
    if not inside:
        return taps, []
    main = _innermost(stage.tensor, inside)
    others = [axis.name for axis in inside if axis is not main]
    extent = main.length
    block = accesses.period_along(expr.loads_of(stage.tensor.body), main)
    usual = max(divisors(block or extent, _usual_terms(builder.state, stage.tensor, main, sums)))
    # with fewer terms a step, what it costs beside its arithmetic is more: up to twice the time
    least = min(usual, _MOST_UNROLLED_TERMS)
    steps = tuple(step for step in divisors(block or extent, CPU_LIMITS.unrolled) if step >= least)
    step = choose("unroll", steps, usual, Kind.UNROLL)
    if block and extent > block:
        inner = expr.exact_div(block, step)
        builder.do(schedule.Split(stage.name, main.name, (inner, step), schedule.Tail.EXACT))
        loops = [*taps, f"{main.name}_0", *others, f"{main.name}_1"]
        return loops, [f"{main.name}_2"]
    builder.do(schedule.Split(stage.name, main.name, (step,), schedule.Tail.EXACT))
    return [*taps, *others, f"{main.name}_o"], [f"{main.name}_i"]


def _usual_terms(
    state: schedule.ScheduleState, tensor: expr.Compute, main: expr.Axis, sums: int
) -> int:
    """The most terms to unroll: the cost of a step beside its arithmetic must be small.

    A product waits for an operand that is read in order, for few results an element: a step takes a
    whole line of it, so that the processor can predict the loads of the next steps.  It predicts
    inside a page: of rows that lie apart, such as those of a cache of keys, a step takes few.

    sums   of a tile: each takes a multiply-add for every term
    """
    if accesses.reads_once(tensor):
        return _UNROLLED
    if sums * _LINE_TERMS <= _MOST_LINE_ADDS and _least_uses(tensor, main) <= _FEW_USES:
        loads = expr.loads_of(tensor.body)
        variable = [load for load in loads if load.source.name not in state.constants]
        apart = max((accesses.bytes_along(load, main.var) for load in variable), default=0)
        return _LINE_TERMS if apart * _LINE_TERMS < PAGE_BYTES else _UNROLLED
    return min(_MOST_UNROLLED_TERMS, max(_UNROLLED, _UNROLLED_ADDS // sums))


def _least_uses(tensor: expr.Compute, main: expr.Axis) -> int:
    """The least uses of each element of an operand that an axis reads in order."""
    uses = [
        prod(axis.length for axis in tensor.axes if not accesses.reads_along(load, axis.var))
        for load in expr.loads_of(tensor.body)
        if accesses.stride_along(load, main.var) == 1
    ]
    return min(uses, default=accesses.points(tensor))


def _innermost(tensor: expr.Compute, axes: Sequence[expr.Axis]) -> expr.Axis:
    """The axis along which memory is in order, of the longest one and those that fill a line.

    If each element is read once, any axis may be the innermost.
    """
    longest = max(axes, key=lambda axis: axis.length)
    is_any = accesses.reads_once(tensor)

    def apart(axis: expr.Axis) -> tuple[bool, int, bool]:
        strides = [accesses.stride_along(load, axis.var) for load in expr.loads_of(tensor.body)]
        distance = sum(accesses.points(tensor) if s is None else abs(s) for s in strides)
        return axis.extent == 1, distance, axis is not longest

    long = [axis for axis in axes if is_any or axis is longest or axis.length >= _LINE_TERMS]
    return min(long, key=apart)


def _split_taps(
    builder: SketchBuilder, stage: schedule.Stage, axes: list[expr.Axis], choose: Choose
) -> tuple[list[str], list[str]]:
    """The loops of a window of many terms: as `split_reduction`.

    Neighbours along the innermost axis share reads: its taps are unrolled, with those of the axis
    around it if they are few.  The others are loops, so that a whole row of taps is skipped at
    once.
    """
    *others, last = axes
    extent = last.length
    if extent > _MOST_TAPS:
        step = choose(
            "unroll",
            divisors(extent, CPU_LIMITS.unrolled),
            max(divisors(extent, 8)),
            Kind.UNROLL,
        )
        builder.do(schedule.Split(stage.name, last.name, (step,), schedule.Tail.EXACT))
        return [*(axis.name for axis in others), f"{last.name}_o"], [f"{last.name}_i"]
    if not others:
        return [], [last.name]
    *others, around = others
    sizes = divisors(around.length, _MOST_WINDOW // extent)
    step = choose("unroll", sizes, 1, Kind.UNROLL)
    builder.do(schedule.Split(stage.name, around.name, (step,), schedule.Tail.EXACT))
    loops = [*(axis.name for axis in others), f"{around.name}_o"]
    return loops, [f"{around.name}_i", last.name]


def build_tiles(tiling: Tiling) -> None:
    """Schedule a product in tiles, with all that feeds and follows it."""
    tiling.arrange()
    _schedule_anchor(tiling)
    tiling.finish()


def _schedule_anchor(tiling: Tiling) -> None:
    """Order and unroll the loops of the reduction, and pack its constants."""
    builder, name = tiling.builder, tiling.anchor
    stage = builder.state.stage(name)
    lanes, tile = _tile_axes(tiling)
    is_wide = tiling.roles.lanes.length > tiling.width
    whole = (), lanes
    vectors, vector = split_vectors(builder, name, lanes, tiling.width) if is_wide else whole
    tile += vectors
    taps = _skip_zeros(tiling, stage, lanes, tile)
    for constant in tiling.constants:
        builder.do(schedule.FoldConstant(constant))
    stage = builder.state.stage(name)
    is_window = tiling.order is Order.INLINED
    folding, unrolled = split_reduction(
        builder, stage, taps, tiling.choose, sums=prod(tiling.tile), is_window=is_window
    )
    rest = [axis.name for axis in stage.tensor.axes if axis.name not in (lanes, *tile)]
    nest(builder, name, (*rest, *folding), (*unrolled, *tile), vector)
    # data of one tile alone would be prefetched as often as they are read: the processor sees by
    # itself that it is read in order
    moving = tiling.product.own_axes.get(tiling.next_axis, ())
    prefetched = folding[-1:] if tiling.next_axis else []
    pack_constants(builder, name, prefetched, moving)


def _tile_axes(tiling: Tiling) -> tuple[str, list[str]]:
    """The anchor's own axes of the roles: that of the lanes, the others of the tile."""
    own, roles = tiling.product.own_axes, tiling.roles
    *columns, lanes = own[roles.lanes.name]
    # columns innermost: all columns use each read along the rows immediately
    tiled = [axis for axis in (roles.second_row, roles.row, roles.column) if axis is not None]
    names = [name for axis in tiled for name in own.get(axis.name, ())]
    return lanes, list(dict.fromkeys(name for name in (*names, *columns) if name != lanes))


def _skip_zeros(tiling: Tiling, stage: schedule.Stage, lanes: str, tile: list[str]) -> list[str]:
    """Skip taps beside the image, for a position or a whole tile; gives the axes of the taps.

    lanes, tile   the anchor's axes along which vectors lie, and a tile has several elements
    """
    if not is_folded_in_loops(stage):
        return []
    own, roles = tiling.product.own_axes, tiling.roles
    sizes = {a.name: a.length for a in stage.tensor.axes if a.name in tile}
    for axis, size in zip((roles.row, roles.second_row), tiling.tile[1:], strict=True):
        names = own.get(axis.name, ()) if axis is not None else ()
        sizes |= {name: min(size, sizes[name]) for name in names if name in sizes}
    fixed = [roles.second_row] if tiling.skips_rows else []
    fixed += [roles.column] if tiling.has_one_column else []
    for axis in fixed:
        for name in own.get(axis.name, ()) if axis is not None else ():
            sizes.pop(name, None)
    skipped = skip_zeros(tiling.builder, stage.name, frozenset((lanes,)), sizes)
    return list(dict.fromkeys((*tiling.taps, *skipped)))
