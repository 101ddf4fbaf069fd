"""Features of launches: what a block needs of a multiprocessor, and how many blocks can run.

All statements of a launch have the same numbers, but for what each thread runs of a statement.
Registers are estimated: a thread keeps its local buffers, the operands that the loops written out
read, and `_ADDRESSES` more.

    resident  = min(threads, registers, shared memory, slots of a multiprocessor, each / block's)
    occupancy = resident * warps of a block / most warps of a multiprocessor
    waves     = blocks / (multiprocessors * resident)          tail = waves / ceil(waves)

Source:   NVIDIA, CUDA C++ Programming Guide, "Hardware implementation" and the tables of compute
          capabilities (registers come in units of 256 a warp, a block takes 1 KiB of shared memory
          more than it asks for).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from tensorwright.base import GpuTarget
from tensorwright.expr import Load, free_vars
from tensorwright.loop import Buffer, room_of
from tensorwright.schedule import BLOCKS, THREADS, ForKind, Scope
from tensorwright.tuning.features.access import BufferUse
from tensorwright.tuning.features.columns import (
    Cell,
    divided,
    floored,
    larger,
    product_of,
    rounded_up,
    smaller,
    total_of,
)
from tensorwright.tuning.features.formulas import Nest, Touching

_ADDRESSES = 24  # registers of a thread that hold indices and addresses
_REGISTER_UNIT = 256  # registers are given to a warp in such units
_RESERVED_BYTES = 1024  # of shared memory, for each block
_UNROLLED = frozenset((ForKind.UNROLLED,))
_WRITTEN_OUT = (ForKind.UNROLLED, ForKind.VECTOR)
_NONE: Cell = 0
_DIVISION = 7  # operations that give quotient and remainder of a division by a known number

LAUNCH_COLUMNS = (
    "launch",
    "blocks",
    "threads",
    "warps",
    "registers",
    "shared_memory",
    "blocks_by_threads",
    "blocks_by_registers",
    "blocks_by_shared_memory",
    "blocks_by_slots",
    "resident_blocks",
    "occupancy",
    "waves",
    "tail",
    "barriers",
    "unrolled",
)
THREAD_COLUMNS = (
    "warp_runs",
    "lane_share",
    "thread_runs",
    "straight_runs",
    "waiting_runs",
    "meeting_runs",
    "register_bytes",
    "block_bytes",
    "dram_bytes",
)


OWN = frozenset(ForKind) - BLOCKS - THREADS
"""The loops that each thread runs."""


def straight_loops(nest: Nest) -> int:
    """The number of outer loops that stay loops; those inside are unrolled."""
    straight = len(nest.loops)
    while straight and _is_written_out(nest, straight - 1):
        straight -= 1
    return straight


def _is_written_out(nest: Nest, number: int) -> bool:
    """Whether a loop is unrolled, by us or the compiler, which keeps small buffers in registers."""
    store = nest.statement.store
    is_own = store.buffer.scope is Scope.LOCAL and nest.kinds.kinds[number] is ForKind.SERIAL
    moves = nest.loops.variables[number] in free_vars(*store.indices)
    return nest.kinds.kinds[number] in _WRITTEN_OUT or (is_own and moves)


def launch_features(target: GpuTarget, nest: Nest, touching: Touching) -> Mapping[str, Cell]:
    """The columns of the launch that a statement is in."""
    every = dict.fromkeys(other for nests in touching.values() for other in nests)
    own = _launch(nest)
    nests = [other for other in every if _launch(other) == own]
    blocks = _bound(nest, BLOCKS)
    threads = _bound(nest, THREADS)
    warps = rounded_up(threads, target.warp)
    registers = reduce(larger, map(_registers, nests), _NONE)
    shared = total_of(
        [
            (nest.variables.first(room_of(buffer)) * buffer.dtype.size_bytes)
            for buffer in _lives(nest, Scope.SHARED)
        ]
    )
    by_warp = rounded_up(registers * target.warp, _REGISTER_UNIT) * _REGISTER_UNIT
    most_threads = max(target.threads_per_block, 64 * target.blocks_per_multiprocessor)
    limits = {
        "blocks_by_threads": floored(most_threads, warps * target.warp),
        "blocks_by_registers": floored(target.registers, by_warp * warps),
        "blocks_by_shared_memory": floored(target.shared_bytes, shared + _RESERVED_BYTES),
        "blocks_by_slots": target.blocks_per_multiprocessor,
    }
    resident: Cell = target.blocks_per_multiprocessor
    for limit in limits.values():
        resident = smaller(resident, limit)
    resident = larger(resident, 1)
    waves = divided(blocks, resident * target.multiprocessors)
    return limits | {
        "launch": sorted({*map(_launch, every)}).index(own) + 1,
        "blocks": blocks,
        "threads": threads,
        "warps": warps,
        "registers": registers,
        "shared_memory": shared,
        "resident_blocks": resident,
        "occupancy": divided(resident * warps * target.warp, most_threads),
        "waves": waves,
        "tail": divided(waves, rounded_up(blocks, resident * target.multiprocessors)),
        "barriers": _barriers(nests, touching),
        "unrolled": total_of([each.iterations(_UNROLLED) for each in nests]),
    }


def thread_features(target: GpuTarget, nest: Nest, touching: Touching) -> Mapping[str, Cell]:
    """The work of a launch's threads for one statement, and the bytes that it needs.

    warp_runs       executions of one statement by a warp, all warps together
    lane_share      of the lanes of these warps that run it
    straight_runs   turns of the loops of a thread that stay loops
    waiting_runs    the same turns, if the statement waits for what it loads, in a pipeline at first
    meeting_runs    the turns after which it waits for the others that fill shared memory
    block_bytes     different lines that each block touches, of all blocks: from the second cache
    dram_bytes      different lines that the launch touches
    register_bytes  of operands and results of all executions
    """
    meetings = _meetings(nest, touching)
    blocks, threads, runs = map(nest.iterations, (BLOCKS, THREADS, OWN))
    turns = nest.iterations(OWN, straight_loops(nest))
    warps = rounded_up(threads, target.warp)
    store = nest.statement.store  # a thread goes on while something is loaded to registers
    goes_on = isinstance(store.value, Load) and store.buffer.scope is Scope.LOCAL
    far = [use for use in nest.uses if use.buffer.scope is Scope.GLOBAL]
    outside = sum(kind in BLOCKS for kind in nest.kinds.kinds)
    return {
        "warp_runs": blocks * warps * runs,
        "lane_share": divided(threads, warps * target.warp),
        "thread_runs": runs,
        "straight_runs": turns,
        "waiting_runs": 0 if goes_on else divided(turns, meetings.ahead),
        "meeting_runs": divided(meetings.turns, meetings.ahead),
        "register_bytes": nest.loops.inside[0]
        * total_of([use.count * use.element_bytes for use in nest.uses]),
        "block_bytes": blocks * total_of([_bytes(use, outside) for use in far]),
        "dram_bytes": total_of([_bytes(use, 0) for use in far]),
    }


def _launch(nest: Nest) -> tuple[int, ...]:
    """The path to the nest at the root that a statement is in."""
    statement = nest.statement
    return statement.path[: statement.loop_steps[0]] if statement.loops else statement.path


def _bound(nest: Nest, kinds: frozenset[ForKind]) -> Cell:
    """The number of blocks, or threads, including those that a guard keeps idle."""
    loops = [loop for loop in nest.statement.loops if loop.kind in kinds]
    return product_of([nest.variables.first(loop.extent) for loop in loops])


def _lives(nest: Nest, scope: Scope) -> list[Buffer]:
    return [buffer for buffer, _ in nest.statement.lives if buffer.scope is scope]


def _registers(nest: Nest) -> Cell:
    """Registers of 32 bits of a thread that runs a statement."""
    kept = [
        product_of(nest.shape_of(buffer)) * buffer.dtype.size_bytes
        for buffer in _lives(nest, Scope.LOCAL)
    ]
    inner = _operand_level(nest)
    operands = [
        use.elements[inner] * use.element_bytes
        for use in nest.uses
        if use.buffer.scope is not Scope.LOCAL
    ]
    return rounded_up(total_of([*kept, *operands]), 4) + _ADDRESSES


def _operand_level(nest: Nest) -> int:
    """The first of the unrolled loops whose operands are in registers at the same time."""
    level = len(nest.loops)
    while level and _is_written_out(nest, level - 1):
        if nest.loops.variables[level - 1] not in free_vars(*nest.statement.store.indices):
            break
        level -= 1
    return level


def _barriers(nests: Sequence[Nest], touching: Touching) -> Cell:
    """Barriers of a thread: two for each fill of shared memory, one for a fill by a pipeline."""
    levels: dict[tuple[int, tuple[int, ...]], Cell] = {}  # of each loop
    for nest in nests:
        meetings = _meetings(nest, touching)
        if meetings.loops is not None:
            depth = nest.statement.loop_steps[meetings.loops - 1] if meetings.loops else 0
            first = divided(meetings.turns, meetings.ahead)
            levels[meetings.loops, nest.statement.path[:depth]] = meetings.turns + first
    return total_of(list(levels.values()))


@dataclass(frozen=True, slots=True)
class Meetings:
    """The loops in which a statement that fills shared memory meets those that read it.

    loops   around all of them; None for a statement that fills none
    turns   of a thread of these loops
    ahead   turns of a pipeline: all but the first are filled before; 1 without a pipeline
    """

    loops: int | None
    turns: Cell
    ahead: Cell


def _meetings(nest: Nest, touching: Touching) -> Meetings:
    use = nest.uses[0]
    if use.buffer.scope is not Scope.SHARED:
        return Meetings(None, 0, 1)
    others = [other for other in touching[use.buffer] if other is not nest]
    loops = max((nest.statement.shared_loops(other.statement) for other in others), default=0)
    ahead = nest.loops.extents[loops - 1] if nest.statement.is_copy else 1
    return Meetings(loops, nest.iterations(OWN, loops), ahead)


def index_operations(nest: Nest) -> Cell:
    """Operations of a launch that compute addresses, once for unrolled accesses.

    A loop that moves several dimensions has been fused, and takes divisions. Those of blocks and
    threads are done once, before the loops.
    """
    straight = straight_loops(nest)
    serial = [n for n in range(straight) if nest.kinds.kinds[n] in OWN]
    far = [use for use in nest.uses if use.buffer.scope is not Scope.LOCAL]
    moved = (total_of([larger(use.dimensions_moved[n] - 1, 0) for n in serial]) for use in far)
    divisions = reduce(larger, moved, _NONE)
    tests = nest.counts.get("int_cmp", 0) + nest.counts.get("select_op", 0)
    each = divisions * _DIVISION + 2 * len(far) + tests * 2
    blocks, threads = map(nest.iterations, (BLOCKS, THREADS))
    return blocks * threads * nest.iterations(OWN, straight) * each


def _bytes(use: BufferUse, level: int) -> Cell:
    """The bytes of the different lines that the loops inside some of the outermost touch."""
    elements = use.elements[level] * use.element_bytes
    return larger(elements, smaller(use.lines_of(level) * 64, elements * 8))
