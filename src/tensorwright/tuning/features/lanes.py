"""Features of warps: what the memory does for the accesses of all lanes at once.

The addresses of the lanes of a block's first warp are formulas of the decisions, those of the first
iteration of all loops.  What they cost is counted in arrays, for many candidates at once.

    sectors      different pieces of 32 bytes that a warp touches: 4 where lanes lie side by side,
                 32 where each is far from the others
    wavefronts   turns that shared memory takes: a bank gives one word of 4 bytes in each

Source:   NVIDIA, CUDA C++ Best Practices Guide, "Coalesced access to global memory" and "Shared
          memory and memory banks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorwright.base import GpuTarget
from tensorwright.loop import padded_extents
from tensorwright.schedule import ForKind, MemoryLayout, Scope
from tensorwright.tuning.features.access import BufferUse
from tensorwright.tuning.features.cell_tables import ResultNumbers
from tensorwright.tuning.features.columns import (
    Cell,
    Column,
    choose,
    divided,
    floored,
    remainder,
    rounded_up,
    same,
    smaller,
    total_of,
)
from tensorwright.tuning.features.formulas import Nest
from tensorwright.tuning.features.launches import thread_work

SECTOR_BYTES = 32
BANKS, WORD_BYTES = 32, 4
_ORDER = (ForKind.THREAD_X, ForKind.THREAD_Y, ForKind.THREAD_Z)
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
)
"""Loads and stores are instructions of warps, in the whole launch, and so are their sectors and
wavefronts; `sectors_a_warp` is the average.  `bank_conflicts` is the worst: how many turns shared
memory takes for one that would do."""


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """An access of a statement to global or shared memory.

    offsets   in elements from the first lane's, of each lane
    width     elements that a lane moves at once
    count     instructions of warps in the whole launch
    """

    is_shared: bool
    is_store: bool
    layout: MemoryLayout
    element_bytes: int
    offsets: tuple[Cell, ...]
    width: Cell
    count: Cell


@dataclass(frozen=True, slots=True)
class LaneGroup:
    """Columns of the accesses of warps, as `LANE_COLUMNS` names them."""

    target: GpuTarget

    @property
    def columns(self) -> tuple[str, ...]:
        """Always the same."""
        return LANE_COLUMNS

    def accesses(self, nest: Nest) -> tuple[LaneAccess, ...]:
        """The accesses of a statement: one for each buffer and direction."""
        return tuple(
            _access(nest, use, self.target.warp, is_store=is_store)
            for use in nest.uses
            if use.buffer.scope is not Scope.LOCAL
            for is_store, flag in ((False, use.reads), (True, use.writes))
            if not isinstance(flag, int) or flag
        )


def _access(nest: Nest, use: BufferUse, warp: int, *, is_store: bool) -> LaneAccess:
    work = thread_work(nest)
    warps = work.blocks * rounded_up(work.threads, warp)
    width: Cell = 1
    lanes = [n for n, kind in enumerate(nest.kinds.kinds) if kind is ForKind.VECTOR]
    if lanes:
        is_run = use.moves[lanes[-1]] * same(use.stride_of(lanes[-1]), 1)
        width = choose(is_run, nest.loops.extents[lanes[-1]], 1)
    return LaneAccess(
        use.buffer.scope is Scope.SHARED,
        is_store,
        use.buffer.layout,
        use.element_bytes,
        _offsets(nest, use, warp, is_store=is_store),
        width,
        warps * work.turns * divided(use.elements[work.straight], width),
    )


def _offsets(nest: Nest, use: BufferUse, warp: int, *, is_store: bool) -> tuple[Cell, ...]:
    """Of each lane, from the first one's."""
    access = next(
        each
        for each in nest.operations.accesses
        if each.buffer is use.buffer and each.is_store is is_store
    )
    strides: list[Cell] = [1]
    for length in reversed(padded_extents(use.buffer)[1:]):
        strides.append(strides[-1] * nest.variables.first(length))
    strides.reverse()
    loops = [
        (loop.var, nest.variables.first(loop.extent), nest.variables.extents[loop.var])
        for kind in _ORDER
        for loop in nest.statement.loops
        if loop.kind is kind
    ]
    offsets: list[Cell] = []
    for lane in range(warp):
        offset: Cell = 0
        inside: Cell = 1  # threads of the indices before this one
        for number, (var, extent, used) in enumerate(loops):
            digit = floored(lane, inside)
            if number < len(loops) - 1:
                digit = remainder(digit, extent)
            digit = smaller(digit, used - 1)
            inside = inside * extent
            moved = [nest.variables.moved(index, var, digit) for index in access.indices]
            parts = [one * stride for one, stride in zip(moved, strides, strict=True)]
            offset = offset + total_of(parts)
        offsets.append(offset)
    return tuple(offsets)


class LaneTable:
    """The accesses of a statement, and where their offsets and counts are among columns."""

    def __init__(self, accesses: Sequence[LaneAccess], results: ResultNumbers) -> None:
        self._accesses = accesses
        self._offsets = [_Row(each.offsets, results) for each in accesses]
        self._counts = [_Row((each.count, each.width), results) for each in accesses]

    def features(self, results: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """The columns of the statement.  Shapes:  results (columns, n) -> (lane columns, n)."""
        found = np.zeros((len(LANE_COLUMNS), count))
        at = {name: row for row, name in enumerate(LANE_COLUMNS)}
        rows = zip(self._accesses, self._offsets, self._counts, strict=True)
        for access, offsets, counts in rows:
            runs, width = counts.filled(results, count)
            nbytes = _placed(access, offsets.filled(results, count)) * access.element_bytes
            where = "shared" if access.is_shared else "global"
            found[at[f"{where}_{'stores' if access.is_store else 'loads'}"]] += runs
            found[at[f"{where}_sectors"]] += distinct(nbytes // SECTOR_BYTES) * runs
            if access.is_shared:
                wavefronts = conflict_degree(nbytes)
                words = np.maximum(width * access.element_bytes / WORD_BYTES, 1.0)
                found[at["shared_wavefronts"]] += wavefronts * runs
                conflicts = found[at["bank_conflicts"]]
                np.maximum(conflicts, wavefronts / words, out=conflicts)
        runs = found[at["global_loads"]] + found[at["global_stores"]]
        found[at["sectors_a_warp"]] = found[at["global_sectors"]] / np.maximum(runs, 1.0)
        return found


class _Row:
    """Cells of a row: numbers, and columns by their number."""

    def __init__(self, cells: Sequence[Cell], results: ResultNumbers) -> None:
        self._numbers = np.array([0 if isinstance(each, Column) else each for each in cells])
        moving = [(n, each) for n, each in enumerate(cells) if isinstance(each, Column)]
        self._places = [n for n, _ in moving]
        self._results = [results[column] for _, column in moving]

    def filled(self, results: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """Shapes:  (cells, count)."""
        found = np.repeat(self._numbers[:, None].astype(np.float64), count, axis=1)
        found[self._places] = results[self._results]
        return found


def _placed(access: LaneAccess, offsets: NDArray[np.float64]) -> NDArray[np.int64]:
    """Offsets in memory: a swizzle moves them."""
    whole = np.rint(offsets).astype(np.int64)
    swizzle = access.layout.swizzle(access.element_bytes)
    if swizzle is not None:
        bits, base, shift = swizzle
        whole ^= (whole >> shift) & (((1 << bits) - 1) << base)
    return whole


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many different numbers the lanes have.  Shapes:  (lanes, n) -> (n,)."""
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
