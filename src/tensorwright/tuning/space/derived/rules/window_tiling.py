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
from tensorwright.base import GpuTarget
from tensorwright.expr import Axis, Index, loads_of
from tensorwright.tuning.space.accesses import count_of, slides_along
from tensorwright.tuning.space.defaults.pointwise import bind_fused, deal_out, inline_cheap
from tensorwright.tuning.space.derived.derivation import (
    Derivation,
    TiledStage,
    Verdict,
    fusable_consumer,
    is_strict_inlinable,
    is_untouched,
)
from tensorwright.tuning.space.derived.row_program import can_stream, stream
from tensorwright.tuning.space.derived.thread_tiles import plan_threads, stored_axes, thread_rows
from tensorwright.tuning.space.sketch import Kind, SketchBuilder
from tensorwright.tuning.space.steps import is_cheap

_MOST_TERMS = 49  # of a window that is unrolled
_LONG_WINDOW = 25  # the least terms for which a patch in shared memory pays
_EACH = (1, 2, 4)  # neighbouring elements of a thread along an axis
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
        states = tuple(_Tiling(view).derive(is_shared=shared) for shared in (False, True))
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


def _rank(extent: int, row: tuple[int, int]) -> tuple[bool, bool, int, int]:
    """How good a tile is by rule: not too long, without a rest, long."""
    return row[0] <= _SIDE, extent % prod(row) == 0, row[0], -row[1]


