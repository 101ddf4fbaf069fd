"""Bands of rows of tiles: how many there are, and what is computed again in each.

A thread computes a band, all channels of it, and what feeds the band before: so it mostly finds in
its own cache what it reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from tensorwright.expr import Axis, Compute, Load, Var, free_vars, loads_of, terms_of
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

MOST_ROWS = 14  # of a band
SHORT_ROWS = 8  # where bands are all that the threads share out
FEWEST_BANDS = 6

ENOUGH_PIECES = 16  # of work, where what feeds a piece is worth not doing again

_EXPENSIVE = 8  # so many multiply-adds take as long as an element of what is not cheap
_ACROSS = 2  # and so many as one that is read across its rows
_GATHERED = 32  # and so many as one whose place is computed, with divisions
_FEW_AGAIN = 4  # times what is computed again may be all that a product takes
_ENOUGH_BANDS = 8  # so many pieces keep the threads busy, where a band costs nothing


def tiles_of_band(extent: int, size: int, most_rows: int, fewest: int) -> int:
    """How many tiles of `size` rows make a band, so that there are some bands at least."""
    usual = max(1, round(extent / max(1, round(extent / most_rows)) / size))
    short = max(1, extent // fewest // size)
    if short < usual:
        return max(divisors(-(-extent // size), short))
    return usual


def enough_bands(axes: Sequence[Axis], roles: AxisRoles) -> int:
    """So many bands keep the threads busy, with the loops that are fused with that over bands."""
    taken = {axis.name for axis in (roles.lanes, roles.row, roles.second_row) if axis is not None}
    around = prod(axis.length for axis in axes if axis.name not in taken)
    return -(-_ENOUGH_BANDS // max(1, around))


def is_fed_again(
    anchor: Anchor,
    tiles: Sequence[tuple[Axis, int]],
    feeding: Collection[str],
) -> bool:
    """Whether much of what feeds the product would be computed in many iterations of some loops
    over tiles: all of it in each along which nothing of it differs, and what windows share.

    So it is where the rows of a tile are output channels and what feeds them takes long, and where
    windows reach far beyond a tile, as with dilations.
    tiles   the axes of these loops, and how many tiles lie along each
    """
    again = 0.0
    for load in (operand.load for operand in anchor.operands):
        if load.source.name not in feeding:
            continue
        tensor = anchor.state.stage(load.source.name).tensor
        times = prod(count for axis, count in tiles if not reads_along(load, axis.var))
        taps = {axis.var: axis.length for axis in anchor.tensor.reduce_axes}
        overlap = _overlap(load, tiles, taps)
        again += (times * overlap - 1) * points(tensor) * _cost(tensor)
    return _FEW_AGAIN * again > points(anchor.tensor)


def _overlap(load: Load, tiles: Sequence[tuple[Axis, int]], taps: Mapping[Var, int]) -> float:
    """How often an element is computed where each tile computes all that its windows read."""
    times = 1.0
    for index, extent in zip(load.indices, map(extent_of, load.source.shape), strict=True):
        steps = dict(terms_of(index))
        moving = [(axis, count) for axis, count in tiles if axis.var in free_vars(index)]
        reach = sum(abs(steps.get((tap,), 0)) * (many - 1) for tap, many in taps.items())
        if len(moving) != 1 or not reach:
            continue
        ((axis, count),) = moving
        size = -(-axis.length // max(1, count))
        window = reach + 1 + (size - 1) * abs(steps.get((axis.var,), 0))
        times *= max(1.0, count * min(window, extent) / max(1, extent))
    return times


def _cost(feeding: Compute) -> int:
    """How many multiply-adds take as long as an element of what feeds a product."""
    if not is_cheap(feeding.body):
        return _EXPENSIVE
    loads = loads_of(feeding.body) if feeding.axes else ()
    strides = {stride_along(load, feeding.axes[-1].var) for load in loads}
    if None in strides:
        return _GATHERED
    return 1 if strides <= {0, 1} else _ACROSS
