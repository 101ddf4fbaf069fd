"""The role of each axis of a stored result in its reduction: lanes, columns, rows, batch.

One analysis for the register tiles of the heuristics, the derived sketches and Winograd's
stages: it follows from which operands move along which axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from tensorwright.base import CpuTarget
from tensorwright.expr import Axis, Load, loads_of
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.axes.accesses import (
    bytes_of,
    count_of,
    group_size,
    has_reuse,
    lanes_for,
    reads_along,
    stride_in_vector,
    vector_within,
)
from tensorwright.tuning.space.axes.anchor import Anchor, Operand, common_group


class Role(Enum):
    """The role of an axis in a register tile, from the outermost loop of a tile inwards."""

    BATCH = "batch"  # every operand moves along it
    ROWS = "rows"  # the operand of the lanes is used again along it
    COLUMNS = "columns"  # more vectors
    LANES = "lanes"  # the vectors lie along it


@dataclass(frozen=True, slots=True)
class AxisRoles:
    """The axes of a stage by what they are, each group in the order of the stage.

    group        the neighbouring rows that share the vector operand; 0: all
    lanes_group  the neighbouring lanes that share the other operands; 0: all
    lanes_block  the neighbouring lanes that are neighbours in the reduction; 0: all
    """

    lanes: Axis
    columns: tuple[Axis, ...] = ()
    rows: tuple[Axis, ...] = ()
    batch: tuple[Axis, ...] = ()
    group: int = 0
    lanes_group: int = 0
    lanes_block: int = 0

    @classmethod
    def among(
        cls, axes: Sequence[Axis], lanes: Axis, wide: Sequence[Load], narrow: Sequence[Load]
    ) -> AxisRoles:
        """The roles of some axes: `wide` operands move along the lanes, `narrow` ones do not."""
        by_role: dict[Role, list[Axis]] = {role: [] for role in Role}
        for axis in axes:
            by_wide = any(reads_along(load, axis.var) for load in wide)
            by_narrow = any(reads_along(load, axis.var) for load in narrow)
            role = Role.BATCH
            if axis is lanes:
                role = Role.LANES
            elif narrow and by_wide and not by_narrow:
                role = Role.COLUMNS
            elif not all(reads_along(load, axis.var) for load in wide):
                role = Role.ROWS
            by_role[role].append(axis)
        axes_of = {role: tuple(own) for role, own in by_role.items()}
        return cls(lanes, axes_of[Role.COLUMNS], axes_of[Role.ROWS], axes_of[Role.BATCH])

    @property
    def column(self) -> Axis | None:
        """The innermost axis of columns; the lanes' own axis, split, may have columns too."""
        return self.columns[-1] if self.columns else None

    @property
    def row(self) -> Axis | None:
        """The innermost axis of rows."""
        return self.rows[-1] if self.rows else None

    @property
    def second_row(self) -> Axis | None:
        """The axis of rows around it; further ones have one element in a tile."""
        return self.rows[-2] if len(self.rows) > 1 else None


_FEW_ROWS = 6  # fewer rows do not hide the load of a vector


def is_scattered(anchor: Anchor, width: int) -> bool:
    """Whether a product is better stored along its own axes than along those of its reader.

    A transposed convolution is stored with its phases interleaved: along the reader's axes the
    kernel changes with every element, and no axis is left for the rows.  A product is read with
    gaps, which a tile would compute needlessly, if its columns become channels of a blocked layout,
    or if its channels and pixels are divided into other groups.  If images of a batch make rows but
    channels are few, lanes are among the rows that only the own axes have.
    """
    roles = find_roles(anchor, width)
    if roles is not None:
        tiled = [axis for axis in (roles.lanes, roles.row) if axis is not None]
        if any(anchor.step_along(axis) > 1 for axis in tiled):
            return True
    own = find_roles(Anchor(anchor.state, anchor.name, anchor.name), width)
    if own is None:
        return False
    if anchor.is_tangled:
        return True
    shares = has_reuse(anchor.tensor)
    if roles is None:
        return bool(own.rows) or not shares
    if not shares:
        return False
    rows, own_rows = (count_of(r.rows) for r in (roles, own))
    is_flat = rows < _FEW_ROWS and 2 * rows <= own_rows
    is_narrow = 2 * roles.lanes.length < width and len(roles.rows) < len(own.rows)
    return is_flat or is_narrow or 2 * filled_lanes(roles, width) <= filled_lanes(own, width)


