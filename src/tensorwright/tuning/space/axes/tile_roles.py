"""Which axis of a product is which in a register tile: lanes, columns, rows.

Vectors lie along the lanes, a tile has several of them along the columns, and each is used again
for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tensorwright.base import Target
from tensorwright.expr import Axis, free_vars, loads_of, terms_of
from tensorwright.schedule import ScheduleState
from tensorwright.tuning.space.axes.roles import (
    Operand,
    common_group,
    extent_of,
    group_size,
    has_reuse,
    operands,
    points,
    reads_along,
    stride_along,
    vector_within,
)
from tensorwright.tuning.space.axes.steps import lanes_for


@dataclass(frozen=True, slots=True)
class Roles:
    """Axes of the stored stage: lanes, columns (may be the lanes' own axis, split), rows and a
    second row axis.

    group        so many neighbouring rows share the vector operand; 0: all
    lanes_group  so many neighbouring lanes share the other operands; 0: all
    outer_rows   further axes along which the vector operand is used again
    """

    lanes: Axis
    columns: Axis | None
    rows: Axis | None
    more_rows: Axis | None
    group: int = 0
    lanes_group: int = 0
    outer_rows: tuple[Axis, ...] = ()


def is_scattered(state: ScheduleState, anchor: str, stored: str, width: int) -> bool:
    """Whether a product is better stored along its own axes than along those of its reader.

    A transposed convolution is stored with its phases interleaved: along the reader's axes the
    kernel changes with every element, and no axis is left for the rows.  A product whose columns
    become channels of a blocked layout is read with gaps, which a tile would compute for nothing.
    """
    roles = find_roles(state, anchor, stored, width)
    if roles is not None:
        body = state.stage(stored).tensor.body
        link = next(x for x in loads_of(body) if x.source.name == anchor)
        steps = {c for i in link.indices for m, c in terms_of(i) if m == (roles.lanes.var,)}
        if steps - {1}:
            return True
    if not has_reuse(state.stage(anchor).tensor):
        return False
    own = find_roles(state, anchor, anchor, width)
    return own is not None and own.rows is not None and (roles is None or roles.rows is None)


def find_roles(state: ScheduleState, anchor: str, stored: str, width: int) -> Roles | None:
    """The axes of the stored stage that a tile of the anchor lies along; None without lanes.

    width   how many elements fill a vector
    """
    found = operands(state, state.stage(anchor), state.stage(stored))
    axes = [axis for axis in state.stage(stored).tensor.axes if extent_of(axis.extent) > 1]
    lanes = _lanes_axis(axes, found, width)
    if lanes is None:
        return None
    others = [axis for axis in axes if axis is not lanes]
    grouped = common_group(found, lanes.var)
    shares = {o: not reads_along(o.load, lanes.var) for o in found}
    shares |= {o: True for o in found if grouped and group_size(o.load, lanes.var)}
    wide = [o for o in found if not shares[o]]
    narrow = [o for o in found if shares[o]]

    def is_read(group: list[Operand], axis: Axis) -> bool:
        return any(reads_along(operand.load, axis.var) for operand in group)

    columns = [a for a in others if narrow and is_read(wide, a) and not is_read(narrow, a)]
    rows = [a for a in others if not all(reads_along(o.load, a.var) for o in wide)]
    rows = [a for a in rows if a not in columns]
    if not rows and not narrow:
        rows = others
    if not rows:
        for axis in others:
            along = [o for o in wide if reads_along(o.load, axis.var)]
            group = common_group(along, axis.var)
            if group and all(group_size(o.load, axis.var) for o in along):
                return Roles(lanes, columns[-1] if columns else None, axis, None, group, grouped)
    return Roles(
        lanes,
        columns[-1] if columns else None,
        rows[-1] if rows else None,
        rows[-2] if len(rows) > 1 else None,
        lanes_group=grouped,
        outer_rows=tuple(rows[:-2]),
    )


_ACROSS = 16.0  # the cost of gathering a vector where a contiguous read costs one
_APART = 8.0  # that of gathering it from a few neighbouring ones, as pooling with a stride does


def _lanes_axis(axes: list[Axis], found: tuple[Operand, ...], width: int) -> Axis | None:
    """The axis with the cheapest vectors; None where every axis is read across rows.

    Reads across rows cost much: they are in the inner loop.  A store across rows costs little: it
    happens once.  Vectors that fill a group exactly read the same from what the group shares.
    """

    def cost(axis: Axis) -> tuple[float, int]:
        total = 0.0 if axis is axes[-1] else 4.0
        group = common_group(found, axis.var)
        for operand in found:
            if group and group_size(operand.load, axis.var):
                continue
            stride = stride_along(operand.load, axis.var)
            if not operand.is_constant and stride not in (0, 1):
                near = len(found) == 1 and stride is not None and 0 < stride <= 4
                total += _APART if near else _ACROSS
        if not any(reads_along(o.load, axis.var) for o in found):
            total += 8.0
        extent = vector_within(group, width) if group else extent_of(axis.extent)
        return total + 16.0 / extent, -extent

    best = min(axes, key=cost, default=None)
    return best if best is not None and cost(best)[0] < _ACROSS else None


def rows_inside_columns(
    state: ScheduleState, anchor: str, roles: Roles, target: Target
) -> tuple[str, ...]:
    """The outer rows, where it is better to go through them with few columns of the constants.

    That is where the constants do not stay in the second cache from one outer row to the next, and
    take longer to read again for each than everything else for each panel of columns.
    """
    stage = state.stage(anchor)
    bytes_read = {True: 0, False: 0}
    for load in loads_of(stage.tensor.body):
        size = prod(extent_of(extent) for extent in load.source.shape) * load.dtype.size_bytes
        bytes_read[load.source.name in state.constants] += size
    times = prod(extent_of(axis.extent) for axis in roles.outer_rows)
    panels = max(1, extent_of(roles.lanes.extent) // (2 * lanes_for(target, stage)))
    stays = 2 * bytes_read[True] <= target.l2_bytes
    if stays or bytes_read[True] * times <= bytes_read[False] * panels:
        return ()
    return tuple(axis.name for axis in roles.outer_rows)


_VECTORS_PER_COPY = 120  # multiply-adds of vectors that take 20 times as long as to copy a vector
_LEAST_AGAIN = 1.5


def copies_much(
    state: ScheduleState,
    anchor: str,
    stored: str,
    feeding: frozenset[str],
    axis: Axis,
    rows: int,
    width: int,
) -> bool:
    """Whether stages that feed a product cost much where they are computed for a few rows at once.

    Windows that overlap copy the rows that they share again: a window of 7 rows that moves by 2
    copies all 3.5 times.  That matters where a copy serves few products, or fills few lanes.

    rows   so many along the axis are computed at once     width   lanes of a vector
    """
    stage = state.stage(anchor)
    reduced = {a.var: extent_of(a.extent) for a in stage.tensor.reduce_axes}
    copied = 0
    for operand in operands(state, stage, state.stage(stored)):
        shape = [extent_of(extent) for extent in operand.load.source.shape]
        along = [n for n, i in enumerate(operand.load.indices) if axis.var in free_vars(i)]
        if operand.load.source.name not in feeding or len(along) != 1:
            continue
        steps = dict(terms_of(operand.load.indices[along[0]]))
        reach = sum(steps.get((var,), 0) * (extent - 1) for var, extent in reduced.items())
        window = reach + 1 + (rows - 1) * steps.get((axis.var,), 0)
        total = window * -(-extent_of(axis.extent) // rows)
        if total > _LEAST_AGAIN * shape[along[0]]:
            lines = prod(shape[:-1]) // shape[along[0]]
            copied += total * lines * -(-shape[-1] // width)
    return copied * _VECTORS_PER_COPY * width > points(stage.tensor)
