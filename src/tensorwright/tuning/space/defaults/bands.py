"""Bands of rows of tiles: their number, and what is computed again in each.

A thread computes all channels of a band, and before them the stages that feed it: so most of its
reads are in its own cache.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from tensorwright.expr import Axis, Compute, Index, Load, free_vars, loads_of, terms_of
from tensorwright.tuning.space.axes.accesses import (
    extent_of,
    points,
    reads_along,
    stride_along,
)
from tensorwright.tuning.space.axes.anchor import Anchor
from tensorwright.tuning.space.axes.roles import AxisRoles
from tensorwright.tuning.space.sketch import divisors
from tensorwright.tuning.space.steps import is_cheap

MOST_BAND_ROWS = 14
SHORT_ROWS = 8  # where bands are all that the threads share out
FEWEST_BANDS = 6

ENOUGH_PIECES = 16  # of work, where what feeds a piece is worth not doing again

_EXPENSIVE = 8  # multiply-adds that take as long as an expensive element
_ACROSS = 2  # as long as one that is read across its rows
_GATHERED = 32  # as long as one whose position is computed, with divisions
_FEW_AGAIN = 4  # times what is computed again may be all that a product takes
_VECTORS_PER_COPY = 120  # multiply-adds of vectors that take 20 times as long as to copy a vector
_LEAST_AGAIN = 1.5
_ENOUGH_BANDS = 8  # pieces that keep the threads busy, if a band costs nothing


def tiles_of_band(extent: int, size: int, most_rows: int, fewest: int) -> int:
    """The number of tiles of `size` rows in a band, so that there are enough bands."""
    usual = max(1, round(extent / max(1, round(extent / most_rows)) / size))
    short = max(1, extent // fewest // size)
    if short < usual:
        return max(divisors(-(-extent // size), short))
    return usual


def enough_bands(axes: Sequence[Axis], roles: AxisRoles) -> int:
    """The number of bands that keeps the threads busy, with the loops fused with theirs."""
    taken = {axis.name for axis in (roles.lanes, roles.row, roles.second_row) if axis is not None}
    around = prod(axis.length for axis in axes if axis.name not in taken)
    return -(-_ENOUGH_BANDS // max(1, around))


def is_fed_again(
    anchor: Anchor,
    tiles: Sequence[tuple[Axis, int]],
    feeding: Collection[str],
) -> bool:
    """Whether much of what feeds the product would be computed again in some loops over tiles.

    In each loop along which the product's inputs do not differ, all of them are computed again;
    otherwise the part that windows share.  That is much if the rows of a tile are output channels
    and their inputs take long, and if windows reach far beyond a tile, as with dilations.

    tiles   the axes of these loops, and the number of tiles along each
    """
    again = 0.0
    for load in (operand.load for operand in anchor.operands):
        if load.source.name not in feeding:
            continue
        tensor = anchor.state.stage(load.source.name).tensor
        times = prod(count for axis, count in tiles if not reads_along(load, axis.var))
        overlap = _overlap(anchor, load, tiles)
        again += (times * overlap - 1) * points(tensor) * _cost(tensor)
    return _FEW_AGAIN * again > points(anchor.tensor)


def copies_much(anchor: Anchor, feeding: frozenset[str], axis: Axis, rows: int, width: int) -> bool:
    """Whether stages that feed a product are expensive if they are computed for a few rows at once.

    Windows that overlap copy the rows that they share again: a window of 7 rows that moves by 2
    copies all 3.5 times.  That matters if a copy serves few products, or fills few lanes.

    rows   of the axis that are computed at once     width   lanes of a vector
    """
    copied = 0
    for operand in anchor.operands:
        shape = [extent_of(extent) for extent in operand.load.source.shape]
        along = [n for n, i in enumerate(operand.load.indices) if axis.var in free_vars(i)]
        if operand.load.source.name not in feeding or len(along) != 1:
            continue
        window = _window(anchor, operand.load.indices[along[0]], axis, rows)
        total = window * -(-axis.length // rows)
        if total > _LEAST_AGAIN * shape[along[0]]:
            lines = prod(shape[:-1]) // shape[along[0]]
            copied += total * lines * -(-shape[-1] // width)
    return copied * _VECTORS_PER_COPY * width > points(anchor.tensor)


def _window(anchor: Anchor, index: Index, axis: Axis, size: int) -> int:
    """How many neighbours windows at some positions along an axis read with an index."""
    steps = dict(terms_of(index))
    taps = anchor.tensor.reduce_axes
    reach = sum(abs(steps.get((tap.var,), 0)) * (tap.length - 1) for tap in taps)
    return reach + 1 + (size - 1) * abs(steps.get((axis.var,), 0))


def _overlap(anchor: Anchor, load: Load, tiles: Sequence[tuple[Axis, int]]) -> float:
    """How often an element is computed if each tile computes all that its windows read."""
    times = 1.0
    for index, extent in zip(load.indices, map(extent_of, load.source.shape), strict=True):
        moving = [(axis, count) for axis, count in tiles if axis.var in free_vars(index)]
        if len(moving) != 1 or _window(anchor, index, moving[0][0], 1) == 1:
            continue
        ((axis, count),) = moving
        window = _window(anchor, index, axis, -(-axis.length // max(1, count)))
        times *= max(1.0, count * min(window, extent) / max(1, extent))
    return times


def _cost(feeding: Compute) -> int:
    """The number of multiply-adds that take as long as an element of a feeding stage."""
    if not is_cheap(feeding.body):
        return _EXPENSIVE
    loads = loads_of(feeding.body) if feeding.axes else ()
    strides = {stride_along(load, feeding.axes[-1].var) for load in loads}
    if None in strides:
        return _GATHERED
    return 1 if strides <= {0, 1} else _ACROSS
