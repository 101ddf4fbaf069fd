"""The axes of a stage that is tiled: what each is for, and the sizes of its tiles."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from tensorwright.base import Target
from tensorwright.expr import Axis, FloorDiv, Load, Mod, free_vars, loads_of, terms_of
from tensorwright.schedule import ScheduleState, Tail
from tensorwright.tuning.space.axes.roles import (
    Operand,
    extent_of,
    operands,
    reads_along,
    stride_along,
)
from tensorwright.tuning.space.axes.steps import lanes_for
from tensorwright.tuning.space.axes.tile_sizes import default_tile
from tensorwright.tuning.space.sketch import divisors, factorisations

LEVELS = 3  # tiles inside each other, the outermost loop aside
MOST_INNERMOST = 64  # elements of the innermost tile along one axis
_MOST_ROWS = 28  # of them along an axis without vectors
_AWKWARD = 4  # an extent whose largest tile is smaller gets tiles that do not divide it
_WASTE = 0.15  # of what such tiles compute, so much may be for nothing
_LONG = 64  # the larger tiles of longer awkward axes are powers of two: there would be too many
_LANES_WASTE = 0.25
_ACROSS = 16.0  # the cost of gathering a vector, where a contiguous read costs one


class Part(Enum):
    """What an axis is for in a register tile."""

    BATCH = "batch"  # every operand moves along it, or three others are tiled: no tiles
    ROWS = "rows"  # the operand of the lanes is used again along it
    COLUMNS = "columns"  # more vectors
    LANES = "lanes"  # the vectors lie along it


@dataclass(frozen=True, slots=True)
class TileAxis:
    """An axis of the stage that stores, and the sizes of its tiles (outermost first).

    own    the name of the axis in the stage that computes
    """

    name: str
    own: str
    part: Part
    sizes: tuple[tuple[int, ...], ...]
    default: tuple[int, ...]
    tail: Tail

    @property
    def is_tiled(self) -> bool:
        """Whether there are loops over tiles."""
        return bool(self.sizes)


def plan_axes(
    state: ScheduleState, stage: str, host: str, target: Target
) -> tuple[TileAxis, ...] | None:
    """The axes of `host` of more than one element, in its order; None where no vectors fit.

    Axes of `stage` are found by what `host` reads it with. Tiles that do not divide are guarded, or
    shifted where there is but one size and nothing is folded in memory: of open sizes nobody knows
    that they are smaller than the extent.
    """
    found = operands(state, state.stage(stage), state.stage(host))
    axes = [axis for axis in state.stage(host).tensor.axes if extent_of(axis.extent) > 1]
    width = lanes_for(target, state.stage(stage))
    lanes = find_lanes(axes, found, width)
    if lanes is None:
        return None
    parts = _parts(axes, lanes, found, width)
    wanted = _default_sizes(axes, parts, width, target)
    own = _own_names(state, stage, host)
    planned: list[TileAxis] = []
    for axis in axes:
        part = parts[axis.name]
        extent = extent_of(axis.extent)
        sizes: tuple[tuple[int, ...], ...] = ()
        if part is Part.LANES and extent > width:
            sizes = lane_sizes(period_of(found, axis) or extent, width)
        elif part in (Part.ROWS, Part.COLUMNS):
            sizes = row_sizes(extent, period_of(found, axis))
        default = _nearest(sizes, wanted.get(axis.name, 1))
        tail = Tail.SHIFT if stage != host and len(sizes) == 1 else Tail.GUARD
        if all(extent % (a * b * c) == 0 for a, b, c in sizes):
            tail = Tail.EXACT
        planned.append(TileAxis(axis.name, own[axis.name], part, sizes, default, tail))
    return tuple(planned)


def can_be_tiled(state: ScheduleState, stage: str, target: Target) -> bool:
    """Whether a stage has an axis for vectors."""
    return plan_axes(state, stage, stage, target) is not None


def find_lanes(axes: list[Axis], found: tuple[Operand, ...], width: int) -> Axis | None:
    """The axis with the cheapest vectors; None where each is read across rows.

    A read across rows costs much, since it is in the inner loop; a store across rows costs little.
    """

    def cost(axis: Axis) -> tuple[float, int]:
        total = 0.0 if axis is axes[-1] else 4.0
        strides = [stride_in_vector(operand.load, axis, width) for operand in found]
        for operand, stride in zip(found, strides, strict=True):
            if not operand.is_constant and stride not in (0, 1):
                total += _ACROSS
        if all(stride == 0 for stride in strides):
            total += 8.0
        extent = extent_of(axis.extent)
        return total + 4.0 / extent, -extent

    best = min(axes, key=cost, default=None)
    return best if best is not None and cost(best)[0] < _ACROSS else None


def stride_in_vector(load: Load, axis: Axis, width: int) -> int | None:
    """As `stride_along`, for neighbours in a vector of so many elements that does not straddle the
    blocks of axis // block: the channels of a group read the same.
    """
    block = _period([load], axis)
    if not block or block % width:
        return stride_along(load, axis.var)
    stride = 0
    step = 1
    for index, extent in zip(reversed(load.indices), reversed(load.source.shape), strict=True):
        for monomial, coefficient in terms_of(index):
            if monomial == (axis.var,) or monomial == (Mod(axis.var, block),):
                stride += coefficient * step
            elif axis.var in free_vars(*monomial) and monomial != (FloorDiv(axis.var, block),):
                return None
        step *= extent_of(extent)
    return stride


_MOST_TILED = 4  # axes, the lanes among them


def _parts(
    axes: list[Axis], lanes: Axis, found: tuple[Operand, ...], width: int
) -> dict[str, Part]:
    shared = [stride_in_vector(operand.load, lanes, width) == 0 for operand in found]
    wide = [operand.load for operand, same in zip(found, shared, strict=True) if not same]
    narrow = [operand.load for operand, same in zip(found, shared, strict=True) if same]
    parts = {axis.name: Part.BATCH for axis in axes}
    for axis in axes:
        by_wide = any(reads_along(load, axis.var) for load in wide)
        if narrow and by_wide and not any(reads_along(load, axis.var) for load in narrow):
            parts[axis.name] = Part.COLUMNS
        elif not all(reads_along(load, axis.var) for load in wide):
            parts[axis.name] = Part.ROWS
    parts[lanes.name] = Part.LANES
    # the columns share what is read along the rows: they matter more than a third axis of rows
    tiled = [a.name for part in (Part.ROWS, Part.COLUMNS) for a in axes if parts[a.name] is part]
    for name in tiled[: max(0, len(tiled) - (_MOST_TILED - 1))]:
        parts[name] = Part.BATCH
    return parts


def _default_sizes(
    axes: list[Axis], parts: dict[str, Part], width: int, target: Target
) -> dict[str, int]:
    """The register tile chosen by rule: how many elements along each axis."""
    by_part = {p: [axis for axis in axes if parts[axis.name] is p] for p in Part}
    (lanes,) = by_part[Part.LANES]
    vectors = extent_of(lanes.extent) // width
    columns = by_part[Part.COLUMNS][-1] if vectors < 2 and by_part[Part.COLUMNS] else None
    rows = [extent_of(axis.extent) for axis in reversed(by_part[Part.ROWS])][:2]
    tile = default_tile(
        max(1, vectors if columns is None else extent_of(columns.extent)),
        rows[0] if rows else 1,
        rows[1] if len(rows) > 1 else 1,
        target,
    )
    sizes = {lanes.name: width * tile[0] if columns is None else width}
    if columns is not None:
        sizes[columns.name] = tile[0]
    for axis, size in zip(reversed(by_part[Part.ROWS]), tile[1:], strict=False):
        sizes[axis.name] = size
    return sizes


def _nearest(sizes: tuple[tuple[int, ...], ...], wanted: int) -> tuple[int, ...]:
    """The sizes with one register tile of at most so many elements in each larger tile."""
    single = [row for row in sizes if row[:-1] == (1,) * (LEVELS - 1)]
    fitting = [row for row in single if row[-1] <= wanted]
    return max(fitting, default=min(single, default=()))


def _own_names(state: ScheduleState, stage: str, host: str) -> dict[str, str]:
    """The axis of `stage` for each axis of `host`."""
    if stage == host:
        return {axis.name: axis.name for axis in state.stage(host).tensor.axes}
    link = next(x for x in loads_of(state.stage(host).tensor.body) if x.source.name == stage)
    found: dict[str, str] = {}
    for axis, index in zip(state.stage(stage).tensor.axes, link.indices, strict=True):
        for var in free_vars(index):
            found[var.name] = axis.name
    return found


@lru_cache(maxsize=1024)
def lane_sizes(extent: int, width: int) -> tuple[tuple[int, ...], ...]:
    """Tiles along the lanes: the innermost is a multiple of `width`.

    Exact where `width` divides the extent; else larger ones waste at most a quarter.
    """
    found: list[tuple[int, ...]] = []
    for innermost in range(width, max(MOST_INNERMOST, width) + 1, width):
        count = extent // innermost
        for pair in factorisations(count, 2, count, _LANES_WASTE) if count else ():
            whole = innermost * pair[0] * pair[1]
            rest = -extent % whole
            is_small = rest <= _LANES_WASTE * extent or pair == (1, 1)
            if rest == 0 or (extent % width and whole <= extent and is_small):
                found.append((*pair, innermost))
    return tuple(sorted(found))


@lru_cache(maxsize=1024)
def row_sizes(extent: int, period: int = 0) -> tuple[tuple[int, ...], ...]:
    """Tiles along other axes: exact, or wasting little where an extent has few divisors.

    period   so many neighbours belong together (the channels of a group): tiles stay inside; 0: all
    """
    if period:
        extent = period
    largest = divisors(extent, _MOST_ROWS)[-1]
    if period or largest >= min(_AWKWARD, extent):
        return _exact(extent, LEVELS, _MOST_ROWS)
    if extent <= _LONG:
        return factorisations(extent, LEVELS, _MOST_ROWS, _WASTE)
    return _covering(extent)


def _exact(extent: int, levels: int, innermost: int) -> tuple[tuple[int, ...], ...]:
    """As `factorisations` without waste, fast for large extents."""
    if levels == 0:
        return ((),)
    whole = divisors(extent, min(extent, innermost))
    rows = [
        (*row, last) for last in whole for row in _exact(extent // last, levels - 1, extent // last)
    ]
    return tuple(sorted(rows))


def _covering(extent: int) -> tuple[tuple[int, ...], ...]:
    """Tiles that waste little of a long axis, the larger ones powers of two times smaller ones."""
    powers = [1 << n for n in range(extent.bit_length())]
    found: list[tuple[int, ...]] = []
    for innermost in range(1, _MOST_ROWS + 1):
        for middle in powers:
            for outer in powers:
                whole = innermost * middle * outer
                if whole <= extent and -extent % whole <= _WASTE * extent:
                    found.append((outer, middle, innermost))
    return tuple(sorted(found))


def period_of(found: tuple[Operand, ...], axis: Axis) -> int:
    """How many neighbours along an axis read the same block: k in x[.. axis // k ..]; 0 if none."""
    return _period([operand.load for operand in found], axis)


def block_of(state: ScheduleState, stage: str, axis: Axis) -> int:
    """The block of a blocked layout that a reduction axis runs through; 0 if none."""
    return _period(list(loads_of(state.stage(stage).tensor.body)), axis)


def _period(loads: list[Load], axis: Axis) -> int:
    for load in loads:
        for index in load.indices:
            for monomial, _ in terms_of(index):
                for atom in monomial:
                    is_block = isinstance(atom, (FloorDiv, Mod)) and atom.dividend == axis.var
                    if is_block and isinstance(atom, (FloorDiv, Mod)):
                        divisor = atom.divisor
                        if isinstance(divisor, int) and extent_of(axis.extent) % divisor == 0:
                            return divisor
    return 0
