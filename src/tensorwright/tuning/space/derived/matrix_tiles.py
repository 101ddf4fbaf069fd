"""Tiles of a product of matrices for graphics processors.

A block computes rows x columns of the result.  Along each of the two, a tile is `apart` times
`threads` times `each`: a thread has `each` neighbouring elements at `apart` places, so that the
neighbouring threads of a warp read neighbouring vectors from shared memory.

The time model prices the tiles.  The tile by rule is one that every card runs: a search starts from
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod

from tensorwright.base import GpuTarget
from tensorwright.schedule import MatrixProduct
from tensorwright.tuning.space.axes.accesses import count_of
from tensorwright.tuning.space.derived.thread_tiles import fold_sizes
from tensorwright.tuning.space.sketch import divisors

Row = tuple[int, int, int]

APART, EACH = (1, 2, 4), (1, 2, 4)
MOST_ACCUMULATORS = 128  # of a thread: as many registers are left for operands and addresses
_MOST_THREADS = 64  # along an axis
MOST_TERMS = 64  # of a part of the reduction
_SUMS, _THREADS, _TERMS = 64, 256, 16  # by rule, at most: of a thread, of a block, of a part
_BUSY = 2  # warps that a block has, before its threads have several sums


def longest_tiles(matrices: MatrixProduct) -> tuple[int, int]:
    """The longest tiles along rows and columns: axes that are joined have no rest in one tile."""
    sides = ((matrices.rows, matrices.height), (matrices.columns, matrices.width))
    rows, columns = (n if len(axes) == 1 else count_of(axes) for axes, n in sides)
    return rows, columns


@lru_cache(maxsize=1024)
def tile_rows(extent: int, longest: int) -> tuple[Row, ...]:
    """Tiles along an axis that divide it, up to the longest."""
    return tuple(
        (apart, threads, each)
        for apart in APART
        for threads in divisors(extent, _MOST_THREADS)
        for each in EACH
        if extent % (apart * threads * each) == 0 and apart * threads * each <= longest
    )


def default_folds(extents: Sequence[int]) -> tuple[int, ...]:
    """The terms of a part along each axis of the reduction by rule."""
    sizes = [fold_sizes(extent, _TERMS) for extent in extents]
    fitting = (row for row in product(*sizes) if prod(row) <= _TERMS)
    return max(fitting, key=lambda row: (prod(row), row[::-1]), default=(1,) * len(extents))


@lru_cache(maxsize=1024)
def default_tile(
    batch: int, extents: tuple[int, int], longest: tuple[int, int], target: GpuTarget
) -> tuple[Row, Row]:
    """The tile by rule: with the fewest idle lanes of warps, and a block for each multiprocessor.

    Of such tiles it has the most arithmetic for the data that it fetches.

    extents   of rows and of columns, of each of a batch of products
    """

    def worth(tile: tuple[Row, Row]) -> tuple[float, ...]:
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
