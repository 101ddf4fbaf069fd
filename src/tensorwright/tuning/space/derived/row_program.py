"""Programs that fold rows: a stage that stores, folds along its other axes, and what they read.

top[i] = max of x[i, j] over j          rows i: the axes of every fold
e[i, j] = exp(x[i, j] - top[i])         a stage between: it has elements of rows
total[i] = sum of e[i, j] over j
out[i, j] = e[i, j] / total[i]          the host, with columns j

The division of rows and their folds among threads: which indices, and how many of each.

Streams: the elements of a stage in threads, neighbours in neighbouring ones.

A thread has several elements, as far apart as the block is long, and each may be a vector.  What is
read once for each element is computed by the same thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from tensorwright import schedule
from tensorwright.base import GpuTarget
from tensorwright.expr import Var, loads_of
from tensorwright.tuning.space.accesses import has_numbers, is_contiguous, loads_from
from tensorwright.tuning.space.defaults.pointwise import bind_elements, block_threads, fused
from tensorwright.tuning.space.derived.derivation import contiguous_axis
from tensorwright.tuning.space.derived.tiled_fold import VECTORS
from tensorwright.tuning.space.sketch import Kind, SketchBuilder, divisors, powers

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


def plan_rows(state: schedule.ScheduleState, name: str) -> RowProgram | None:
    """The rows that a stage at the root stores; None if nothing folds them, or sizes are open.

    A fold that has more axes than another one is not part of them: it is computed before.
    """
    host = state.stage(name)
    if not has_numbers(host.tensor) or not isinstance(host.placement, schedule.AtRoot):
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


def _has_rows(stage: schedule.Stage, axes: _Axes, rows: frozenset[str]) -> bool:
    """Whether a stage has elements of rows: it has all row axes, and a fold no others."""
    own = frozenset(axes.values())
    return own == rows if stage.tensor.reduction is not None else own >= rows


def _members(
    state: schedule.ScheduleState,
    host: schedule.Stage,
    accepts: Callable[[schedule.Stage, _Axes], bool],
) -> dict[str, _Axes]:
    """The stages that only the host and other members read, with their axes that are the host's.

    Of a fold all axes are the host's.
    """
    axes_of: dict[str, _Axes] = {host.name: {axis.name: axis.name for axis in host.tensor.axes}}
    for stage in reversed(state.stages):
        readers = state.readers(stage.name)
        is_inside = all(reader.name in axes_of for reader in readers)
        if (
            not readers
            or not is_inside
            or stage.name in state.outputs
            or not has_numbers(stage.tensor)
        ):
            continue
        axes = _shared_axes(stage, readers, axes_of, host)
        own = [axis for axis in stage.tensor.axes if axis.extent != 1]
        is_whole = stage.tensor.reduction is None or len(axes) == len(own)
        if is_whole and isinstance(stage.placement, schedule.AtRoot) and accepts(stage, axes):
            axes_of[stage.name] = axes
    del axes_of[host.name]
    return axes_of


def _shared_axes(
    stage: schedule.Stage,
    readers: tuple[schedule.Stage, ...],
    axes_of: Mapping[str, _Axes],
    host: schedule.Stage,
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


def _row_stage(stage: schedule.Stage, axes: _Axes, rows: frozenset[str], row: str) -> RowStage:
    long = [axis.name for axis in stage.tensor.axes if axis.extent != 1]
    return RowStage(
        name=stage.name,
        row=next((name for name in long if row and axes.get(name) == row), ""),
        columns=tuple(name for name in long if axes.get(name) not in rows),
        is_fold=stage.tensor.reduction is not None,
    )


_LEAST_TERMS = 16  # fewer are folded by one thread
_MOST_PARTS = 32  # of a row that are folded by one thread in the end
_TERMS = 4  # that a thread of the default folds at least
_MOST_ROWS = 16  # of a block, where lanes lie along a row
_THREADS = 128  # of a block of the default: more rows where a row has fewer
_RESIDENT = 8  # blocks for each multiprocessor: rows are not joined if fewer were left


@dataclass(frozen=True, slots=True)
class RowThreads:
    """The threads of a block that folds rows.

    lanes   that lie along a row, 0 if they lie across the rows
    parts   the most further parts of a row, and the choice by rule
    rows    the most rows of a block, and the choice by rule
    """

    lanes: int
    parts: tuple[int, ...]
    default_parts: int
    rows: tuple[int, ...]
    default_rows: int

    @property
    def row_index(self) -> schedule.ForKind:
        """The index to which the rows of a block are bound."""
        return schedule.ForKind.THREAD_Z if self.lanes else schedule.ForKind.THREAD_X


def row_threads(
    state: schedule.ScheduleState, program: RowProgram, target: GpuTarget
) -> RowThreads | None:
    """The threads for folds of rows; None if a thread for each row is better.

    Neighbouring threads read neighbouring elements: lanes lie along the rows if these do, and
    otherwise across them.
    """
    tensors = [state.stage(fold.name).tensor for fold in program.folds]
    terms = min(prod(axis.length for axis in tensor.reduce_axes) for tensor in tensors)
    if terms < _LEAST_TERMS:
        return None
    along = all(contiguous_axis(tensor, tensor.reduce_axes) is not None for tensor in tensors)
    resident = target.multiprocessors * _RESIDENT
    if along:
        lanes = min(target.warp, (1 << (terms.bit_length() - 1)))
        parts = tuple(n for n in powers(_MOST_PARTS) if lanes * n < 2 * terms)
        default = max((n for n in parts if n * lanes * _TERMS <= terms and n <= 8), default=1)
        rows = divisors(program.extent, _MOST_ROWS)
        fitting = (n for n in rows if n * lanes * default <= _THREADS)
        joined = max((n for n in fitting if program.count >= n * resident), default=1)
        return RowThreads(lanes, parts, default, rows, joined)
    is_alone = len(tensors) == len(program.stages) == 1
    if is_alone and program.count >= resident * target.warp:
        return None  # a thread for each row fills the processor, and reads as well
    rows = divisors(program.extent, _THREADS)
    parts = tuple(n for n in powers(_MOST_PARTS) if n <= terms)
    default = max((n for n in parts if n * _TERMS <= terms and n <= 8), default=1)
    return RowThreads(0, parts, default, rows, max(n for n in rows if n <= target.warp))


_ELEMENTS = (1, 2, 4, 8)  # or vectors, of a thread
_MOST_THREADS = 1024


def stream(builder: SketchBuilder, name: str, target: GpuTarget) -> str:
    """Divide the elements of a stage at the root among blocks and threads, all sizes open.

    Returns the loop in which a thread has one, or a vector; as `bind_elements` if extents are open.
    """
    stage = builder.state.stage(name)
    loops = tuple(loop for loop in stage.loops if loop not in stage.reduce_loops)
    if not loops or not all(isinstance(a.extent, int) and a.extent for a in stage.tensor.axes):
        return bind_elements(builder, name, target)
    elements = prod(axis.length for axis in stage.tensor.axes)
    loop = fused(builder, name, loops)
    default = block_threads(stage, target)
    most = min(_MOST_THREADS, target.threads_per_block)
    counts = tuple(n for n in powers(most) if target.warp <= n <= elements) or (default,)
    threads = builder.choose(f"{name}_threads", counts, default, Kind.TILE, name)
    per_thread = tuple(n for n in _ELEMENTS if n == 1 or n * counts[0] <= elements)
    count = builder.choose(f"{name}_elements", per_thread, 1, Kind.TILE, name)
    widths = _vectors(builder, stage)
    vector = builder.choose(f"{name}_vector", widths, 1, Kind.OTHER, name)
    has_lanes = len(widths) > 1
    split = schedule.Split(name, loop, (count, threads, *((vector,) if has_lanes else ())))
    builder.do(split)
    blocks, element, thread, *lanes = split.children
    builder.do(schedule.Reorder(name, (blocks, thread, element, *lanes)))
    builder.do(schedule.Bind(name, blocks, schedule.ForKind.BLOCK_X))
    builder.do(schedule.Bind(name, thread, schedule.ForKind.THREAD_X))
    builder.do(schedule.Unroll(name, element))
    for lane in lanes:
        builder.do(schedule.Vectorize(name, lane))
    return element


def _vectors(builder: SketchBuilder, stage: schedule.Stage) -> tuple[int, ...]:
    """How many neighbours a thread may store at once: those of one row, which it reads together."""
    tensor = stage.tensor
    reads_stage = any(builder.state.has_stage(load.source.name) for load in loads_of(tensor.body))
    if tensor.reduction is not None or reads_stage:
        return (1,)
    long = [axis for axis in tensor.axes if axis.extent != 1]
    if not long or not is_contiguous(tensor, long[-1]):
        return (1,)
    return tuple(n for n in VECTORS if long[-1].length % n == 0)
