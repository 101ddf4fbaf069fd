"""Taps of a window that lie beside the image: where it pays to skip them."""

from __future__ import annotations

from itertools import product

from tensorwright.base import ScheduleError
from tensorwright.expr import (
    Axis,
    Condition,
    Var,
    condition_sides,
    free_vars,
    loads_of,
    substitute_condition,
)
from tensorwright.schedule import ScheduleState, SkipZeros, Stage
from tensorwright.tuning.space.axes.accesses import extent_of
from tensorwright.tuning.space.sketch import SketchBuilder

LEAST_SAVED = 0.03  # of the terms of a sum
_MOST_PAIRS = 1024  # an image so long has hardly any border


def skip_zeros(
    builder: SketchBuilder, name: str, tile: frozenset[str], least: float = LEAST_SAVED
) -> list[str]:
    """Skip the taps of a sum that lie beside the image, along directions outside of its tiles.

    tile    the names of the axes along which a tile has several elements
    least   the part of the terms that must be skipped along a direction to make it worth it
    Returns the axes of the taps: their loops should be around all others of the sum.
    """
    skipped: list[str] = []
    for step in _possible(builder.state, builder.state.stage(name)):
        conditions = step.conditions(builder.state)
        axes = _axes_of(builder.state.stage(name), conditions)
        if not {axis.name for axis in axes} & tile and _saved(conditions, axes) >= least:
            builder.do(step)
            skipped.append(step.axis)
    return list(dict.fromkeys(skipped))  # two factors may be zero along one axis


def _possible(state: ScheduleState, stage: Stage) -> list[SkipZeros]:
    """The steps that skip terms of a sum, for each padded factor and axis."""
    sources = dict.fromkeys(load.source.name for load in loads_of(stage.tensor.body))
    steps = []
    for source, axis in product(sources, stage.tensor.reduce_axes):
        step = SkipZeros(stage.name, source, axis.name)
        if not state.has_stage(source):
            continue
        try:
            step.check(state)
        except ScheduleError:
            continue
        steps.append(step)
    return steps


def _axes_of(stage: Stage, conditions: tuple[Condition, ...]) -> list[Axis]:
    used: frozenset[Var] = frozenset().union(
        *(free_vars(*condition_sides(each)) for each in conditions)
    )
    return [a for a in (*stage.tensor.axes, *stage.tensor.reduce_axes) if a.var in used]


def _saved(conditions: tuple[Condition, ...], axes: list[Axis]) -> float:
    """The part of the terms that is skipped; 0 for images so long that it is next to nothing, and
    for those without elements.
    """
    count = 1
    for axis in axes:
        count *= extent_of(axis.extent)
    if not 0 < count <= _MOST_PAIRS:
        return 0.0
    kept = 0
    for place in product(*(range(extent_of(axis.extent)) for axis in axes)):
        values = {axis.var: number for axis, number in zip(axes, place, strict=True)}
        kept += all(substitute_condition(each, values) is True for each in conditions)
    return 1 - kept / count
