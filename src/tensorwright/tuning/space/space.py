"""The space of a program: sketches by rule, best guess first, derived ones, and templates."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from enum import StrEnum
from operator import attrgetter
from typing import Any

from tensorwright import base
from tensorwright.schedule import ComputeInline, ScheduleState, Trace
from tensorwright.tuning.space.defaults.matrices import short_product_sketches
from tensorwright.tuning.space.defaults.packed_weights import packed_weight_sketches
from tensorwright.tuning.space.defaults.pointwise import grid_sketches, pointwise_sketches
from tensorwright.tuning.space.defaults.rows import row_sketches
from tensorwright.tuning.space.defaults.tile import tile_sketches
from tensorwright.tuning.space.defaults.winograd import winograd_sketches
from tensorwright.tuning.space.derived import engine
from tensorwright.tuning.space.sketch import Sketch, SketchBuilder, Space, distinct
from tensorwright.tuning.space.steps import widened_often
from tensorwright.tuning.space.templates.space import template_sketches

Heuristic = Callable[[ScheduleState, Any], Iterator[Sketch]]
"""Sketches of a program for a target, the best guess first; none if it does not apply."""

HEURISTICS: base.ByKind[Heuristic] = {
    base.TargetKind.CPU: (
        short_product_sketches,
        packed_weight_sketches,
        tile_sketches,
        row_sketches,
        pointwise_sketches,
    ),
    base.TargetKind.GPU: (engine.likeliest_sketch, grid_sketches),
}
"""One for each kind of program; the first that applies makes the schedule of an untuned one."""
OTHER_ALGORITHMS: base.ByKind[Heuristic] = {
    base.TargetKind.CPU: (winograd_sketches,),
    base.TargetKind.GPU: (engine.batched_winograd_sketches,),
}
"""Sketches that compute a stage by another algorithm."""


class SpaceKind(StrEnum):
    """The schedules that a search tries."""

    SKETCHES = "sketches"  # of heuristics and generators, for any program
    TEMPLATES = "templates"  # of templates; sketches for programs without one
    BOTH = "both"


def space_of(
    state: ScheduleState,
    target: base.Target,
    *,
    algorithms: bool = True,
    kind: SpaceKind = SpaceKind.SKETCHES,
) -> Space:
    """The schedules to try, no trace twice; the default is the first sketch.

    Sketches by rule, those with other algorithms, derived ones, and those of templates.
    """
    with base.without_collection():
        templates: tuple[Sketch, ...] = ()
        if kind is not SpaceKind.SKETCHES:
            templates = tuple(template_sketches(state, target, algorithms))
        if kind is SpaceKind.TEMPLATES and templates:
            return Space(templates)
        sketches = (*sketches_of(state, target, algorithms=algorithms), *templates)
        return Space(tuple(distinct(sketches, attrgetter("trace"))))


def sketches_of(
    state: ScheduleState, target: base.Target, *, algorithms: bool = True
) -> Iterator[Sketch]:
    """Those of `space_of`, each made when it is asked for."""
    others = (algorithm_sketches,) if algorithms else ()
    sources = (_by_heuristic, *others, _derived)
    sketches = (sketch for source in sources for sketch in source(state, target))
    yield from distinct(sketches, attrgetter("trace"))


def _derived(state: ScheduleState, target: base.Target) -> Iterator[Sketch]:
    """The derived sketches, but those that widen a constant again wherever it is used."""
    often = widened_often(state)
    for sketch in engine.derived_sketches(state, target):
        inlined = {step.stage for step in sketch.trace if isinstance(step, ComputeInline)}
        if not often & inlined:
            yield sketch


def algorithm_sketches(state: ScheduleState, target: base.Target) -> Iterator[Sketch]:
    """The sketches that compute a stage by another algorithm, each built when asked for."""
    listed = base.of_kind(OTHER_ALGORITHMS, target, "algorithms")
    legal = (_as_far_as_legal(each(state, target), state) for each in listed)
    return (sketch for sketches in legal for sketch in sketches)


def heuristic_sketches(state: ScheduleState, target: base.Target) -> tuple[Sketch, ...]:
    """The sketches of the first rule that applies; the first is the schedule by rule.

    Warns:  if one takes an illegal step; the next one is asked then, finally plain loops.
    """
    return tuple(distinct(_by_heuristic(state, target), attrgetter("trace")))


def _by_heuristic(state: ScheduleState, target: base.Target) -> Iterator[Sketch]:
    is_empty = all(0 in state.stage(name).tensor.shape for name in state.outputs)
    heuristics = () if is_empty else base.of_kind(HEURISTICS, target, "heuristic schedules")
    for heuristic in heuristics:
        sketches = _as_far_as_legal(heuristic(state, target), state)
        first = next(sketches, None)
        if first is not None:
            yield first
            yield from sketches
            return
    yield SketchBuilder(state).sketch("plain loops")


def _as_far_as_legal(sketches: Iterator[Sketch], state: ScheduleState) -> Iterator[Sketch]:
    """The sketches before the first illegal step, a fault of ours: the network still compiles."""
    try:
        yield from sketches
    except base.ScheduleError as error:
        text = f"the heuristic for {', '.join(state.outputs)} took an illegal step"
        remedy = "it runs, perhaps slowly; please report it"
        warnings.warn(f"{text}: {error.message()}\n  {remedy}", RuntimeWarning, stacklevel=2)


def default_trace(state: ScheduleState, target: base.Target) -> Trace:
    """The schedule of an untuned program: the default of `space_of`, made without the others."""
    with base.without_collection():
        first = next(_by_heuristic(state, target))
    return first.bound(first.defaults)