class _Tiling:
    """Mutable working state while one stage is tiled."""

    def __init__(self, view: Derivation) -> None:
        self.view = view
        self.base = view.current
        self.target: GpuTarget = view.target
        self.builder: SketchBuilder = view.grow()
        tensor = view.stage.tensor
        sliding = {axis.name: axis for axis in sliding_axes(view.state, view.stage)}
        consumer = fusable_consumer(view.state, self.base)
        is_free = consumer is not None and is_untouched(view.state, consumer)
        self.host, self.fold = self.base, f"{self.base}_cache"
        if consumer is not None and is_free:
            self.host, self.fold = consumer.name, self.base
        else:
            self.builder.do(schedule.CacheWrite(self.base))
        stored = stored_axes(tensor, self.builder.state.stage(self.host).tensor)
        if self.host == self.base:
            stored = tuple((axis.name, axis.name) for axis in tensor.axes)
        self.sliding = {name: sliding[own] for name, own in stored if own in sliding}

    def derive(self, *, is_shared: bool) -> Derivation:
        """Tile the stage that stores, and compute the windows in its threads."""
        if is_shared:
            block, thread, threads = self._tile_patches()
            self._write_out(thread)
            self._fetch(block, threads)
        else:
            thread = self._deal_out()
            self._write_out(thread)
        way = "with patches in shared memory" if is_shared else "dealt out"
        tile = TiledStage(self.fold, self.host, ((self.host, thread),))
        return self.view.then(self.builder, f"windows of {self.base} {way}", tile=tile)

    def _deal_out(self) -> str:
        """Divide the elements of all channels among threads in order; the loop over threads."""
        builder = self.builder
        for source in self._sources():
            self._inline(source)
        left = self._elements() // (self.target.multiprocessors * _ENOUGH_THREADS)
        outer = [x for x in builder.state.stage(self.host).loops if x not in self.sliding]
        inner: list[str] = []
        for loop, axis in self.sliding.items():
            fitting = tuple(n for n in _EACH if -axis.length % n <= _WASTE * axis.length)
            default = max(n for n in fitting if n <= max(1, left))
            left //= default
            name = f"{self.base}_{axis.name}_each"
            each = builder.choose(name, fitting, default, Kind.TILE, self.base)
            step = schedule.Split(self.host, loop, (each,))
            builder.do(step)
            outer.append(step.children[0])
            inner.append(step.children[1])
        builder.do(schedule.Reorder(self.host, (*outer, *inner)))
        threads = tuple(n for n in _THREADS if n <= self.target.threads_per_block)
        name = f"{self.base}_threads"
        count = builder.choose(name, threads, min(128, threads[-1]), Kind.TILE, self.base)
        thread = deal_out(builder, self.host, tuple(outer), count)
        for loop in inner:
            builder.do(schedule.Unroll(self.host, loop))
        return thread

    def _tile_patches(self) -> tuple[str, str, Index]:
        """A tile of one channel to each block: the loops over blocks and threads, and how many."""
        builder = self.builder
        outer = [x for x in builder.state.stage(self.host).loops if x not in self.sliding]
        levels: list[tuple[str, ...]] = []
        threads: Index = 1
        for loop, axis in self.sliding.items():
            names = (f"{self.base}_{axis.name}_threads", f"{self.base}_{axis.name}_each")
            rows = thread_rows(axis.length, _EACH[-1])
            fitting = tuple(row for row in rows if row[0] in (*_SIDES, axis.length))
            default = max(fitting or rows, key=partial(_rank, axis.length))
            row = builder.choose_rows(names, fitting, default, Kind.TILE, self.base)
            step = schedule.Split(self.host, loop, row)
            builder.do(step)
            levels.append(step.children)
            threads = threads * row[0]
        blocks, lanes, inner = (tuple(names) for names in zip(*levels, strict=True))
        builder.do(schedule.Reorder(self.host, (*outer, *blocks, *lanes, *inner)))
        block = bind_fused(builder, self.host, (*outer, *blocks), schedule.ForKind.BLOCK_X)
        thread = bind_fused(builder, self.host, lanes, schedule.ForKind.THREAD_X)
        for loop in inner:
            builder.do(schedule.Unroll(self.host, loop))
        return block, thread, threads

    def _write_out(self, thread: str) -> None:
        """Compute the windows of a thread, every term written out."""
        builder = self.builder
        builder.do(schedule.ComputeAt(self.fold, self.host, thread))
        stage = builder.state.stage(self.fold)
        sliding = [axis.name for axis in self.sliding.values()]
        terms = [axis.name for axis in stage.tensor.reduce_axes]
        others = [loop for loop in stage.loops if loop not in {*sliding, *terms}]
        builder.do(schedule.Reorder(self.fold, (*others, *terms, *sliding)))
        for loop in (*terms, *sliding):
            builder.do(schedule.Unroll(self.fold, loop))

    def _fetch(self, block: str, threads: Index) -> None:
        """Let the threads of a block fetch the patch under its tile together."""
        builder = self.builder
        for source in self._windows():
            read = schedule.CacheRead(source, self.fold, schedule.Scope.SHARED)
            builder.do(read)
            self._inline(source)
            builder.do(schedule.ComputeAt(read.copy, self.host, block))
            builder.do(schedule.Cooperate(read.copy, (threads,)))

    def _elements(self) -> int:
        return count_of(self.builder.state.stage(self.host).tensor.axes)

    def _sources(self) -> list[str]:
        body = self.builder.state.stage(self.fold).tensor.body
        return list(dict.fromkeys(load.source.name for load in loads_of(body)))

    def _windows(self) -> list[str]:
        """The operands over which the window slides."""
        tensor = self.builder.state.stage(self.fold).tensor
        moving = [axis.var for axis in self.sliding.values()]
        loads = tuple(loads_of(tensor.body))
        names = (
            load.source.name
            for load in loads
            if any(slides_along((load,), tensor, var) for var in moving)
        )
        return list(dict.fromkeys(names))

    def _inline(self, source: str) -> None:
        """Compute an operand while it is read if it is cheap: the padding of an image."""
        builder, step = self.builder, schedule.ComputeInline(source)
        is_made = builder.state.has_stage(source) and schedule.is_legal(step, builder.state)
        if is_made and is_cheap(builder.state.stage(source).tensor.body):
            builder.do(step)


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
