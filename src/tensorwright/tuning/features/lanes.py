"""Features of warps: the cost of the accesses of all lanes at once.

The addresses of the lanes of a block's first warp are formulas of the decisions, those of the first
iteration of all loops.  Their cost is counted in arrays, for many candidates at once.

    sectors      different pieces of 32 bytes that a warp touches: 4 if lanes are adjacent,
                 32 if each is far from the others
    wavefronts   turns that shared memory takes: a bank gives one word of 4 bytes in each

Source:   NVIDIA, CUDA C++ Best Practices Guide, "Coalesced access to global memory" and "Shared
          memory and memory banks".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright import expr, schedule
from tensorwright.base import GpuTarget
from tensorwright.loop import padded_extents
from tensorwright.tuning.features.access import BufferUse
from tensorwright.tuning.features.columns import (
    Cell,
    CellTable,
    ResultNumbers,
    above,
    any_flag,
    choose,
    divided,
    floored,
    remainder,
    rounded_up,
    same,
    smaller,
)
from tensorwright.tuning.features.formulas import Nest
from tensorwright.tuning.features.launches import OWN, index_operations, straight_loops
from tensorwright.tuning.features.loop_dependence import coefficient_of

SECTOR_BYTES = 32
BANKS, WORD_BYTES = 32, 4
_SWIZZLE = 4  # operations that move an address, if each is computed separately
_VECTOR_BYTES = 16  # that a lane moves at once
_ORDER = (schedule.ForKind.THREAD_X, schedule.ForKind.THREAD_Y, schedule.ForKind.THREAD_Z)
_BANK_BITS = 40  # above the number of a word

LANE_COLUMNS = (
    "global_loads",
    "global_stores",
    "global_sectors",
    "sectors_a_warp",
    "shared_loads",
    "shared_stores",
    "shared_sectors",
    "shared_wavefronts",
    "bank_conflicts",
    "index_operations",
    "more_barriers",
)
"""Loads and stores are instructions of warps, in the whole launch, and so are their sectors and
wavefronts; `sectors_a_warp` is the average.  `bank_conflicts` is the worst: how many turns shared
memory takes for one that would do.  `more_barriers` of a thread are in a loop that fills shared
memory by vectors which leave their rows: lowering does not prove there that threads stay apart."""


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """An access of a statement to global or shared memory.

    offsets   in elements from the first lane's, of each lane
    reach     how far the last iteration of a loop over vectors is from the first, along the last
              dimension; none without such a loop
    width     iterations of that loop
    is_split  1 if a condition depends on that loop, so that elements are loaded one by one
    count     accesses of warps in the whole launch, if a vector is one
    """

    is_shared: bool
    is_store: bool
    layout: schedule.MemoryLayout
    element_bytes: int
    offsets: tuple[Cell, ...]
    reach: tuple[Cell, ...]
    width: Cell
    is_split: Cell
    count: Cell


@dataclass(frozen=True, slots=True)
class LaneStatement:
    """The accesses of a statement.

    index_operations   that compute their addresses, once for a vector
    turns              of the loops of a thread that stay loops
    """

    accesses: tuple[LaneAccess, ...]
    index_operations: Cell
    turns: Cell


@dataclass(frozen=True, slots=True)
class LaneGroup:
    """Columns of the accesses of warps, as `LANE_COLUMNS` names them."""

    target: GpuTarget

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, always `LANE_COLUMNS`."""
        return LANE_COLUMNS

    def of(self, nest: Nest) -> LaneStatement:
        """The accesses of a statement: one for each buffer and direction."""
        accesses = tuple(
            _access(nest, use, self.target.warp, is_store=is_store)
            for use in nest.uses
            if use.buffer.scope is not schedule.Scope.LOCAL
            for is_store, flag in ((False, use.reads), (True, use.writes))
            if not isinstance(flag, int) or flag
        )
        turns = nest.iterations(OWN, straight_loops(nest))
        return LaneStatement(accesses, index_operations(nest), turns)


