"""Taps of a window that lie beside the image, and when it pays to skip them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from tensorwright.expr import (
    Axis,
    Compute,
    Condition,
    Const,
    Load,
    Select,
    Var,
    children,
    condition_sides,
    evaluate_condition,
    evaluate_index,
    free_vars,
    has_element,
    loads_of,
)
from tensorwright.schedule import ComputeInline, ScheduleState, Skipped, SkipZeros, Stage, is_legal
from tensorwright.tuning.space.axes.accesses import count_of
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.tile_limits import CPU_LIMITS

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
    partly: list[tuple[float, SkipZeros]] = []
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
            partly.append((_saved(conditions, axes, {}), replace(step, of=Skipped.POSITIONS)))
    best = _best_of_positions(builder.state.stage(name), partly, skipped)
    if best is not None:
        builder.do(best)
        skipped.append(best.axis)
    return list(dict.fromkeys(skipped))  # two factors may be zero along one axis


def _best_of_positions(
    stage: Stage, steps: list[tuple[float, SkipZeros]], skipped: list[str]
) -> SkipZeros | None:
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
    conditions: tuple[Condition, ...], axes: list[Axis], tile: Mapping[str, int]
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
        if left or axes & tiled or not _is_copy(state, padded, name):
            continue
        for step in steps:
            builder.do(step)
            skipped.append(step.axis)
        builder.do(ComputeInline(padded))
    return list(dict.fromkeys(skipped))


def is_folded_in_loops(stage: Stage) -> bool:
    """Whether a sum has a loop over taps: not all of its terms are unrolled."""
    axes = stage.tensor.reduce_axes
    return len(axes) > 1 and count_of(axes) > CPU_LIMITS.whole_fold


def _is_copy(state: ScheduleState, name: str, reader: str) -> bool:
    """Whether a stage only copies what one reader reads, with a border."""
    readers = [stage.name for stage in state.readers(name)]
    return is_bordered_copy(state.stage(name).tensor) and readers == [reader]


def is_bordered_copy(tensor: Compute) -> bool:
    """Whether a tensor is a copy of another with a border of one number."""
    body = tensor.body
    is_choice = isinstance(body, Select)
    return is_choice and all(isinstance(part, Load | Const) for part in children(body))


def _possible(state: ScheduleState, stage: Stage) -> list[SkipZeros]:
    """The steps that skip terms of a sum, for each padded factor and axis."""
    sources = dict.fromkeys(load.source.name for load in loads_of(stage.tensor.body))
    computed = filter(state.has_stage, sources)
    pairs = product(computed, stage.tensor.reduce_axes)
    steps = [SkipZeros(stage.name, source, axis.name) for source, axis in pairs]
    return [step for step in steps if is_legal(step, state)]


def _axes_of(stage: Stage, conditions: tuple[Condition, ...]) -> list[Axis]:
    used: frozenset[Var] = frozenset().union(
        *(free_vars(*condition_sides(each)) for each in conditions)
    )
    return [a for a in (*stage.tensor.axes, *stage.tensor.reduce_axes) if a.var in used]


def _saved(conditions: tuple[Condition, ...], axes: list[Axis], tile: Mapping[str, int]) -> float:
    """The share of the terms that is skipped; 0 if `_kept` is None."""
    kept = _kept(conditions, axes, tile)
    return 1 - int(kept.sum()) / kept.size if kept is not None else 0.0


def _kept(
    conditions: tuple[Condition, ...], axes: list[Axis], tile: Mapping[str, int]
) -> NDArray[np.bool_] | None:
    """Which terms count for some position of their tile, along each axis.

    Along an axis without a tile, for their own position. None for images so long that the border
    hardly matters, for those without elements, and if positions are read from memory.
    """
    extents = [axis.length for axis in axes]
    sides = [side for each in conditions for side in condition_sides(each)]
    if not 0 < prod(extents) <= _MOST_PAIRS or any(map(has_element, sides)):
        return None
    places = dict(zip((axis.var for axis in axes), np.indices(extents, sparse=True), strict=True))
    starts = [range(0, n, tile.get(axis.name, 1)) for axis, n in zip(axes, extents, strict=True)]
    kept = np.ones(extents, np.bool_)
    for condition in conditions:
        holds = evaluate_condition(condition, lambda side: evaluate_index(side, places.__getitem__))
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
