"""Sizes of tiles for graphics processors: threads along an axis, and elements of each thread.

Tiles of a product of matrices for graphics processors.

A block computes rows x columns of the result.  Along each of the two, a tile is positions times
threads times elements: a thread has neighbouring elements at some positions, so that the
neighbouring threads of a warp read neighbouring vectors from shared memory.

The time model prices the tiles.  The tile by rule is one that every card runs: a search starts from
it.

How a tile fetches its operands: how far ahead, by which copies, and with which memory layout.

These are structure, not numbers, so each combination is a sketch of the same family.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from tensorwright import expr, schedule
from tensorwright.base import GpuTarget
from tensorwright.tuning.space.accesses import count_of
from tensorwright.tuning.space.derived.derivation import Derivation, TiledStage
from tensorwright.tuning.space.derived.tiled_fold import stored_axes
from tensorwright.tuning.space.register_tile import limits_of
from tensorwright.tuning.space.sketch import SketchBuilder, divisors

_WASTE = 0.25  # share of the elements of tiles along an axis that may be beyond its end
_MOST_THREADS = 256  # along an axis
_TERMS = 16  # of a part of the reduction that the default fetches at once
_PRESETS = ((16, 4), (16, 2), (8, 4), (8, 2), (16, 1), (8, 1))
"""Threads and elements of each thread, both ways, the most reuse first."""

Row = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """An axis of the stage that stores, in tiles: rows of (threads, elements of each).

    own   the name of the axis in the stage that folds
    """

    name: str
    own: str
    extent: int
    rows: tuple[Row, ...]
    default: Row


def plan_threads(
    tensor: expr.Compute, host: expr.Compute, target: GpuTarget
) -> tuple[ThreadAxis, ...]:
    """The axes of a fold as its reader stores them, in the reader's order.

    Empty if tiling does not pay or sizes are open. It pays if two operands are read, and neither
    depends on all axes, so that threads which fetch together fetch less.
    """
    axes = [axis for axis in tensor.axes if axis.extent != 1]
    loads = list(dict.fromkeys(expr.loads_of(tensor.body)))
    everything = (*tensor.axes, *tensor.reduce_axes)
    if not axes or not all(isinstance(axis.extent, int) for axis in everything):
        return ()
    shared = [axes_of(load, axes) for load in loads]
    if len({load.source for load in loads}) < 2 or any(len(each) == len(axes) for each in shared):
        return ()
    by_axis = {
        axis.name: tuple(n for n, each in enumerate(shared) if axis in each) for axis in axes
    }
    groups: dict[tuple[int, ...], list[expr.Axis]] = {}
    for axis in axes:
        groups.setdefault(by_axis[axis.name], []).append(axis)
    tiled = [group for reads, group in groups.items() if len(reads) < len(loads)]
    default = _default(axes, tiled, target)
    most = limits_of(target).innermost
    own = {axis.name: axis for axis in axes}
    return tuple(
        ThreadAxis(
            stored, name, own[name].length, thread_rows(own[name].length, most), default[name]
        )
        for stored, name in stored_axes(tensor, host)
        if name in own
    )


def axes_of(load: expr.Load, axes: Iterable[expr.Axis]) -> tuple[expr.Axis, ...]:
    """The axes that a load moves along."""
    variables = expr.free_vars(*load.indices)
    return tuple(axis for axis in axes if axis.var in variables)


@lru_cache(maxsize=1024)
def thread_rows(extent: int, most: int) -> tuple[Row, ...]:
    """Tiles along an axis: up to `most` elements of a thread; few lie beyond the end."""
    powers = {1 << n for n in range(_MOST_THREADS.bit_length())}
    threads = sorted({*divisors(extent, min(extent, _MOST_THREADS)), *powers})
    return tuple(
        (count, each)
        for count in threads
        for each in range(1, most + 1)
        if count * each <= extent and -extent % (count * each) <= _WASTE * extent
    )


def _default(
    axes: list[expr.Axis], groups: list[list[expr.Axis]], target: GpuTarget
) -> dict[str, Row]:
    """The first preset with a block for each multiprocessor and full warps; else the last full."""
    chosen: dict[str, Row] = {}
    for threads, elements in _PRESETS:
        tried = {axis.name: (1, 1) for axis in axes}
        for group in groups:
            tried |= _share(group, threads, elements)
        count = prod(row[0] for row in tried.values())
        if chosen and count < target.warp:
            continue
        chosen = tried
        blocks = prod(-(-axis.length // prod(tried[axis.name])) for axis in axes)
        if blocks >= target.multiprocessors and count >= target.warp:
            break
    return chosen


def _share(group: list[expr.Axis], threads: int, elements: int) -> dict[str, Row]:
    """Divide threads and elements among axes along which one operand is read, the last first."""
    rows_by_axis: dict[str, Row] = {}
    for axis in reversed(group):
        rows = [
            row
            for row in thread_rows(axis.length, elements)
            if row[0] <= threads and row[1] <= elements
        ]
        row = max(
            rows,
            key=lambda each: ((axis.length / -(-axis.length // prod(each))), each[0]),
            default=(1, 1),
        )
        rows_by_axis[axis.name] = row
        threads, elements = max(1, threads // row[0]), max(1, elements // row[1])
    return rows_by_axis


@lru_cache(maxsize=1024)
def fold_sizes(extent: int, most: int) -> tuple[int, ...]:
    """How many terms along an axis are fetched at once: divisors, or powers of two with a rest."""
    exact = divisors(extent, most)
    if exact[-1] >= min(4, extent):
        return exact
    powers = [1 << n for n in range(most.bit_length()) if 1 << n <= extent]
    return tuple(n for n in powers if -extent % n <= _WASTE * extent)


def default_folds(axes: Iterable[expr.Axis], most: int) -> dict[str, int]:
    """The terms along each axis that are fetched at once by rule, the last axis first."""
    left, terms = _TERMS, {}
    for axis in reversed(tuple(axes)):
        size = max(n for n in fold_sizes(axis.length, most) if n <= max(1, left))
        terms[axis.name] = size
        left //= size
    return terms


MatrixRow = tuple[int, int, int]

_POSITIONS, _ELEMENTS = (1, 2, 4), (1, 2, 4)
_MOST_MATRIX_THREADS = 64  # along an axis
MOST_TERMS = 64  # of a part of the reduction
_SUMS, _THREADS, _MATRIX_TERMS = 64, 256, 16  # by rule, at most: of a thread, of a block, of a part
_BUSY = 2  # warps that a block has, before its threads have several sums


def longest_tiles(matrices: schedule.MatrixProduct) -> tuple[int, int]:
    """The longest tiles along rows and columns: axes that are joined have no rest in one tile."""
    sides = ((matrices.rows, matrices.height), (matrices.columns, matrices.width))
    rows, columns = (n if len(axes) == 1 else count_of(axes) for axes, n in sides)
    return rows, columns


@lru_cache(maxsize=1024)
def tile_rows(extent: int, longest: int) -> tuple[MatrixRow, ...]:
    """Tiles along an axis that divide it, up to the longest."""
    rows = product(_POSITIONS, divisors(extent, _MOST_MATRIX_THREADS), _ELEMENTS)
    return tuple(row for row in rows if extent % prod(row) == 0 and prod(row) <= longest)


def default_matrix_folds(extents: Sequence[int]) -> tuple[int, ...]:
    """The terms of a part along each axis of the reduction by rule."""
    sizes = [fold_sizes(extent, _MATRIX_TERMS) for extent in extents]
    fitting = (row for row in product(*sizes) if prod(row) <= _MATRIX_TERMS)
    return max(fitting, key=lambda row: (prod(row), row[::-1]), default=(1,) * len(extents))


@lru_cache(maxsize=1024)
def default_tile(
    batch: int, extents: tuple[int, int], longest: tuple[int, int], target: GpuTarget
) -> tuple[MatrixRow, MatrixRow]:
    """The tile by rule: with the fewest idle lanes of warps, and a block for each multiprocessor.

    Of such tiles it has the most arithmetic for the data that it fetches.

    extents   of rows and of columns, of each of a batch of products
    """

    def worth(tile: tuple[MatrixRow, MatrixRow]) -> tuple[float, ...]:
        (height, width), threads = map(prod, tile), tile[0][1] * tile[1][1]
        blocks = batch * (extents[0] // height) * (extents[1] // width)
        lanes = threads / (-(-threads // target.warp) * target.warp)
        is_kept = threads <= min(_THREADS, target.threads_per_block)
        is_kept &= height * width <= _SUMS * threads
        used = min(blocks, target.multiprocessors)
        reuse, busy = height * width / (height + width), min(threads, _BUSY * target.warp)
        return (is_kept, lanes, used, reuse, busy, -threads)

    rows, columns = (tile_rows(*side) for side in zip(extents, longest, strict=True))
    return max(product(rows, columns), key=worth)


_Ahead = tuple[int, schedule.CopyMechanism]
_RowsLayout = tuple[schedule.LayoutKind, int]

_COPIES, _REGISTERS = (3, schedule.CopyMechanism.CP_ASYNC), (2, schedule.CopyMechanism.REGISTERS)
_VARIANTS: tuple[tuple[_Ahead | None, _RowsLayout | None], ...] = (
    (_COPIES, None),
    (_REGISTERS, None),
    (_COPIES, (schedule.LayoutKind.PADDED, 4)),
    (_REGISTERS, (schedule.LayoutKind.PADDED, 4)),
    (_COPIES, (schedule.LayoutKind.XOR, 128)),
    (_REGISTERS, (schedule.LayoutKind.XOR, 128)),
    ((2, schedule.CopyMechanism.CP_ASYNC), None),
    ((4, schedule.CopyMechanism.CP_ASYNC), None),
    (None, None),
)
"""The likeliest first: asynchronous copies take no registers of the threads."""


def fetch_variants(derivation: Derivation) -> Iterator[tuple[str, SketchBuilder]]:
    """Each way to fetch the operands of the tiles: its name, and the steps up to there.

    If operands are computed while they are fetched, and on cards without asynchronous copies,
    threads copy.
    """
    fetches = [tile for tile in derivation.tiles if len(tile.tile_loops) > 1]
    seen: set[schedule.Trace] = set()
    for ahead, rows_layout in _VARIANTS if fetches else ((None, None),):
        builder = derivation.grow()
        words = [_fetch_ahead(builder, derivation.target, tile, ahead) for tile in fetches]
        if ahead is not None and not any(words):
            continue
        if rows_layout is not None:
            words += [_lay_out(builder, tile.tile_loops[1], rows_layout) for tile in fetches]
        steps = tuple(builder.steps)
        if steps not in seen:
            seen.add(steps)
            yield ", ".join(filter(None, words)), builder


def _fetch_ahead(
    builder: SketchBuilder, target: GpuTarget, tile: TiledStage, ahead: _Ahead | None
) -> str:
    """Pipeline the loop over the parts of a tile if that is possible; "" if it is not."""
    if ahead is None:
        return ""
    stages, mechanism = ahead
    fetch = tile.tile_loops[1]
    can_copy = target.copies_ahead and tile.copies
    if mechanism is schedule.CopyMechanism.CP_ASYNC and not can_copy:
        return ""
    here = schedule.At(*fetch)
    fetched = [stage for stage in builder.state.stages if stage.placement == here]
    step = schedule.Pipeline(*fetch, stages, mechanism)
    is_whole = len(schedule.fetched_in(builder.state, *fetch, mechanism)) == len(fetched)
    if not fetched or not is_whole or not schedule.is_legal(step, builder.state):
        return ""
    builder.do(step)
    return f"{stages} stages by {mechanism.value}"


def _lay_out(builder: SketchBuilder, fetch: tuple[str, str], rows_layout: _RowsLayout) -> str:
    """Lay out what a tile fetches in one way."""
    kind, amount = rows_layout
    here = schedule.At(*fetch)
    for stage in builder.state.stages:
        if stage.placement == here:
            builder.do(schedule.Layout(stage.name, kind, amount))
    return kind.value