def _access(nest: Nest, use: BufferUse, warp: int, *, is_store: bool) -> LaneAccess:
    straight = straight_loops(nest)
    blocks, threads = map(nest.iterations, (schedule.BLOCKS, schedule.THREADS))
    access = next(
        each
        for each in nest.operations.accesses
        if each.buffer == use.buffer and each.is_store is is_store
    )
    width: Cell = 1
    is_split: Cell = 0
    reach: tuple[Cell, ...] = ()
    loop = next((one for one in nest.statement.loops if one.kind is schedule.ForKind.VECTOR), None)
    offsets = _offsets(nest, use, access.indices, warp)
    is_shared = use.buffer.scope is schedule.Scope.SHARED
    if (
        is_shared
        and not is_store
        and access.indices
        and not any(True for _ in _conditions(nest.statement.store.value))
    ):
        width = _merged(nest, access.indices[-1], _VECTOR_BYTES // use.element_bytes)
        reach = (width - 1,) * warp
    elif loop is not None and access.indices:
        width = nest.variables.extents[loop.var]
        is_split = 0 if is_store else _depends(nest, loop.var)
        index = access.indices[-1]
        ends = _along(nest, expr.substitute(index, {loop.var: loop.extent - 1}), warp)
        reach = tuple(
            end - start for end, start in zip(ends, _along(nest, index, warp), strict=True)
        )
    return LaneAccess(
        is_shared,
        is_store,
        use.buffer.layout,
        use.element_bytes,
        offsets,
        reach,
        width,
        is_split,
        blocks
        * rounded_up(threads, warp)
        * _turns(nest, use, straight)
        * divided(use.elements[straight], width),
    )


def _merged(nest: Nest, index: expr.Index, most: int) -> Cell:
    """The adjacent elements that one instruction loads: 1, 2 or 4.

    Compilers merge unrolled loads of shared memory if the last index moves by 1.
    """
    width: Cell = 1
    for loop in nest.statement.loops:  # innermost last
        step = coefficient_of(index, loop.var)
        if loop.kind not in (schedule.ForKind.UNROLLED, schedule.ForKind.VECTOR) or step is None:
            continue
        extent = nest.variables.extents[loop.var]
        whole: Cell = 1
        for lanes in (2, 4):
            if lanes <= most:
                whole = choose(same(remainder(extent, lanes), 0), lanes, whole)
        is_next = same(nest.variables.first(step), 1) * above(extent, 1)
        width = choose(is_next, whole, width)
    return width


def _turns(nest: Nest, use: BufferUse, straight: int) -> Cell:
    """Turns of a thread in which something is accessed; all turns for shared memory.

    The innermost serial loops that do not move the access count as one turn.
    """
    if use.buffer.scope is schedule.Scope.SHARED:
        return nest.iterations(OWN, straight)
    turns: Cell = 1
    is_same: Cell = 1
    for n in reversed(range(straight)):
        if nest.kinds.kinds[n] not in OWN:
            continue
        is_same = is_same * (1 - use.moves[n])
        turns = turns * choose(is_same, 1, nest.loops.extents[n])
    return turns


def _depends(nest: Nest, var: expr.Var) -> Cell:
    """1 if it depends on a loop whether something is loaded."""
    flags: list[Cell] = []
    for condition in _conditions(nest.statement.store.value):
        sides = [side for side in expr.condition_sides(condition) if var in expr.free_vars(side)]
        moves = any_flag([above(nest.variables.dependence(side, var).span, 0) for side in sides])
        flags.append(moves * above(nest.variables.condition_bounds(condition).open_count, 0))
    return any_flag(flags)


def _conditions(value: expr.Value) -> Iterator[expr.Condition]:
    """The conditions on indices in a value."""
    if isinstance(value, expr.Select) and not isinstance(value.condition, expr.ValueExpr):
        yield value.condition
    for child in expr.children(value):
        yield from _conditions(child)


def _offsets(
    nest: Nest, use: BufferUse, indices: tuple[expr.Index, ...], warp: int
) -> tuple[Cell, ...]:
    """The offset of each lane, in elements from the first lane's."""
    offsets: list[Cell] = [0] * warp
    size: Cell = 1
    pairs = zip(reversed(indices), reversed(padded_extents(use.buffer)), strict=True)
    for index, length in pairs:
        start = nest.variables.first(index)
        along = _along(nest, index, warp)
        offsets = [
            offset + (each - start) * size for offset, each in zip(offsets, along, strict=True)
        ]
        size = size * nest.variables.first(length)
    return tuple(offsets)


def _along(nest: Nest, index: expr.Index, warp: int) -> tuple[Cell, ...]:
    """An index of each lane of the first warp of a block, other loops at their first iteration."""
    variables = nest.variables
    loops = [
        (loop.var, variables.first(loop.extent), variables.extents[loop.var])
        for kind in _ORDER
        for loop in nest.statement.loops
        if loop.kind is kind
    ]
    positions: list[Cell] = []
    for lane in range(warp):
        position = variables.first(index)
        inside: Cell = 1  # threads of the indices before this one
        for number, (var, extent, used) in enumerate(loops):
            digit = floored(lane, inside)
            if number < len(loops) - 1:
                digit = remainder(digit, extent)
            inside = inside * extent
            position = position + variables.moved(index, var, smaller(digit, used - 1))
        positions.append(position)
    return tuple(positions)


class LaneTable:
    """The accesses of a statement, and where their offsets and counts are among columns."""

    def __init__(self, statement: LaneStatement, results: ResultNumbers) -> None:
        self._accesses = statement.accesses
        self._warp = len(self._accesses[0].offsets) if self._accesses else 0
        self._offsets = [_row(each.offsets, results) for each in self._accesses]
        self._reach = [_row(each.reach, results) for each in self._accesses]
        self._counts = [
            _row((each.count, each.width, each.is_split), results) for each in self._accesses
        ]
        self._of_statement = _row((statement.index_operations, statement.turns), results)

    def features(self, results: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """The columns of the statement.  Shapes:  results (columns, n) -> (lane columns, n)."""
        columns = np.zeros((len(LANE_COLUMNS), count))
        at = {name: columns[row] for row, name in enumerate(LANE_COLUMNS)}
        index_operations, turns = self._of_statement.filled(results, count)
        singly = np.ones(count)  # elements that are moved one by one, of a vector
        swizzled = np.zeros(count)  # accesses whose address a swizzle moves
        for n, access in enumerate(self._accesses):
            runs, width, is_split = self._counts[n].filled(results, count)
            offsets = self._offsets[n].filled(results, count)
            if access.reach:
                is_run = _are_runs(offsets, self._reach[n].filled(results, count), width)
                is_run &= is_split == 0
                if access.is_shared and access.is_store:
                    at["more_barriers"][:] = np.where(is_run, 0, turns)
                runs = np.where(is_run, runs, runs * width)
                singly = np.maximum(singly, np.where(is_run, 1, width))
                width = np.where(is_run, width, 1)
            nbytes = _placed(access, offsets) * access.element_bytes
            where = "shared" if access.is_shared else "global"
            at[f"{where}_{'stores' if access.is_store else 'loads'}"] += runs
            at[f"{where}_sectors"] += distinct(nbytes // SECTOR_BYTES) * runs
            if access.layout.swizzle(access.element_bytes) is not None:
                swizzled += runs
            if access.is_shared:
                wavefronts = conflict_degree(nbytes)
                words = np.maximum(width * access.element_bytes / WORD_BYTES, 1.0)
                at["shared_wavefronts"] += wavefronts * runs
                np.maximum(at["bank_conflicts"], wavefronts / words, out=at["bank_conflicts"])
        warps = np.maximum(at["global_loads"] + at["global_stores"], 1.0)
        at["sectors_a_warp"][:] = at["global_sectors"] / warps
        at["index_operations"][:] = index_operations * singly + swizzled * _SWIZZLE * self._warp
        return columns


def _are_runs(
    offsets: NDArray[np.float64], reach: NDArray[np.float64], width: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether the vectors of all lanes lie together in a row, at multiples of their size.

    Shapes:  offsets, reach (lanes, n), width (n,) -> (n,)
    """
    lie: NDArray[np.bool_] = (reach == width - 1) & (offsets % width == 0)
    runs: NDArray[np.bool_] = np.logical_and.reduce(lie, axis=0)
    return runs


def _row(cells: Sequence[Cell], results: ResultNumbers) -> CellTable:
    table = CellTable((len(cells),), np.float64)
    for number, cell in enumerate(cells):
        table.put(number, cell, results)
    return table


def _placed(access: LaneAccess, offsets: NDArray[np.float64]) -> NDArray[np.int64]:
    """Offsets in memory, after the swizzle."""
    whole = np.rint(offsets).astype(np.int64)
    swizzle = access.layout.swizzle(access.element_bytes)
    if swizzle is not None:
        bits, base, shift = swizzle
        whole ^= (whole >> shift) & (((1 << bits) - 1) << base)
    return whole


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of different values of the lanes.  Shapes:  (lanes, n) -> (n,)."""
    ordered = np.sort(numbers, axis=0)
    changes: NDArray[np.int64] = (ordered[1:] != ordered[:-1]).sum(axis=0) + 1
    return changes


def conflict_degree(nbytes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most different words that one bank has to give.  Shapes:  (lanes, n) -> (n,)."""
    words = nbytes // WORD_BYTES
    banks = words % BANKS
    keys = np.sort((banks << _BANK_BITS) + (words & ((1 << _BANK_BITS) - 1)), axis=0)
    is_new = np.ones(keys.shape, np.int64)
    is_new[1:] = keys[1:] != keys[:-1]
    begins = np.ones(keys.shape, np.bool_)
    begins[1:] = (keys[1:] >> _BANK_BITS) != (keys[:-1] >> _BANK_BITS)
    numbers = np.cumsum(is_new, axis=0)
    before = np.maximum.accumulate(np.where(begins, numbers - 1, 0), axis=0)
    degrees: NDArray[np.int64] = (numbers - before).max(axis=0)
    return degrees
