"""What a graphics processor refuses, or runs badly, as limits of the decisions of a sketch.

The expressions are those of the lowered program, so they are exact for each candidate, and hold for
whole columns of candidates: nothing is built that the device must refuse.  Registers are estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tensorwright import expr, schedule
from tensorwright.base import GpuTarget
from tensorwright.loop import Allocate, LaunchNest, launches_of, lower, room_of, walk
from tensorwright.tuning.space.sketch import Limit, SketchBuilder

THREADS_OF_BLOCK = "threads"
_IDLE = 4  # at most one of so many lanes of the warps of a block may have no thread
_THREAD_REGISTERS = 255
_OTHER_REGISTERS = 32  # of a thread: for operands, addresses and counters
_LAYERS = 64  # of threads in a block
_BLOCKS_ACROSS = 65_535  # along y and z
_BLOCKS = 2**31 - 1


def device_limits(state: schedule.ScheduleState, target: GpuTarget) -> Iterator[Limit]:
    """What a device demands of a program with open decisions.

    Limits for what it runs badly are soft: the choice by rule may break them.
    """
    for nest in launches_of(lower(state, is_outline=True)).nests:
        yield from _of_threads(nest, target)
        for kind in schedule.BLOCKS:
            most = _BLOCKS if kind is schedule.ForKind.BLOCK_X else _BLOCKS_ACROSS
            yield Limit(nest.extent(kind), most, "blocks")
        shared: expr.Index = sum(room_of(each) * each.dtype.size_bytes for each in nest.shared)
        yield Limit(shared, target.opt_in_shared_bytes, "shared memory")
    for stage in state.stages:
        yield from _of_vectors(state, stage)


def keep_to_device(builder: SketchBuilder, target: GpuTarget, *, keeps_soft: bool = True) -> bool:
    """Add the limits of the device to those of a sketch; False if it refuses the choice by rule.

    keeps_soft   soft limits hold, too, unless the choice by rule breaks them
    """
    defaults, is_kept = builder.sketch("").defaults, True
    for limit in device_limits(builder.state, target):
        holds = bool(limit.holds(defaults))
        if limit.is_soft and not (keeps_soft and holds):
            continue
        is_kept &= holds
        builder.limits += [limit] if limit.names else []
    return is_kept


def _of_threads(nest: LaunchNest, target: GpuTarget) -> Iterator[Limit]:
    """As many threads as a block may have, in whole warps, with registers for each."""
    threads: expr.Index = prod(nest.extent(kind) for kind in schedule.THREADS)
    yield Limit(threads, target.threads_per_block, THREADS_OF_BLOCK)
    yield Limit(nest.extent(schedule.ForKind.THREAD_Z), _LAYERS, "layers of threads")
    idle = _IDLE * expr.mod(-threads, target.warp) - threads
    yield Limit(idle, 0, "idle lanes", is_soft=True)
    own = [part.buffer for part in walk(nest.body) if isinstance(part, Allocate)]
    kept: expr.Index = sum(
        room_of(each) * max(1, each.dtype.size_bytes // 4)
        for each in own
        if each.scope is schedule.Scope.LOCAL
    )
    registers = kept + _OTHER_REGISTERS
    yield Limit(registers, _THREAD_REGISTERS, "registers of a thread", is_soft=True)
    warps = expr.ceil_div(threads, target.warp)
    of_block = registers * warps * target.warp
    yield Limit(of_block, target.registers, "registers of a block", is_soft=True)


def _of_vectors(state: schedule.ScheduleState, stage: schedule.Stage) -> Iterator[Limit]:
    """Vectors that do not cross rows: others are loaded element by element."""
    nest, is_part = (
        schedule.analyse(state).nests[stage.name],
        isinstance(stage.placement, schedule.At),
    )
    own: dict[expr.Var, expr.Index] = {
        axis.var: nest.extents.get(axis.name, axis.extent) if is_part else axis.extent
        for axis in stage.tensor.axes
    }
    long = [axis for axis in stage.tensor.axes if axis.extent != 1]
    for loop, kind in stage.marks:
        if kind is not schedule.ForKind.VECTOR or not long:
            continue
        last, lanes = long[-1].var, nest.extents[loop]
        loads = [load for load in expr.loads_of(stage.tensor.body) if load.indices]
        along = [load for load in loads if last in expr.free_vars(load.indices[-1])]
        ends = dict.fromkeys(_ends_of_rows(load, own, own[last], lanes) for load in along)
        if not along or stage.layout.kind is not schedule.LayoutKind.PLAIN:
            ends[expr.mod(own[last], lanes)] = None
        for end in ends:
            yield Limit(end, 0, "vectors across rows", is_soft=True)


def _ends_of_rows(
    load: expr.Load, own: Mapping[expr.Var, expr.Index], innermost: expr.Index, lanes: expr.Index
) -> expr.Index:
    """More than 0 if the end of a row that is read is not the end of a vector.

    A row that is read whole continues in the next one, because both are in one piece of memory.

    own   how many values of each axis are read      innermost   of that along the last position
    """
    ends: expr.Index = 0
    row: expr.Index = 1
    part = innermost
    for index, extent in zip(reversed(load.indices), reversed(load.source.shape), strict=True):
        along = own.get(index) if isinstance(index, expr.Var) else None
        if along is not None:
            part = along
        ragged = expr.mod(part * row, lanes) + expr.mod(extent * row, lanes)
        if along is None:
            return ends + ragged
        ends += ragged * (extent - part) * (extent - part)
        row, part = extent * row, 1
    return ends
