"""Tiles of a product of matrices for graphics processors, and an estimate of what each one takes.

A block computes rows x columns of the result.  Along each of the two, a tile is `apart` times
`threads` times `each`: a thread has `each` neighbouring elements at `apart` places, so that the
neighbouring threads of a warp read neighbouring vectors from shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import DType, GpuTarget
from tensorwright.schedule import MatrixProduct
from tensorwright.tuning.space.axes.accesses import count_of
from tensorwright.tuning.space.derived.thread_tiles import fold_sizes
from tensorwright.tuning.space.sketch import divisors

Row = tuple[int, int, int]
Folds = tuple[int, ...]
Column = NDArray[np.float64]

APART, EACH = (1, 2, 4), (1, 2, 4)
MOST_ACCUMULATORS = 128  # of a thread: as many registers are left for operands and addresses
_MOST_THREADS = 64  # along an axis
MOST_TERMS = 64  # of a part of the reduction
_TERMS = (8, 16, 32, 64)  # of a part of the reduction, at most: what the default chooses among

# What is alike on NVIDIA's cards since 2017, in cycles and bytes of a multiprocessor.
_SCHEDULERS = 4  # each issues an instruction of a warp in a cycle
_LANES = 128
_REGISTERS = 40  # of a thread: addresses, conditions, and operands of shared memory
_MOST_REGISTERS = 255
_MOST_HELD = 40  # registers for what is fetched ahead: beyond, the compiler spills some
_LATENCY = 700  # of a fetch: the second cache, and a barrier
_LAUNCH = 1500  # of a wave of blocks: the first fetch, and the stores
_L2_BYTES = 32  # in a cycle
_WAVEFRONT = 32  # elements that shared memory gives in a cycle
_OVERHEAD = 30  # instructions of a part beside arithmetic and fetches
_SHARE = 0.2  # of what takes less time, so much is not hidden behind what takes the most
_RESERVED = 1024  # bytes of shared memory that the driver takes of a block


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """A product: `batch` times `rows` x `columns` sums over `folds`.

    longest tiles along rows and columns
    costs   instructions for each element of the left and of the right operand that is fetched
    moved   bytes from and to memory
    ahead   how many parts are fetched at once while another one is used
    """

    batch: int
    rows: int
    columns: int
    longest: tuple[int, int]
    folds: tuple[int, ...]
    costs: tuple[float, float]
    moved: int
    ahead: int = 1


COPIED, COMPUTED = 3.0, 12.0
"""Instructions to fetch an element alone: as it lies, or as a part of a padded image."""


def longest_tiles(matrices: MatrixProduct) -> tuple[int, int]:
    """The longest tiles along rows and columns: axes that are joined have no rest in one tile."""
    sides = ((matrices.rows, matrices.height), (matrices.columns, matrices.width))
    rows, columns = (n if len(axes) == 1 else count_of(axes) for axes, n in sides)
    return rows, columns


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """A tile: (apart, threads, each) of rows and columns, the terms of a part along each axis of
    the reduction, and the seconds that a launch is expected to take.
    """

    rows: Row
    columns: Row
    folds: Folds
    seconds: float


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


def fold_rows(extents: Sequence[int], terms: int) -> Folds:
    """The terms along each axis of the reduction: the most that are not more than `terms`."""
    sizes = [fold_sizes(extent, terms) for extent in extents]
    fitting = (row for row in product(*sizes) if prod(row) <= max(terms, 1))
    return max(fitting, key=lambda row: (prod(row), row[::-1]), default=(1,) * len(extents))


@lru_cache(maxsize=1024)
def best_tile(shape: MatrixShape, target: GpuTarget) -> MatrixTile:
    """The tile that is expected to be the fastest."""
    left = tile_rows(shape.rows, shape.longest[0])
    right = tile_rows(shape.columns, shape.longest[1])
    pairs = np.array([(*a, *b) for a in left for b in right], np.float64)
    tiles: list[MatrixTile] = []
    for folds in dict.fromkeys(fold_rows(shape.folds, terms) for terms in _TERMS):
        seconds = tile_seconds(shape, target, pairs.T, folds)
        at = int(np.argmin(seconds))
        rows, columns = divmod(at, len(right))
        tiles.append(MatrixTile(left[rows], right[columns], folds, float(seconds[at])))
    return min(tiles, key=lambda tile: tile.seconds)


def tile_seconds(
    shape: MatrixShape, target: GpuTarget, tiles: NDArray[np.float64], folds: Folds
) -> Column:
    """What a launch takes with each of some tiles; infinite where the card refuses it.

    Shapes:  tiles (6, n): apart, threads, each of rows, then of columns -> (n,)
    A multiprocessor has as many blocks at once as registers and shared memory allow. They share its
    schedulers and its shared memory; each part takes at least the latency of the next one.
    """
    rows, columns, terms = tiles[:3], tiles[3:], prod(folds)
    height, width = rows.prod(0), columns.prod(0)
    threads = rows[1] * columns[1]
    warps = np.ceil(threads / target.warp)
    accumulators = rows[0] * rows[2] * columns[0] * columns[2]
    held = (height + width) * terms / threads if shape.ahead == 1 else np.zeros_like(threads)
    registers = accumulators + held + _REGISTERS
    shared = (shape.ahead + 1) * 4 * (height + width) * terms
    resident = np.minimum.reduce(
        [
            target.registers // (registers * warps * target.warp),
            target.shared_bytes // (shared + _RESERVED),
            2048 // threads,
            np.full_like(threads, target.blocks_per_multiprocessor),
        ]
    )
    is_possible = (threads <= target.threads_per_block) & (shared <= target.opt_in_shared_bytes)
    is_possible &= (registers <= _MOST_REGISTERS) & (held <= _MOST_HELD) & (resident >= 1)
    resident = np.maximum(resident, 1)
    reads = rows[0] + columns[0]
    fetching = (shape.costs[0] * height + shape.costs[1] * width) * terms / threads
    issued = terms * (accumulators + reads) + fetching + _OVERHEAD
    lanes = np.minimum(columns[1], target.warp)
    waves_read = rows[0] * np.maximum(rows[2] / 2, target.warp / lanes * rows[2] / _WAVEFRONT)
    waves_read += columns[0] * np.maximum(columns[2] / 2, lanes * columns[2] / _WAVEFRONT)

    def part(blocks: Column) -> Column:
        """The cycles of a part of so many blocks at once."""
        running = warps * blocks
        limits = np.array(
            [
                np.ceil(running / _SCHEDULERS) * issued,
                running * terms * waves_read,
                4 * blocks * (height + width) * terms / _L2_BYTES,
                np.full_like(running, _LATENCY / shape.ahead),
            ]
        )
        cycles: Column = (1 - _SHARE) * limits.max(0) + _SHARE * limits.sum(0)
        return cycles

    blocks = shape.batch * np.ceil(shape.rows / height) * np.ceil(shape.columns / width)
    each = np.ceil(blocks / target.multiprocessors)
    whole, rest = np.divmod(each, resident)
    parts = prod(ceil(n / size) for n, size in zip(shape.folds, folds, strict=True))
    cycles = whole * (parts * part(resident) + _LAUNCH)
    cycles += np.where(rest > 0, parts * part(rest) + _LAUNCH, 0)
    clock = dict(target.flops)[DType.F32] / (2 * _LANES * target.multiprocessors)
    seconds = np.maximum(cycles / clock, shape.moved / target.bandwidth)
    return np.where(is_possible, seconds, np.inf)
