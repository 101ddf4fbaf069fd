"""Windows on graphics processors: depthwise convolutions and pools, whose positions share reads.

Each element of the result folds a small window of an operand, which depends on all axes of the
result: this is not a product of matrices.  A thread computes a few neighbouring elements, whose
windows overlap, with all terms unrolled.  Either the elements of all channels are divided among
threads in order, and the first cache keeps the reads of neighbours; or a block has a tile of one
channel, and its threads fetch the patch under it together into shared memory first.
"""

from __future__ import annotations

from functools import partial
from math import prod

from tensorwright import schedule
from tensorwright.expr import Axis, Index, loads_of
from tensorwright.tuning.space.accesses import count_of, has_numbers, slides_along
from tensorwright.tuning.space.derived.derivation import Derivation, TiledStage, is_untouched, rule
from tensorwright.tuning.space.derived.thread_tiles import thread_rows
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


@rule("window tiling", lambda view: bool(sliding_axes(view.state, view.stage)))
def tile_windows(view: Derivation) -> tuple[Derivation, ...]:
    """Compute the windows of a few neighbours in each thread, without and with patches in shared
    memory, the likelier first.
    """
    states = _dealt_out(view), _with_patches(view)
    terms = count_of(view.stage.tensor.reduce_axes)
    return states[::-1] if terms >= _LONG_WINDOW else states


def sliding_axes(state: schedule.ScheduleState, stage: schedule.Stage) -> tuple[Axis, ...]:
    """The axes along which windows slide; none if the stage is not to be tiled so."""
    tensor = stage.tensor
    if tensor.reduction is None or not is_untouched(state, stage) or not has_numbers(tensor):
        return ()
    if (
        schedule.find_matrix_product(tensor) is not None
        or count_of(tensor.reduce_axes) > _MOST_TERMS
    ):
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
    _store(tiled, count)
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
    _store(tiled)
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


def _store(tiled: TiledFold, threads: Index | None = None) -> None:
    """Store the windows of the threads, with every term of a window written out."""
    tiled.store(threads=threads)
    terms = [axis.name for axis in tiled.builder.state.stage(tiled.fold).tensor.reduce_axes]
    tiled.sum([(name,) for name in terms], terms)


def _derived(view: Derivation, tiled: TiledFold, way: str) -> Derivation:
    tile = TiledStage(tiled.fold, tiled.host, ((tiled.host, tiled.thread),))
    return view.then(tiled.builder, f"windows of {view.current} {way}", tile=tile)


def _rank(extent: int, row: tuple[int, int]) -> tuple[bool, bool, int, int]:
    """How good a tile is by rule: not too long, without a rest, long."""
    return row[0] <= _SIDE, extent % prod(row) == 0, row[0], -row[1]
