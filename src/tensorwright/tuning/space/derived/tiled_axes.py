"""The axes of a stage that is tiled: what each is for, and the sizes of its tiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tensorwright.base import CpuTarget
from tensorwright.expr import Axis, Index, Load
from tensorwright.schedule import ScheduleState, Tail
from tensorwright.tuning.space.accesses import lanes_for, period_along, stride_in_vector
from tensorwright.tuning.space.defaults.tile_sizes import default_tile, leaves_masked_rest
from tensorwright.tuning.space.register_tile import (
    CPU_LIMITS,
    limits_of,
    running_loops,
    tile_registers,
)
from tensorwright.tuning.space.roles import Anchor, AxisRoles, Operand, Role, find_lanes, most_rows
from tensorwright.tuning.space.sketch import SketchBuilder, divisors, factorisations

LEVELS = 3  # tiles inside each other, the outermost loop aside
_FEW_DIVISORS = 4  # an extent whose largest tile is smaller gets tiles that do not divide it
_WASTE = 0.15  # the share of such tiles that may be wasted
_LONG = 64  # the larger tiles of longer such axes are powers of two: there would be too many
_LANES_WASTE = 0.25
_SHORT = 4.0  # the cost of an axis of one element; longer ones cost less


@dataclass(frozen=True, slots=True)
class TileAxis:
    """An axis of the stage that stores, and the sizes of its tiles (outermost first).

    own    the name of the axis in the stage that computes
    """

    name: str
    own: str
    role: Role
    sizes: tuple[tuple[int, ...], ...]
    default: tuple[int, ...]
    tail: Tail

    @property
    def is_tiled(self) -> bool:
        """Whether there are loops over tiles."""
        return bool(self.sizes)


@lru_cache(maxsize=64)  # generators ask for it, and derive by it
def plan_axes(
    state: ScheduleState, stage: str, host: str, target: CpuTarget
) -> tuple[TileAxis, ...] | None:
    """The axes of `host` of more than one element, in its order; None if no vectors fit.

    None, too, if a sum is one of the sums beside it and an element more: tiles would part them.

    The indices with which `host` reads `stage` name the axes of `stage`. Tiles that do not divide
    are guarded. They are shifted if there is only one size and nothing is folded in memory, because
    open sizes may be larger than the extent; those of the lanes, if vectors leave a rest.
    """
    anchor = Anchor(state, stage, host)
    operands = anchor.operands
    axes = [axis for axis in anchor.axes if axis.length > 1]
    width = lanes_for(target, state.stage(stage))
    limits = limits_of(target)
    lanes = find_lanes(
        axes,
        operands,
        lambda load, axis: stride_in_vector(load, axis, width),
        width,
        _SHORT,
    )
    if lanes is None or running_loops(state.stage(stage)):
        return None
    roles = _roles_by_name(axes, lanes, operands, width)
    by_rows = (axis for axis in axes if roles[axis.name] is Role.ROWS)
    most = {axis.name: most_rows(anchor, axis, target) for axis in by_rows}
    wanted = _default_sizes(axes, roles, width, target, most)
    own = anchor.own_axes
    planned: list[TileAxis] = []
    for axis in axes:
        role = roles[axis.name]
        extent = axis.length
        period = period_along((operand.load for operand in operands), axis)
        sizes: tuple[tuple[int, ...], ...] = ()
        if role is Role.LANES and extent > width:
            sizes = lane_tiles(period or extent, width, limits.innermost)
        elif role in (Role.ROWS, Role.COLUMNS):
            sizes = row_tiles(extent, period, limits.rows)
            held = most.get(axis.name) or extent
            sizes = tuple(row for row in sizes if row[-1] <= held) or sizes
        single = [row for row in sizes if row[:-1] == (1,) * (LEVELS - 1)]
        fitting = [row for row in single if row[-1] <= wanted.get(axis.name, 1)]
        default = max(fitting, default=min(single, default=()))
        is_sure = len(sizes) == 1 or (role is Role.LANES and leaves_masked_rest(extent, width))
        tail = Tail.SHIFT if stage != host and is_sure else Tail.GUARD
        if all(extent % (a * b * c) == 0 for a, b, c in sizes):
            tail = Tail.EXACT
        planned.append(TileAxis(axis.name, own[axis.name][-1], role, sizes, default, tail))
    return tuple(planned)


def limit_registers(
    builder: SketchBuilder,
    target: CpuTarget,
    axes: Iterable[TileAxis],
    sizes: Mapping[str, tuple[Index, ...]],
    width: int,
) -> None:
    """Keep the register tile, counted in vectors, so small that operands have registers too."""
    tiled = [axis for axis in axes if axis.is_tiled]
    is_wide = any(axis.role is Role.LANES for axis in tiled)
    across = (Role.LANES, Role.COLUMNS)
    columns = [sizes[axis.name][-1] for axis in tiled if axis.role in across]
    held = width if is_wide else 1
    rows = [sizes[axis.name][-1] for axis in tiled if axis.role not in across]
    amount: Index = prod(row[-1] for row in sizes.values())
    if columns:
        amount += prod(columns)
    if rows and target.multiplies_by_lane:
        amount += prod(rows) * held
    builder.limit(amount, tile_registers(target) * held)


_MOST_TILED = 4  # axes, the lanes among them


def _roles_by_name(
    axes: list[Axis], lanes: Axis, operands: tuple[Operand, ...], width: int
) -> dict[str, Role]:
    wide: list[Load] = []
    narrow: list[Load] = []
    for load in (operand.load for operand in operands):
        (narrow if stride_in_vector(load, lanes, width) == 0 else wide).append(load)
    roles = AxisRoles.among(axes, lanes, wide, narrow)
    by_name = {axis.name: Role.BATCH for axis in axes} | {lanes.name: Role.LANES}
    # the columns share what is read along the rows: they matter more than a third axis of rows
    tiled = [(axis, Role.ROWS) for axis in roles.rows]
    tiled += [(axis, Role.COLUMNS) for axis in roles.columns]
    return by_name | {axis.name: role for axis, role in tiled[-(_MOST_TILED - 1) :]}


def _default_sizes(
    axes: list[Axis],
    roles: dict[str, Role],
    width: int,
    target: CpuTarget,
    most: Mapping[str, int | None],
) -> dict[str, int]:
    """The register tile chosen by rule: how many elements along each axis.

    most   rows along an axis that the first cache holds; None: any number
    """
    by_role = {role: [a for a in axes if roles[a.name] is role] for role in Role}
    (lanes,) = by_role[Role.LANES]
    vectors = lanes.length // width
    columns = by_role[Role.COLUMNS][-1] if vectors < 2 and by_role[Role.COLUMNS] else None
    rows = [axis.length for axis in reversed(by_role[Role.ROWS])][:2]
    any_rows = limits_of(target).rows
    held = [most.get(axis.name) or any_rows for axis in reversed(by_role[Role.ROWS])][:2]
    if len(held) == 2 and held[1] < any_rows:  # rows in the same cache sets
        held[1] = max(1, held[1] // min(held[0], rows[0]))
    tile = default_tile(
        max(1, vectors if columns is None else columns.length),
        rows[0] if rows else 1,
        rows[1] if len(rows) > 1 else 1,
        target,
        most_rows=(held[0] if held else 1, held[1] if len(held) > 1 else 1),
    )
    sizes = {lanes.name: width * tile[0] if columns is None else width}
    if columns is not None:
        sizes[columns.name] = tile[0]
    for axis, size in zip(reversed(by_role[Role.ROWS]), tile[1:], strict=False):
        sizes[axis.name] = size
    return sizes


@lru_cache(maxsize=1024)
def lane_tiles(
    extent: int, width: int, most: int = CPU_LIMITS.innermost
) -> tuple[tuple[int, ...], ...]:
    """Tiles along the lanes: the innermost is a multiple of `width`, up to `most` or one vector.

    Exact where `width` divides the extent; else larger ones waste at most a quarter.
    """
    tiles: list[tuple[int, ...]] = []
    for innermost in range(width, max(most, width) + 1, width):
        count = extent // innermost
        for pair in factorisations(count, 2, count, _LANES_WASTE) if count else ():
            whole = innermost * pair[0] * pair[1]
            rest = -extent % whole
            is_small = rest <= _LANES_WASTE * extent or pair == (1, 1)
            if rest == 0 or (extent % width and whole <= extent and is_small):
                tiles.append((*pair, innermost))
    return tuple(sorted(tiles))


@lru_cache(maxsize=1024)
def row_tiles(
    extent: int, period: int = 0, most: int = CPU_LIMITS.rows
) -> tuple[tuple[int, ...], ...]:
    """Tiles along other axes: exact, or wasting little where an extent has few divisors.

    period   neighbours that belong together (the channels of a group): tiles stay inside; 0: all
    most     of the innermost
    """
    if period:
        extent = period
    largest = divisors(extent, most)[-1]
    if period or largest >= min(_FEW_DIVISORS, extent):
        return _exact(extent, LEVELS, most)
    if extent <= _LONG:
        return factorisations(extent, LEVELS, most, _WASTE)
    return _covering(extent, most)


def _exact(extent: int, levels: int, innermost: int) -> tuple[tuple[int, ...], ...]:
    """As `factorisations` without waste, fast for large extents."""
    if levels == 0:
        return ((),)
    whole = divisors(extent, min(extent, innermost))
    rows = [
        (*row, last) for last in whole for row in _exact(extent // last, levels - 1, extent // last)
    ]
    return tuple(sorted(rows))


def _covering(extent: int, most: int) -> tuple[tuple[int, ...], ...]:
    """Tiles that waste little of a long axis, the larger ones powers of two times smaller ones."""
    powers = [1 << n for n in range(extent.bit_length())]
    tiles: list[tuple[int, ...]] = []
    for innermost in range(1, most + 1):
        for middle in powers:
            for outer in powers:
                whole = innermost * middle * outer
                if whole <= extent and -extent % whole <= _WASTE * extent:
                    tiles.append((outer, middle, innermost))
    return tuple(sorted(tiles))
