"""Sizes of tiles for graphics processors: threads along an axis, and elements of each thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tensorwright.base import GpuTarget
from tensorwright.expr import Axis, Compute, Load, free_vars, loads_of
from tensorwright.tuning.space.axes.accesses import loads_from
from tensorwright.tuning.space.sketch import divisors
from tensorwright.tuning.space.tile_limits import limits_of

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


def plan_threads(tensor: Compute, host: Compute, target: GpuTarget) -> tuple[ThreadAxis, ...]:
    """The axes of a fold as its reader stores them, in the reader's order.

    Empty if tiling does not pay or sizes are open. It pays if two operands are read, and neither
    depends on all axes, so that threads which fetch together fetch less.
    """
    axes = [axis for axis in tensor.axes if axis.extent != 1]
    loads = list(dict.fromkeys(loads_of(tensor.body)))
    everything = (*tensor.axes, *tensor.reduce_axes)
    if not axes or not all(isinstance(axis.extent, int) for axis in everything):
        return ()
    shared = [axes_of(load, axes) for load in loads]
    if len({load.source for load in loads}) < 2 or any(len(each) == len(axes) for each in shared):
        return ()
    by_axis = {
        axis.name: tuple(n for n, each in enumerate(shared) if axis in each) for axis in axes
    }
    groups: dict[tuple[int, ...], list[Axis]] = {}
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


def stored_axes(tensor: Compute, host: Compute) -> tuple[tuple[str, str], ...]:
    """The axes of the reader with those of the fold that they are."""
    if tensor.name == host.name:
        return tuple((axis.name, axis.name) for axis in tensor.axes)
    (link,) = {*loads_from(host, tensor.name)}
    own = {index: axis.name for index, axis in zip(link.indices, tensor.axes, strict=True)}
    return tuple((axis.name, own[axis.var]) for axis in host.axes if axis.var in own)


def axes_of(load: Load, axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes that a load moves along."""
    variables = free_vars(*load.indices)
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


def _default(axes: list[Axis], groups: list[list[Axis]], target: GpuTarget) -> dict[str, Row]:
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


def _share(group: list[Axis], threads: int, elements: int) -> dict[str, Row]:
    """Divide threads and elements among axes along which one operand is read, the last first."""
    rows_by_axis: dict[str, Row] = {}
    for axis in reversed(group):
        rows = [
            row
            for row in thread_rows(axis.length, elements)
            if row[0] <= threads and row[1] <= elements
        ]
        row = max(rows, key=lambda each: (_useful(axis.length, each), each[0]), default=(1, 1))
        rows_by_axis[axis.name] = row
        threads, elements = max(1, threads // row[0]), max(1, elements // row[1])
    return rows_by_axis


def _useful(extent: int, row: Row) -> float:
    """How many elements of a tile lie inside the axis, on average."""
    return extent / -(-extent // prod(row))


@lru_cache(maxsize=1024)
def fold_sizes(extent: int, most: int) -> tuple[int, ...]:
    """How many terms along an axis are fetched at once: divisors, or powers of two with a rest."""
    exact = divisors(extent, most)
    if exact[-1] >= min(4, extent):
        return exact
    powers = [1 << n for n in range(most.bit_length()) if 1 << n <= extent]
    return tuple(n for n in powers if -extent % n <= _WASTE * extent)


def default_folds(axes: Iterable[Axis], most: int) -> dict[str, int]:
    """The terms along each axis that are fetched at once by rule, the last axis first."""
    left, terms = _TERMS, {}
    for axis in reversed(tuple(axes)):
        size = max(n for n in fold_sizes(axis.length, most) if n <= max(1, left))
        terms[axis.name] = size
        left //= size
    return terms
