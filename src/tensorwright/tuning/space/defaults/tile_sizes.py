"""Sizes of register tiles: by rule, and those worth trying."""

from __future__ import annotations

from functools import lru_cache

from tensorwright.base import LINE_BYTES, CpuTarget
from tensorwright.tuning.space.axes.anchor import is_aligned
from tensorwright.tuning.space.axes.cache_sets import PAGE_BYTES
from tensorwright.tuning.space.sketch import divisors
from tensorwright.tuning.space.tile_limits import CPU_LIMITS


def few_columns(limit: int, values: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of columns up to a limit; at least one."""
    return tuple(value for value in values if value <= limit) or (1,)


def row_sizes(extent: int, limit: int, block: int = 0) -> tuple[int, ...]:
    """Tile sizes up to a limit worth trying along rows: divisors, some that leave a shifted tail.

    block   rows that belong together: tiles are parts of that, or some whole; 0: none do
    """
    extra = tuple(n for n in (2, 3, 4, 6, 8, 12, 14) if n <= min(extent, limit))
    sizes = sorted({*divisors(extent, limit), *extra})
    return tuple(size for size in sizes if is_aligned(size, block))


def leaves_masked_rest(extent: int, width: int) -> bool:
    """Whether the rest after whole vectors is not a vector of half a register, a quarter, ...

    It is then computed under a mask, and sums under a mask are kept in memory.
    """
    rest = extent % width
    return rest & (rest - 1) != 0


LATENCY_CYCLES = 4.0  # of a multiply-add
DELAYED_CYCLES = 4.7  # with other delays of the next one of the same sum, if they count
_STARTED = 3.2  # instructions a cycle, on a core that runs another thread, too
_FAR_BYTES = 16.0  # a cycle, of prefetched data from beyond the second cache


@lru_cache(maxsize=1024)
def default_tile(
    columns: int,
    rows: int,
    more_rows: int,
    target: CpuTarget,
    most_columns: int = 8,
    column_bytes: int = 0,
    blocks: tuple[int, int, int] = (0, 0, 0),
    most_rows: tuple[int, int] = (CPU_LIMITS.rows, 4),
    latency_cycles: float = DELAYED_CYCLES,
) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) with the best estimated share of peak.

    A tile of c vectors by r rows takes c*r multiply-adds, c + r reads and c*r + c + 1 registers
    per step of the reduction (c*r + c + r where a vector of each row serves several steps); two
    multiply-adds and two reads start per cycle, and a multiply-add takes four cycles.  Sums that
    only just hide that wait whenever something else is late: eight
    vectors reach 0.85 of the speed of twelve.  The vectors come from the second cache, in 1.3
    cycles each, and every row that uses one again saves reading it: few rows cost up to half.
    Tails count as wasted work.

    If an element is spread by a load of its own, that is one more instruction: a long column of
    sums has one for each multiply-add, and a core that is shared does not start them in time.

    column_bytes   what a column of vectors takes over the whole reduction: where a tile's columns
                   fill more than a third of the second cache, and are read again, they come from
                   behind it
    blocks         columns, rows, second rows that belong together: tiles are parts of them, or
                   some of them whole, without a tail, which would begin anywhere in a block as far
                   as is provable; 0: none do
    most_rows      the rows, second rows, that the first cache holds
    latency_cycles of a sum, from one multiply-add to the next
    """
    best, best_score = (1, 1, 1), -1.0
    for c in range(1, min(columns, most_columns, 8) + 1):
        leaves = 3 * c * column_bytes > target.l2_bytes and rows * more_rows > CPU_LIMITS.rows
        vector_cycles = target.vector_bytes / _FAR_BYTES if leaves else 1.3
        for second in range(1, min(more_rows, most_rows[1], 4) + 1):
            for r in range(1, min(rows, most_rows[0], CPU_LIMITS.rows) + 1):
                held = c * r * second
                spread = r * second if target.multiplies_by_lane else 1
                is_whole = all(map(_fits, (c, r, second), (columns, rows, more_rows), blocks))
                if held + c + spread > target.vector_registers or not is_whole:
                    continue
                reads = c + r * second
                cycles = max(held / 2, reads / 2, vector_cycles * c, latency_cycles)
                if not target.spreads_operands:
                    cycles = max(cycles, (held + reads) / _STARTED)
                share = held / 2 / cycles
                for size, extent in ((c, columns), (r, rows), (second, more_rows)):
                    share *= extent / (-(-extent // size) * size)
                share *= 1.0 - 0.5 / (r * second) - 0.01 * (second - 1)
                if share > best_score:
                    best, best_score = (c, r, second), share
    return best


def _fits(size: int, extent: int, block: int) -> bool:
    """Whether tiles of a size are parts of blocks, or whole ones that divide the extent."""
    return not block or (is_aligned(size, block) and extent % size == 0)


_FOLD_BYTES = 128  # of sums: a core reads no more from its second cache during an addition
_FOLD_TILES = 4  # the least number, so that several threads have some


def fold_tile(columns: int, rows: int, target: CpuTarget) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) of a fold that reads every element once.

    It reads in the order of memory, and waits for memory, which is fast if few rows are read at
    once.  More sums than hide the latency of an addition are useless.  Tails count as wasted work.
    """
    enough = max(1, _FOLD_BYTES // target.vector_bytes)
    best, best_score = (1, 1, 1), -1.0
    for r in range(1, min(rows, enough) + 1):
        for c in range(1, min(columns, enough // r) + 1):
            tiles = -(-columns // c) * -(-rows // r)
            whole = columns / (-(-columns // c) * c) * rows / (-(-rows // r) * r)
            score = whole * c * r * min(1.0, tiles / _FOLD_TILES)
            if score > best_score:
                best, best_score = (c, r, 1), score
    return best


# A fold across rows touches another page at each step, so its tiles are wide and have few rows.
_VISIT_BYTES = 256  # bytes of the second cache that take as long as beginning in another page
_LONGEST_RUN = 8  # vectors
_FEWEST_TILES = 2  # for threads to share


def rows_apart_tile(
    lanes: int, rows: int, longest: int, apart: tuple[int, int], width: int, target: CpuTarget
) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) of a fold that reads every element once.

    The terms of a sum are further apart than neighbouring sums. A step reads a run of vectors of
    each row, in another page or in that of the row or step before. Beginning in a page costs more
    than a vector, so runs are long.  The last tile of lanes that are not whole tiles is shifted
    back: vectors that fill a line then cross two lines.

    lanes, width   elements of a row, of a vector
    longest        the most vectors of a row
    apart          bytes from a row to the next, and from a step of the reduction to the next
    """
    row_pages, step_pages = (min(1.0, each / PAGE_BYTES) for each in apart)
    visit = _VISIT_BYTES / target.vector_bytes * step_pages
    many = target.vector_registers * 3 // 4
    best, best_cost = (1, 1, 1), float("inf")
    for c in range(1, min(-(-lanes // width), longest, _LONGEST_RUN) + 1):
        across = -(-lanes // (c * width))
        is_torn = across > 1 and lanes % (c * width) > 0 and target.vector_bytes >= LINE_BYTES
        vectors = c * (across + is_torn)
        for r in range(1, min(rows, CPU_LIMITS.rows) + 1):
            held = c * r
            if held + 2 > target.vector_registers:
                break
            down = -(-rows // r)
            pages = 1.0 + (r - 1) * row_pages
            cycles = max(1.0, many / held) + visit * pages / held
            cycles *= vectors * down * r / min(1.0, across * down / _FEWEST_TILES)
            if cycles < best_cost:
                best, best_cost = (c, r, 1), cycles
    return best


_WINDOW_ROWS = 7


def window_tile(columns: int, rows: int, target: CpuTarget, block: int = 0) -> tuple[int, int, int]:
    """The register tile (vectors, rows, second rows) of unrolled windows that share nothing.

    Tiles at a border without padding evaluate conditions, so a tile is small. It is two vectors
    wide if there are two, so that a cache line and its prefetched neighbour are both used.  A short
    row is one tile, whose conditions along it are decided when it is unrolled.  Sums take half of
    the registers; the others hold reads that neighbours share.

    block   rows that belong together, as for `row_sizes`
    """
    wide = min(columns, 2)
    vectors = target.vector_registers // 2
    if wide * rows <= vectors:
        return wide, rows, 1
    most = min(vectors // wide, _WINDOW_ROWS)
    sizes = [r for r in range(most // 2, most + 1) if is_aligned(r, block)]
    # the least work in tails; of those the longest tile
    best = min(sizes, key=lambda r: (-(-rows // r) * r, -r), default=0)
    return wide, best or divisors(block, most)[-1], 1
