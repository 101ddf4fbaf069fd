"""Tiling of products of matrices for graphics processors: `SSSRRSRS`, with joined axes.

A sum of products becomes a product of matrices (`schedule/algorithms/implicit_gemm.py`), so that
the pixels of an image of 7 x 7, or of all images of a batch, are one axis.  A block computes a tile
of it.  For each part of the reduction its threads fetch parts of both operands together into shared
memory, with the terms outside: so the arithmetic reads whole vectors there.  A thread sums in
registers, at a few positions that are apart.  The reader of the result stores the tiles.
`tiled_fold.py` takes the steps.

Windows on graphics processors: depthwise convolutions and pools, whose positions share reads.

Each element of the result folds a small window of an operand, which depends on all axes of the
result: this is not a product of matrices.  A thread computes a few neighbouring elements, whose
windows overlap, with all terms unrolled.  Either the elements of all channels are divided among
threads in order, and the first cache keeps the reads of neighbours; or a block has a tile of one
channel, and its threads fetch the patch under it together into shared memory first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from tensorwright import expr, schedule
from tensorwright.expr import Axis, Index, loads_of
from tensorwright.tuning.space.accesses import bytes_of, count_of, has_numbers, slides_along
from tensorwright.tuning.space.derived import thread_tiles, tiled_fold
from tensorwright.tuning.space.derived.derivation import (
    Derivation,
    TiledStage,
    free_consumer,
    is_untouched,
    rule,
)
from tensorwright.tuning.space.derived.thread_tiles import thread_rows
from tensorwright.tuning.space.derived.tiled_fold import TiledFold, inline_made
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors

_GROUPS = (1, 2, 4, 8)  # rows of blocks that run column by column
_MOST_UNROLLED = 16  # terms of the longest axis of the reduction
_UNROLLED = 8  # by rule: more would not fit the cache of instructions


def _is_product(view: Derivation) -> bool:
    """If each operand has its own axis, nothing is scheduled, and no rule made the stage."""
    stage = view.stage
    if not is_untouched(view.state, stage) or view.current.endswith("_cache"):
        return False
    return schedule.find_matrix_product(stage.tensor) is not None


@rule("matrix tiling", _is_product)
def tile_matrices(view: Derivation) -> tuple[Derivation, ...]:
    """Compute a sum of products in tiles of a product of matrices.

    Rewrite, tile the stage that stores, compute the sums in its threads, fetch for them.
    """
    base, target, builder = view.current, view.target, view.grow()
    matrices = schedule.find_matrix_product(view.stage.tensor)
    assert matrices is not None, "the rule has asked"
    stored_by, axes, operands = _rewrite(view, builder)
    product = f"{base}_product"
    host = builder.state.stage(stored_by).tensor
    tensor = builder.state.stage(product).tensor
    tiled = tiled_fold.TiledFold(builder, product, host.name, base)
    *both, rows, columns = tensor.axes
    extents, longest = (rows.length, columns.length), thread_tiles.longest_tiles(matrices)
    defaults = thread_tiles.default_tile(count_of(both), extents, longest, target)
    joined = (matrices.rows, matrices.columns)
    for axis, own, most, default in zip((rows, columns), joined, longest, defaults, strict=True):
        names = tuple(f"{base}_{axis.name}_{n}" for n in ("positions", "threads", "elements"))
        sizes = thread_tiles.tile_rows(axis.length, most)
        row = builder.choose_rows(names, sizes, default, Kind.TILE, base)
        tail = tiled_fold.tail_of(count_of(own), (*sizes, default))
        tiled.split(axis.name, tuple(axes[each.name] for each in own), row, tail)
    tiled.store(group=_choose_group(view, builder), lanes=host.axes[-1].name)
    loop = _sum(tiled, tensor.reduce_axes)
    for operand in operands:
        _fetch(tiled, operand, loop)
    places = ((tiled.host, tiled.thread), (product, loop))
    are_copies = all(each.is_copy and not each.is_transposed for each in operands)
    tile = TiledStage(product, tiled.host, places, are_copies)
    return (view.then(builder, f"{base} as matrices in blocks of threads", tile=tile),)


@dataclass(frozen=True, slots=True)
class _Operand:
    """A stage that holds an operand of the product, or a constant.

    vector    elements that lie side by side in memory, at most
    is_transposed   whether they lie along the reduction
    """

    name: str
    vector: int
    is_transposed: bool = False
    is_copy: bool = True


def _rewrite(
    view: Derivation, builder: SketchBuilder
) -> tuple[str, dict[str, str], tuple[_Operand, ...]]:
    """Replace the sum by a product of matrices.

    Returns the stage that stores, its axes by those of the sum, and the operands.
    """
    base, host = view.current, view.current
    consumer = free_consumer(builder.state, base)
    builder.do(schedule.UseAlgorithm(base, "implicit_gemm"))
    if consumer is not None:
        host = consumer.name
    own = tiled_fold.stored_axes(view.stage.tensor, builder.state.stage(host).tensor)
    if host != base:
        builder.do(schedule.ComputeInline(base))
    operands = tuple(_operand(builder, f"{base}_{side}") for side in ("left", "right"))
    return host, {name: stored for stored, name in own}, operands


def _operand(builder: SketchBuilder, name: str) -> _Operand:
    """An operand, after folding constants."""
    if schedule.is_legal(schedule.FoldConstant(name), builder.state):
        extent = builder.state.stage(name).tensor.axes[-1].length
        builder.do(schedule.FoldConstant(name))
        return _Operand(name, max(n for n in tiled_fold.VECTORS if extent % n == 0))
    stage = builder.state.stage(name)
    for source in {load.source.name for load in expr.loads_of(stage.tensor.body)}:
        tiled_fold.inline_made(builder, source)
    return _operand_of(builder.state.stage(name))


def _choose_group(view: Derivation, builder: SketchBuilder) -> expr.Index | None:
    """Rows of blocks that share parts in a cache that is too small for all; None if it is not."""
    read = {load.source for load in expr.loads_of(view.stage.tensor.body)}
    if sum(map(bytes_of, read)) <= view.target.l2_bytes // 2:
        return None
    name = f"{view.current}_group"
    return builder.choose(name, _GROUPS, _GROUPS[-1], Kind.OTHER, view.current)


def _sum(tiled: tiled_fold.TiledFold, axes: Sequence[expr.Axis]) -> str:
    """Split the reduction into parts; the loop over parts."""
    split: list[tuple[str, ...]] = []
    for axis, default in zip(
        axes, thread_tiles.default_matrix_folds([x.length for x in axes]), strict=True
    ):
        is_exact = axis.length % default == 0
        sizes = [
            n
            for n in thread_tiles.fold_sizes(axis.length, thread_tiles.MOST_TERMS)
            if (axis.length % n == 0) == is_exact
        ]
        rows: list[tuple[int, ...]] = [(n,) for n in sizes]
        row: tuple[int, ...] = (default,)
        names: tuple[str, ...] = (f"{tiled.node}_{axis.name}_part",)
        if axis is axes[-1]:  # in steps that are unrolled
            unrolled = max(divisors(default, _UNROLLED))
            rows = [(n // u, u) for n in sizes for u in divisors(n, _MOST_UNROLLED)]
            row = (default // unrolled, unrolled)
            names = tuple(f"{tiled.node}_{axis.name}_{each}" for each in ("steps", "unrolled"))
        factors = tiled.builder.choose_rows(names, tuple(rows), row, Kind.TILE, tiled.node)
        step = schedule.Split(
            tiled.fold, axis.name, factors, tiled_fold.tail_of(axis.length, [row])
        )
        tiled.builder.do(step)
        split.append(step.children)
    return tiled.sum(split, split[-1][-1:], is_joined=True, has_lanes=True)


def _fetch(tiled: tiled_fold.TiledFold, operand: _Operand, loop: str) -> None:
    """Fetch an operand, a constant or a stage, which is computed while it is fetched."""
    if not tiled.builder.state.has_stage(operand.name):
        tiled.fetch(operand.name, tiled.fold, loop, operand.vector)
        return
    tiled.fetch_stage(
        operand.name,
        tiled.fold,
        loop,
        operand.name,
        operand.vector,
        is_transposed=operand.is_transposed,
    )


def _operand_of(stage: schedule.Stage) -> _Operand:
    """The memory layout of an operand that is computed while it is fetched."""
    tensor = stage.tensor
    body = tensor.body
    if not isinstance(body, expr.Load):
        return _Operand(stage.name, 1, is_copy=False)
    bounds = {axis.var: expr.Range(0, axis.length - 1) for axis in tensor.axes}
    offset: expr.Index = 0
    for index, extent in zip(body.indices, body.source.shape, strict=True):
        offset = offset * extent + index
    offset = expr.simplify(offset, bounds)
    last = tensor.axes[-1]
    if _step(offset, last.var) == 1:
        return _Operand(stage.name, _aligned(offset, last, tensor.axes))
    if len(tensor.axes) > 1 and _step(offset, tensor.axes[-2].var) == 1:
        inner = tensor.axes[-2]
        return _Operand(stage.name, _aligned(offset, inner, tensor.axes), is_transposed=True)
    return _Operand(stage.name, 1)


def _step(offset: expr.Index, var: expr.Var) -> expr.Index:
    """The distance of two neighbours along a variable."""
    return expr.substitute(offset, {var: var + 1}) - offset


def _aligned(offset: expr.Index, along: expr.Axis, axes: tuple[expr.Axis, ...]) -> int:
    """The longest run along an axis that starts at a multiple of its length, everywhere."""
    steps = [_step(offset, axis.var) for axis in axes if axis is not along]
    sizes = (along.length, *(step for step in steps if isinstance(step, int)))
    if not all(isinstance(step, int) for step in steps):
        return 1
    return max(n for n in tiled_fold.VECTORS if all(size % n == 0 for size in sizes))


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
