"""Windows on graphics processors: depthwise convolutions and pools, whose positions share reads.

Each element of the result folds a small window of an operand, which depends on all axes of the
result: this is not a product of matrices.  A thread computes a few neighbouring elements, whose
windows overlap, with all terms unrolled.  Either the elements of all channels are divided among
threads in order, and the first cache keeps the reads of neighbours; or a block has a tile of one
channel, and its threads fetch the patch under it together into shared memory first.

Stream elements through threads, without memory of a block: elementwise and moving programs.

Source:  Zheng et al., Ansor, OSDI 2020, section 4.2 (what no rule tiles is split and bound).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

from tensorwright import schedule
from tensorwright.expr import Axis, loads_of
from tensorwright.tuning.space.accesses import count_of, slides_along
from tensorwright.tuning.space.defaults.pointwise import inline_cheap
from tensorwright.tuning.space.derived.derivation import (
    Derivation,
    TiledStage,
    Verdict,
    fusable_consumer,
    is_strict_inlinable,
    is_untouched,
)
from tensorwright.tuning.space.derived.row_program import can_stream, stream
from tensorwright.tuning.space.derived.thread_tiles import plan_threads, thread_rows
from tensorwright.tuning.space.derived.tiled_fold import TiledFold, inline_made
from tensorwright.tuning.space.sketch import Kind, SketchBuilder

_MOST_TERMS = 49  # of a window that is unrolled
_LONG_WINDOW = 25  # the least terms for which a patch in shared memory pays
_ELEMENTS = (1, 2, 4)  # neighbouring elements of a thread along an axis
_THREADS = (32, 64, 128, 256)
_SIDES = (4, 7, 8, 14, 16, 28, 32)  # threads of a block along an axis of a tile
_SIDE = 16  # by rule
_WASTE = 0.25  # share of the elements of tiles along an axis that may be beyond its end
_ENOUGH_THREADS = 1024  # for each multiprocessor: with more, a thread may compute more


@dataclass(frozen=True, slots=True)
class WindowTiling:
    """Compute the windows of a few neighbours in each thread."""

    name: str = "window tiling"

    def applies(self, view: Derivation) -> Verdict:
        """If a short fold slides over an operand, and is not a product of matrices."""
        return Verdict.YES if sliding_axes(view.state, view.stage) else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """Without and with patches in shared memory, the likelier first."""
        states = _dealt_out(view), _with_patches(view)
        terms = count_of(view.stage.tensor.reduce_axes)
        return states[::-1] if terms >= _LONG_WINDOW else states


def sliding_axes(state: schedule.ScheduleState, stage: schedule.Stage) -> tuple[Axis, ...]:
    """The axes along which windows slide; none if the stage is not to be tiled so."""
    tensor = stage.tensor
    axes = (*tensor.axes, *tensor.reduce_axes)
    is_free = isinstance(stage.placement, schedule.AtRoot) and is_untouched(state, stage)
    if tensor.reduction is None or not is_free or schedule.find_matrix_product(tensor) is not None:
        return ()
    if not all(isinstance(axis.extent, int) and axis.extent > 0 for axis in axes):
        return ()
    if count_of(tensor.reduce_axes) > _MOST_TERMS:
        return ()
    loads = tuple(loads_of(tensor.body))
    return tuple(
        axis for axis in tensor.axes if axis.extent != 1 and slides_along(loads, tensor, axis.var)
    )[-2:]


def _dealt_out(view: Derivation) -> Derivation:
    """The elements of all channels divided among threads in order."""
    builder, target = view.grow(), view.target
    tiled, axes = _opened(view, builder)
    for load in loads_of(builder.state.stage(tiled.fold).tensor.body):
        inline_made(builder, load.source.name)
    elements = count_of(builder.state.stage(tiled.host).tensor.axes)
    left = elements // (target.multiprocessors * _ENOUGH_THREADS)
    for loop, axis in axes.items():
        fitting = tuple(n for n in _ELEMENTS if -axis.length % n <= _WASTE * axis.length)
        default = max(n for n in fitting if n <= max(1, left))
        left //= default
        name = f"{tiled.node}_{axis.name}_elements"
        size = builder.choose(name, fitting, default, Kind.TILE, tiled.node)
        tiled.split(axis.name, (loop,), (size,), schedule.Tail.GUARD)
    threads = tuple(n for n in _THREADS if n <= target.threads_per_block)
    default = min(128, threads[-1])
    count = builder.choose(f"{tiled.node}_threads", threads, default, Kind.TILE, tiled.node)
    tiled.store(threads=count)
    _write_out(tiled)
    return _derived(view, tiled, "dealt out")


def _with_patches(view: Derivation) -> Derivation:
    """A tile of one channel to each block, whose threads fetch the patch under it together."""
    builder = view.grow()
    tiled, axes = _opened(view, builder)
    for loop, axis in axes.items():
        names = (f"{tiled.node}_{axis.name}_threads", f"{tiled.node}_{axis.name}_elements")
        rows = thread_rows(axis.length, _ELEMENTS[-1])
        fitting = tuple(row for row in rows if row[0] in (*_SIDES, axis.length))
        default = max(fitting or rows, key=partial(_rank, axis.length))
        row = builder.choose_rows(names, fitting, default, Kind.TILE, tiled.node)
        tiled.split(axis.name, (loop,), row, schedule.Tail.GUARD)
    tiled.store()
    _write_out(tiled)
    tensor = builder.state.stage(tiled.fold).tensor
    over = [
        load.source.name
        for load in loads_of(tensor.body)
        if any(slides_along((load,), tensor, axis.var) for axis in axes.values())
    ]
    for source in dict.fromkeys(over):
        tiled.fetch(source, tiled.host, tiled.block)
    return _derived(view, tiled, "with patches in shared memory")


def _opened(view: Derivation, builder: SketchBuilder) -> tuple[TiledFold, dict[str, Axis]]:
    """The fold of windows, and by the axes of the stage that stores it those that slide."""
    sliding = {axis.name: axis for axis in sliding_axes(view.state, view.stage)}
    tiled = TiledFold.of(builder, view.current)
    stored = tiled.stored.items()
    return tiled, {name: sliding[own] for own, name in stored if own in sliding}


def _write_out(tiled: TiledFold) -> None:
    """Compute the windows of a thread, every term written out."""
    axes = tiled.builder.state.stage(tiled.fold).tensor.reduce_axes
    terms = [axis.name for axis in axes]
    tiled.sum([(name,) for name in terms], terms)


def _derived(view: Derivation, tiled: TiledFold, way: str) -> Derivation:
    tile = TiledStage(tiled.fold, tiled.host, ((tiled.host, tiled.thread),))
    return view.then(tiled.builder, f"windows of {view.current} {way}", tile=tile)


def _rank(extent: int, row: tuple[int, int]) -> tuple[bool, bool, int, int]:
    """How good a tile is by rule: not too long, without a rest, long."""
    return row[0] <= _SIDE, extent % prod(row) == 0, row[0], -row[1]


@dataclass(frozen=True, slots=True)
class WaitForTile:
    """Leave a stage to the fold that it reads: the threads of the fold may store its tiles."""

    name: str = "wait for a tile"

    def applies(self, view: Derivation) -> Verdict:
        """If another rule tiles such a fold, after the stages between them are inlined."""
        if view.stage.tensor.reduction is not None:
            return Verdict.NO
        state = _inlined(view)
        tensor = state.stage(view.current).tensor
        folds = [state.stage(name) for name in _tiled_by(state, view.current)]
        pays = any(
            plan_threads(fold.tensor, tensor, view.target) or sliding_axes(state, fold)
            for fold in folds
        )
        return Verdict.YES if pays else Verdict.NO

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """The same state at the next stage."""
        return (view.then(view.grow()),)


def _inlined(view: Derivation) -> schedule.ScheduleState:
    """The program after `AlwaysInline` has decided about each stage, as a bias before a ReLU."""
    builder = view.grow()
    for stage in reversed(view.state.stages):
        if is_strict_inlinable(builder.state, stage.name):
            builder.do(schedule.ComputeInline(stage.name))
    return builder.state


def _tiled_by(state: schedule.ScheduleState, name: str) -> tuple[str, ...]:
    """The folds whose only reader a stage is, one to one."""
    return tuple(
        stage.name
        for stage in state.stages
        if stage.tensor.reduction is not None
        and (reader := fusable_consumer(state, stage.name)) is not None
        and reader.name == name
    )


@dataclass(frozen=True, slots=True)
class Streaming:
    """Divide the elements of a stage among blocks and threads, all sizes open."""

    name: str = "streaming"

    def applies(self, view: Derivation) -> Verdict:
        """Always, except for stages that other rules have made for themselves."""
        return Verdict.NO if view.current.endswith(("_cache", "_rf")) else Verdict.YES

    def derive(self, view: Derivation) -> tuple[Derivation, ...]:
        """In the thread of its only reader, or in separate blocks; else unchanged."""
        builder = view.grow()
        if not can_stream(view.stage) or not is_untouched(view.state, view.stage):
            return (view.then(builder),)
        inline_cheap(builder)
        if not builder.state.has_stage(view.current):
            return (view.then(builder),)
        element_loop = stream(builder, view.current, view.target, view.elements)
        tile = TiledStage(view.current, element_loop[0], (element_loop,), is_element=True)
        note = f"{view.current} streamed" if element_loop[0] == view.current else ""
        return (view.then(builder, note, tile=tile),)
