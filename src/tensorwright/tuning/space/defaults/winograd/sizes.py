"""The sizes that Winograd's sketches leave open, and the usual ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from tensorwright.expr import Index
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.axes.accesses import bytes_of, count_of
from tensorwright.tuning.space.defaults.tile_sizes import default_tile
from tensorwright.tuning.space.defaults.winograd.axes import Case, Portion
from tensorwright.tuning.space.register_tile import accumulators
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors
from tensorwright.tuning.space.tile_limits import CPU_LIMITS

_MOST_BAND = 8
_MOST_MORE = 4
_BANDS = 8  # bands that balance well among threads


Size = TypeVar("Size", bound=Index)


@dataclass(frozen=True, slots=True)
class Sizes(Generic[Size]):
    """Decisions, or plain numbers if there is no choice.

    slices, band              of slices and of rows of tiles that are taken through all stages
    vectors, length           of a register tile: vectors of channels, tiles along a row
    more_slices, more_rows    of a register tile: slices, and rows of tiles
    """

    slices: Size
    band: Size
    vectors: Size
    length: Size
    more_slices: Size
    more_rows: Size


def choose_sizes(builder: SketchBuilder, case: Case) -> Sizes[Index]:
    """Open the decisions of a case whose product has been cached."""
    usual = _by_heuristic(builder.state, case)
    node = case.product
    slices, more_slices = _choose_slices(builder, case, usual)
    band, more_rows = _choose_rows(builder, case, usual)
    counts = tuple(n for n in (1, 2, 3, 4) if n <= case.vector_count)
    vectors = builder.choose("columns", counts, usual.vectors, node=node)
    lengths = (*divisors(case.tile_columns, CPU_LIMITS.rows), usual.length)
    length = builder.choose("rows", lengths, usual.length, node=node)
    builder.limit(vectors * length * more_slices * more_rows, accumulators(case.target))
    return Sizes(slices, band, vectors, length, more_slices, more_rows)


def _choose_slices(builder: SketchBuilder, case: Case, usual: Sizes[int]) -> tuple[Index, Index]:
    most = case.slice_count
    if case.portion is Portion.WHOLE:
        sizes = divisors(most, _MOST_MORE)
        return most, builder.choose("more_slices", sizes, usual.more_slices, node=case.product)
    pairs = [(n, more) for n in divisors(most, most) for more in divisors(n, _MOST_MORE)]
    default = (usual.slices, usual.more_slices)
    slices, more = builder.choose_rows(
        ("slices", "more_slices"), tuple(pairs), default, Kind.PARALLEL, case.product
    )
    return slices, more


def _choose_rows(builder: SketchBuilder, case: Case, usual: Sizes[int]) -> tuple[Index, Index]:
    most = case.tile_rows
    if case.portion is Portion.WHOLE:
        sizes = tuple(n for n in (1, 2, 3, 4, 5, 6, 7) if n <= most)
        return most, builder.choose("more_rows", sizes, usual.more_rows, node=case.product)
    pairs = [
        (band, more)
        for band in range(1, min(_MOST_BAND, most) + 1)
        for more in divisors(band, _MOST_MORE)
        if -(-most // band) * band - most <= 1
    ]
    default = (usual.band, usual.more_rows)
    band, more = builder.choose_rows(
        ("band", "more_rows"), tuple(pairs), default, Kind.PARALLEL, case.product
    )
    return band, more


def _by_heuristic(state: ScheduleState, case: Case) -> Sizes[int]:
    if case.portion is Portion.WHOLE:
        vectors, length, slices, rows = _whole_tile(case)
        return Sizes(case.slice_count, case.tile_rows, vectors, length, slices, rows)
    slices, band = _band_by_rule(state, case)
    if case.slice_count > 1:
        vectors, length, more = _tile(case, slices)
        return Sizes(slices, band, vectors, length, max(divisors(slices, more)), 1)
    vectors, length, _ = _tile(case, 1)
    more = 1 if band == 1 else _tile(case, band)[2]
    return Sizes(slices, band, vectors, length, 1, max(divisors(band, more)))


def _tile(case: Case, more: int) -> tuple[int, int, int]:
    return default_tile(case.vector_count, case.tile_columns, more, case.target)


def _whole_tile(case: Case) -> tuple[int, int, int, int]:
    """The register tile if stages are computed whole: vectors, length, slices, rows.

    All tiles at once if registers hold them: then each weight is read once.
    """
    area = case.tile_columns * case.tile_rows
    free = case.target.vector_registers - 4
    for slices in sorted(divisors(case.slice_count, _MOST_MORE), reverse=True):
        if area * slices <= free:
            vectors = min(free // (area * slices), 2, case.vector_count)
            return vectors, case.tile_columns, slices, case.tile_rows
    if case.slice_count > 1:
        vectors, length, more = _tile(case, case.slice_count)
        return vectors, length, max(divisors(case.slice_count, more)), 1
    vectors, length, more = _tile(case, case.tile_rows)
    return vectors, length, 1, more


def _band_by_rule(state: ScheduleState, case: Case) -> tuple[int, int]:
    """Slices and rows of tiles of a band.

    Weights that stay in the second cache allow bands of one row; others are read again for
    every band, which is then as high as that cache allows.  Slices share weights too.  Where the
    kernel goes over several, they also share their data's transform: then many in a band pay even
    if they take more than that cache, as long as there are enough bands for the threads.
    """
    name, l2_bytes = case.name, case.target.l2_bytes
    weights = weight_bytes(state, name)
    stages = (state.stage(f"{name}_{part}").tensor for part in ("columns", "product"))
    images = count_of(case.roles.batch)
    row_bytes = sum(map(bytes_of, stages)) // (images * case.slice_count * case.tile_rows)
    rows = l2_bytes // 2 // row_bytes
    is_small = weights <= l2_bytes // 2
    if is_small and not case.roles.is_sliding:
        return 1, 1
    most = 4 * rows if case.roles.is_sliding else rows
    enough = [n for n in divisors(case.slice_count, max(1, most)) if _bands(case, n) >= _BANDS]
    slices = max(enough, default=1)
    if is_small or slices > 1:
        return slices, 1
    return slices, max(1, min(_MOST_BAND, case.tile_rows // 2, rows))


def weight_bytes(state: ScheduleState, name: str) -> int:
    """The bytes of the transformed kernel of a convolution."""
    return bytes_of(next(each for each in state.inputs if each.name == f"{name}_kernel"))


def _bands(case: Case, slices: int) -> int:
    """The number of bands of one row of tiles."""
    return case.tile_rows * case.slice_count // slices
