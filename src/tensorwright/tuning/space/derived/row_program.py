"""Programs that fold rows: a stage that stores, folds along its other axes, and what they read.

top[i] = max of x[i, j] over j          rows i: the axes of every fold
e[i, j] = exp(x[i, j] - top[i])         a stage between: it has elements of rows
total[i] = sum of e[i, j] over j
out[i, j] = e[i, j] / total[i]          the host, with columns j
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from tensorwright.expr import Var
from tensorwright.schedule import AtRoot, ScheduleState, Stage
from tensorwright.tuning.space.axes.accesses import loads_from

_Axes: TypeAlias = Mapping[str, str]
"""Axes of a stage -> the axes of the host that they are."""


@dataclass(frozen=True, slots=True)
class RowStage:
    """A stage that is computed for a row of the host.

    row      its axis that is the innermost row axis of the host, "" if that has none
    columns  its other axes of more than one element, which are not rows
    """

    name: str
    row: str
    columns: tuple[str, ...]
    is_fold: bool


@dataclass(frozen=True, slots=True)
class RowProgram:
    """A host and all that is computed for each of its rows.

    outer   loops of the host outside of the rows of a block: units, and rows but the innermost
    row     the innermost row axis, "" if the host has one row
    extent  of that axis             count    of all rows
    stages  in the order in which their readers come first
    """

    host: RowStage
    outer: tuple[str, ...]
    row: str
    extent: int
    count: int
    stages: tuple[RowStage, ...]

    @property
    def folds(self) -> tuple[RowStage, ...]:
        """The stages that fold, last first."""
        return tuple(stage for stage in self.stages if stage.is_fold)


def plan_rows(state: ScheduleState, name: str) -> RowProgram | None:
    """The rows that a stage at the root stores; None if nothing folds them, or sizes are open.

    A fold that has more axes than another one is not part of them: it is computed before.
    """
    host = state.stage(name)
    if not _is_closed(host) or not isinstance(host.placement, AtRoot):
        return None
    reached = _members(state, host, lambda _, axes: True)
    kept = [
        frozenset(axes.values())
        for stage, axes in reached.items()
        if state.stage(stage).tensor.reduction is not None
    ]
    if not kept:
        return None
    fewest = min(kept, key=len)
    members = _members(state, host, lambda stage, axes: _has_rows(stage, axes, fewest))
    rows = [axis for axis in host.tensor.axes if axis.name in fewest]
    units = [axis for axis in host.tensor.axes if axis.extent == 1]
    row = rows[-1].name if rows else ""
    stages = tuple(
        _row_stage(state.stage(each), axes, fewest, row) for each, axes in members.items()
    )
    if not rows and not units:
        return None  # there is no loop inside which a row could be computed
    return RowProgram(
        host=_row_stage(host, {axis.name: axis.name for axis in host.tensor.axes}, fewest, row),
        outer=tuple(axis.name for axis in (*units, *rows[:-1])),
        row=row,
        extent=rows[-1].length if rows else 1,
        count=prod(axis.length for axis in rows),
        stages=stages,
    )


def _is_closed(stage: Stage) -> bool:
    """Whether all extents of a stage are numbers other than 0."""
    axes = (*stage.tensor.axes, *stage.tensor.reduce_axes)
    return all(isinstance(axis.extent, int) and axis.extent for axis in axes)


def _has_rows(stage: Stage, axes: _Axes, rows: frozenset[str]) -> bool:
    """Whether a stage has elements of rows: it has all row axes, and a fold no others."""
    own = frozenset(axes.values())
    return own == rows if stage.tensor.reduction is not None else own >= rows


def _members(
    state: ScheduleState, host: Stage, accepts: Callable[[Stage, _Axes], bool]
) -> dict[str, _Axes]:
    """The stages that only the host and other members read, with their axes that are the host's.

    Of a fold all axes are the host's.
    """
    axes_of: dict[str, _Axes] = {host.name: {axis.name: axis.name for axis in host.tensor.axes}}
    for stage in reversed(state.stages):
        readers = state.readers(stage.name)
        is_inside = all(reader.name in axes_of for reader in readers)
        if not readers or not is_inside or stage.name in state.outputs or not _is_closed(stage):
            continue
        axes = _shared_axes(stage, readers, axes_of, host)
        own = [axis for axis in stage.tensor.axes if axis.extent != 1]
        is_whole = stage.tensor.reduction is None or len(axes) == len(own)
        if is_whole and isinstance(stage.placement, AtRoot) and accepts(stage, axes):
            axes_of[stage.name] = axes
    del axes_of[host.name]
    return axes_of


def _shared_axes(
    stage: Stage, readers: tuple[Stage, ...], axes_of: Mapping[str, _Axes], host: Stage
) -> dict[str, str]:
    """The axes along which every read of a stage moves as the host does."""
    extents = {axis.name: axis.extent for axis in host.tensor.axes}
    shared: dict[str, str] = {}
    for n, axis in enumerate(stage.tensor.axes):
        named = set()
        for reader in readers:
            spatial = {each.var: each.name for each in reader.tensor.axes}
            for load in loads_from(reader.tensor, stage.name):
                index = load.indices[n]
                own = spatial.get(index, "") if isinstance(index, Var) else ""
                named.add(axes_of[reader.name].get(own, ""))
        (name, *others) = named
        if axis.extent != 1 and not others and extents.get(name) == axis.extent:
            shared[axis.name] = name
    is_twice = len(set(shared.values())) != len(shared)
    return {} if is_twice else shared


def _row_stage(stage: Stage, axes: _Axes, rows: frozenset[str], row: str) -> RowStage:
    long = [axis.name for axis in stage.tensor.axes if axis.extent != 1]
    return RowStage(
        name=stage.name,
        row=next((name for name in long if row and axes.get(name) == row), ""),
        columns=tuple(name for name in long if axes.get(name) not in rows),
        is_fold=stage.tensor.reduction is not None,
    )
