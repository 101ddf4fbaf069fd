"""Multi-level tiling for graphics processors: blocks, threads, parts of the reduction, registers.

A block computes a tile of the result and a thread a part of it, in its own memory.  For each part
of the reduction the threads of a block fetch what they read together into shared memory.  The
reader of the fold, or a copy of its result, stores the tile of the thread (`tiled_fold.py`).

Source:  Zheng et al., Ansor, OSDI 2020, section 4.1, for graphics processors.

Split a reduction over blocks: if a result has few tiles, blocks fold parts of the terms.

A first launch has partial results, which other rules tile as any fold.  A second one folds these.

Source:  Osama et al., Stream-K, PPoPP 2023, section 2 (split-k).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tensorwright import expr, schedule
from tensorwright.tuning.space.accesses import count_of, has_numbers
from tensorwright.tuning.space.derived import derivation, thread_tiles
from tensorwright.tuning.space.derived.tiled_fold import VECTORS, TiledFold, tail_of
from tensorwright.tuning.space.register_tile import limits_of
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors


def _is_tiled(view: derivation.Derivation) -> bool:
    """If tiling pays and the reader, if one can store the tiles, is still free."""
    consumer = derivation.fusable_consumer(view.state, view.current)
    is_free = consumer is None or derivation.is_untouched(view.state, consumer)
    return is_free and bool(_plan(view))


@derivation.rule("thread tiling", _is_tiled)
def tile_in_threads(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Tile a fold in the threads of its reader, or of a copy of its result, and let them fetch its
    operands together.
    """
    builder, base, axes = view.grow(), view.current, _plan(view)
    tiled = TiledFold.of(builder, base)
    stored = tiled.stored
    for axis in axes:
        names = (f"{base}_{axis.own}_threads", f"{base}_{axis.own}_elements")
        row = builder.choose_rows(names, axis.rows, axis.default, Kind.TILE, base)
        tail = tail_of(axis.extent, (*axis.rows, axis.default))
        tiled.split(axis.own, (stored[axis.own],), row, tail)
    tiled.store()
    split, lengths = _split_terms(view, builder, tiled.fold)
    loop = tiled.sum(split)
    lengths |= {axis.own: prod(axis.default) for axis in axes}
    first: dict[str, expr.Load] = {}
    for load in expr.loads_of(view.stage.tensor.body):
        first.setdefault(load.source.name, load)
    for source, load in first.items() if loop else ():
        tiled.fetch(source, tiled.fold, loop, _vector(view, load, lengths))
    places = ((tiled.host, tiled.thread), *([(tiled.fold, loop)] if loop else []))
    tile = derivation.TiledStage(tiled.fold, tiled.host, places)
    return (view.then(builder, f"{base} in blocks of threads", tile=tile),)


def _plan(view: derivation.Derivation) -> tuple[thread_tiles.ThreadAxis, ...]:
    """The axes to tile; none if the stage is not to be tiled."""
    tensor = view.stage.tensor
    if tensor.reduction is None or not isinstance(view.stage.placement, schedule.AtRoot):
        return ()
    consumer = derivation.fusable_consumer(view.state, view.current)
    return thread_tiles.plan_threads(
        tensor, tensor if consumer is None else consumer.tensor, view.target
    )


def _split_terms(
    view: derivation.Derivation, builder: SketchBuilder, fold: str
) -> tuple[list[tuple[str, ...]], dict[str, int]]:
    """Split the reduction into parts: the loops of each axis, and the terms of a part by rule."""
    axes = [axis for axis in view.stage.tensor.reduce_axes if axis.extent != 1]
    most = limits_of(view.target).unrolled
    split: list[tuple[str, ...]] = []
    terms = thread_tiles.default_folds(axes, most)
    for axis in axes:
        sizes = thread_tiles.fold_sizes(axis.length, most)
        name = f"{view.current}_{axis.name}_part"
        size = builder.choose(name, sizes, terms[axis.name], Kind.TILE, view.current)
        tail = tail_of(axis.length, [(n,) for n in sizes])
        step = schedule.Split(fold, axis.name, (size,), tail)
        builder.do(step)
        split.append(step.children)
    return split, terms


def _vector(view: derivation.Derivation, load: expr.Load, lengths: Mapping[str, int]) -> int:
    """The number of elements fetched at once by rule: a divisor of the rows of the part.

    lengths   of the part along each axis
    """
    tensor = view.stage.tensor
    names = {axis.var: axis.name for axis in (*tensor.axes, *tensor.reduce_axes)}
    if not load.indices or not isinstance(load.indices[-1], expr.Var):
        return 1
    length, row = lengths.get(names[load.indices[-1]], 1), load.source.shape[-1]
    fits = (n for n in VECTORS if length % n == 0 and isinstance(row, int) and row % n == 0)
    return max(fits)


_TILE = 32 * 32  # elements of a block that uses its operands well
_TERMS = 128  # of a part: fewer are not worth a second launch
_MOST_PARTS = 32
_WAVES = 4  # blocks for each multiprocessor that are wanted: they wait in turns
_FEWER = 2  # times fewer parts are tried, too


@derivation.rule("reduction split over blocks", lambda view: bool(_parts(view)))
def split_over_blocks(view: derivation.Derivation) -> tuple[derivation.Derivation, ...]:
    """Fold parts of a reduction in separate blocks; a sketch for each number of parts."""
    tensor = view.stage.tensor
    axis = max(tensor.reduce_axes, key=lambda each: each.length)
    derived: list[derivation.Derivation] = []
    for parts in _parts(view):
        builder = view.grow()
        tail = tail_of(axis.length, [(parts,)])
        step = schedule.Split(view.current, axis.name, (-(-axis.length // parts),), tail)
        builder.do(step)
        builder.do(schedule.Rfactor(view.current, step.children[0], 0))
        derived.append(view.then(builder, f"{view.current} split over {parts} blocks"))
    return tuple(derived)


def _parts(view: derivation.Derivation) -> tuple[int, ...]:
    """The numbers of parts of a reduction, that by rule first."""
    tensor, name = view.stage.tensor, view.current
    is_free = derivation.is_untouched(view.state, view.stage) and has_numbers(tensor)
    is_stored = name in view.state.outputs or derivation.has_fusable_consumer(view.state, name)
    if tensor.reduction is None or not (is_free and is_stored) or name.endswith(("_rf", "_cache")):
        return ()
    target, tile = view.target, 1
    if thread_tiles.plan_threads(tensor, tensor, target):
        tile = _TILE
    tiles = -(-count_of(tensor.axes) // tile)
    wanted = -(-(1 if target.is_processor else _WAVES) * target.multiprocessors // tiles)
    longest = max(tensor.reduce_axes, key=lambda each: each.length)
    terms = prod(axis.length for axis in tensor.reduce_axes)
    most = min(wanted, terms // _TERMS, _MOST_PARTS)
    if most < 2:
        return ()
    first = _divisor(longest, most)
    fewer = _divisor(longest, most // _FEWER)
    return tuple(dict.fromkeys(n for n in (first, fewer) if n > 1))


def _divisor(axis: expr.Axis, most: int) -> int:
    """The largest number of equal parts, or a power of two if the axis has no such divisors."""
    exact = divisors(axis.length, max(1, most))[-1]
    return exact if 2 * exact > most else min(axis.length, 1 << (max(1, most).bit_length() - 1))
