"""The division of rows and their folds among threads: which indices, and how many of each."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tensorwright.base import GpuTarget
from tensorwright.schedule import ForKind, ScheduleState
from tensorwright.tuning.space.derived.predicates import contiguous_axis
from tensorwright.tuning.space.derived.row_program import RowProgram
from tensorwright.tuning.space.sketch import divisors, powers

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
    def row_index(self) -> ForKind:
        """The index to which the rows of a block are bound."""
        return ForKind.THREAD_Z if self.lanes else ForKind.THREAD_X


def row_threads(state: ScheduleState, program: RowProgram, target: GpuTarget) -> RowThreads | None:
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
        lanes = min(target.warp, _power_below(terms))
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


def _power_below(number: int) -> int:
    """The greatest power of two that is not greater than a number."""
    return 1 << (number.bit_length() - 1)