def filled_lanes(roles: AxisRoles, width: int) -> int:
    """The number of lanes of a vector that compute stored elements."""
    return min(roles.lanes.length, vector_within(roles.lanes_block, width))


@lru_cache(maxsize=64)
def find_roles(anchor: Anchor, width: int) -> AxisRoles | None:
    """The roles of the axes of the stored stage in a tile of the anchor; None without lanes.

    width   how many elements fill a vector
    """
    operands = anchor.operands
    axes = [axis for axis in anchor.axes if axis.length > 1]
    lanes = find_lanes(axes, operands, _stride_in_group(operands, width), width)
    if lanes is None:
        return None
    grouped = common_group(operands, lanes.var)
    wide: list[Load] = []
    narrow: list[Load] = []
    for load in (operand.load for operand in operands):
        is_shared = not reads_along(load, lanes.var) or (grouped and group_size(load, lanes.var))
        (narrow if is_shared else wide).append(load)
    roles = AxisRoles.among(axes, lanes, wide, narrow)
    roles = replace(roles, lanes_group=grouped, lanes_block=anchor.block_in(lanes))
    others = tuple(axis for axis in axes if axis is not lanes)
    if not roles.rows and not narrow:
        roles = replace(roles, rows=others, columns=(), batch=())
    if not roles.rows:
        for axis in others:
            along = [load for load in wide if reads_along(load, axis.var)]
            sizes = {group_size(load, axis.var) for load in along}
            if len(sizes) == 1 and 0 not in sizes:
                return replace(roles, rows=(axis,), group=sizes.pop())
    return roles


Stride = Callable[[Load, Axis], "int | None"]
_ACROSS = 16.0  # the cost of gathering a vector; a contiguous read costs one
_APART = 8.0  # that of gathering it from few adjacent vectors, as windows with a stride do
_SHORT = 16.0


def find_lanes(
    axes: Sequence[Axis],
    operands: Sequence[Operand],
    stride_of: Stride,
    width: int,
    short: float = _SHORT,
) -> Axis | None:
    """The axis with the cheapest vectors; None if every axis is read across rows.

    stride_of   the distance of neighbours of a vector; 0 for the same, None if not constant
    short       the cost of an axis of one element; longer axes cost less

    Reads across rows are expensive: they are in the inner loop.  A store across rows is cheap: it
    happens once.  The lanes of vectors that fill a group exactly read the same of the operand that
    the group shares.
    """
    is_alone = sum(not operand.is_constant for operand in operands) == 1

    def cost(axis: Axis) -> tuple[float, int]:
        total = 0.0 if axis is axes[-1] else 4.0
        strides = [stride_of(operand.load, axis) for operand in operands]
        for operand, stride in zip(operands, strides, strict=True):
            if not operand.is_constant and stride not in (0, 1):
                near = is_alone and stride is not None and 0 < stride <= 4
                total += _APART if near else _ACROSS
        if all(stride == 0 for stride in strides):
            total += 8.0
        group = common_group(operands, axis.var)
        extent = vector_within(group, width) if group else axis.length
        return total + short / extent, -extent

    best = min(axes, key=cost, default=None)
    return best if best is not None and cost(best)[0] < _ACROSS else None


def _stride_in_group(operands: Sequence[Operand], width: int) -> Stride:
    """The strides of vectors that fill groups and blocks exactly."""

    def stride_of(load: Load, axis: Axis) -> int | None:
        is_grouped = common_group(operands, axis.var) and group_size(load, axis.var)
        return 0 if is_grouped else stride_in_vector(load, axis, width)

    return stride_of


def rows_inside_columns(
    state: ScheduleState, anchor: str, roles: AxisRoles, target: CpuTarget
) -> tuple[str, ...]:
    """The outer rows, if it is better to go through them with few columns of the constants.

    That is so if the constants do not stay in the second cache from one outer row to the next, and
    reading them again for each takes longer than reading everything else for each panel of columns.
    """
    stage = state.stage(anchor)
    bytes_read = {True: 0, False: 0}
    for load in loads_of(stage.tensor.body):
        bytes_read[load.source.name in state.constants] += bytes_of(load.source)
    times = count_of(roles.rows[:-2])
    across = count_of((roles.lanes, *roles.columns))
    panels = max(1, across // (2 * lanes_for(target, stage)))
    stays = 2 * bytes_read[True] <= target.l2_bytes
    if stays or bytes_read[True] * times <= bytes_read[False] * panels:
        return ()
    return tuple(axis.name for axis in roles.rows[:-2])
