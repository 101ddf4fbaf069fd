"""The rows of statements that the trees of the time model read, and the values they start from.

A row has the statement's features, the machine, the proportions of the roofline's parts, and the
statement's share of its program.  Caches and rates are only in the roofline's parts, which say how
much comes from beyond a cache, and not how large it is: trees that were trained on few machines
could not use the size.

The time that threads wait for lines of which others write other parts (false sharing).

A line that two cores write moves back and forth between them.  If the threads of a parallel loop
have neighbouring pieces of each row, narrower than a line, and go down their columns one by one,
all lines move at every step, and work that takes one thread 3 us takes two of them 15.  No feature
of a statement shows that, so it is a separate term in the time of a program:

    seconds = visits of a thread to lines of which others write a part, each a transfer
              * the other threads at such a line * the time to fetch it from another core

Source:  Torrellas, Lam, Hennessy: False sharing and spatial locality in multiprocessor caches,
IEEE Transactions on Computers 43(6), 1994.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tensorwright import expr
from tensorwright.base import LINE_BYTES, ByKind, TargetKind
from tensorwright.loop import LoopProgram, Store
from tensorwright.machine import NOMINAL, Card, Machine
from tensorwright.schedule import ForKind
from tensorwright.tuning.features import FEATURE_NAMES, Statement, statements_of
from tensorwright.tuning.models.protocol import Features
from tensorwright.tuning.models.roofline import LEVELS, Estimate, RooflineModel

Column = tuple[str, Callable[[Machine], float]]
"""A name, and the value of the column for a machine."""

MACHINE_COLUMNS: ByKind[Column] = {
    TargetKind.CPU: (
        ("vector_bytes", lambda machine: np.log2(machine.target.vector_bytes)),
        ("vector_registers", lambda machine: np.log2(machine.target.vector_registers)),
        ("has_masks", lambda machine: machine.target.has_masks),
        ("threads", lambda machine: np.log2(machine.threads)),
        ("is_cold", lambda machine: machine.is_cold),
    )
}
"""The columns of machines by kind: each kind has its own trees and rows."""
_OF_MACHINE = MACHINE_COLUMNS[TargetKind.CPU]

ROOFLINE_COLUMNS = ("roofline", "roofline_arithmetic", *(f"roofline_{level}" for level in LEVELS))
CONTEXT_COLUMNS = (
    "program_statements",
    "program_seconds",
    "program_flops",
    "most_flops",
    "share_seconds",
    "share_flops",
    "share_bytes",
    "statements_after",
)
ROW_NAMES: tuple[str, ...] = (
    *FEATURE_NAMES,
    *(name for name, _ in _OF_MACHINE),
    *ROOFLINE_COLUMNS,
    *CONTEXT_COLUMNS,
)
"""Logarithms to base 2, but flags; of the roofline's parts and of shares, at least -20."""

ROW_DIGEST = hashlib.sha256("\n".join(ROW_NAMES).encode()).hexdigest()[:16]
"""Of the names in order: trees that were trained on other rows are refused."""

_LEAST = np.float32(-20.0)
_SURE = np.float32(0.8)  # of the time at the peak: terms that are skipped may have been counted
_LOG2_CLOCK = np.float32(np.log2(NOMINAL.clock_hz))
_FLOPS = np.array([n for n, name in enumerate(FEATURE_NAMES) if name.startswith("float_")])
_BYTES = np.array([n for n, name in enumerate(FEATURE_NAMES) if name.endswith("_unique_bytes")])

_Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The statements of programs of equal numbers of statements.

    base    log2 of the seconds that the roofline gives each statement (programs, statements)
    floor   log2 of the seconds that it is never expected to fall short of (programs, statements)
    rows    what trees see (programs * statements, columns), the statements of a program in order
    """

    base: _Matrix
    floor: _Matrix
    rows: Features


def rows_of(features: Features, machine: Machine) -> Rows:
    """The rows of programs.  Shapes:  features (programs, statements, features)."""
    programs, statements, own = features.shape
    estimate = RooflineModel(machine).estimate(features)
    base = np.log2(estimate.cycles) - _LOG2_CLOCK
    rows = np.empty((programs, statements, len(ROW_NAMES)), np.float32)
    rows[..., :own] = features
    first = own + len(_OF_MACHINE)
    rows[..., own:first] = [of(machine) for _, of in _OF_MACHINE]
    for column, part in enumerate((*_roofline(base, estimate), *_context(base, features)), first):
        rows[..., column] = part
    with np.errstate(divide="ignore"):
        floor = np.log2(_SURE * estimate.peak) - _LOG2_CLOCK
    return Rows(base, floor, rows.reshape(programs * statements, -1))


def program_scores(base: _Matrix, tree_values: NDArray[np.floating], floor: _Matrix) -> _Scores:
    """log2 of the seconds of programs: the sums over their statements.

    Each statement takes at least the time of its multiply-adds at the machine's peak.

    Shapes:  base, floor (programs, statements), log2 of seconds; tree_values of as many ->
             (programs,)
    """
    return log2_sum(np.maximum(base + tree_values.reshape(base.shape), floor))


def log2_sum(terms: NDArray[np.floating]) -> _Scores:
    """log2 of the sums of 2^terms along the last axis."""
    exact = terms.astype(np.float64)
    total: _Scores = np.log2(np.exp2(exact).sum(axis=-1))
    return total


_Scores = NDArray[np.float64]


def _roofline(base: _Matrix, estimate: Estimate) -> tuple[_Matrix, ...]:
    """The statement's seconds, and its parts against them."""
    parts = (estimate.arithmetic, *estimate.memory)
    return (base, *(_log2_share(part, estimate.cycles) for part in parts))


def _context(base: _Matrix, features: Features) -> tuple[_Matrix, ...]:
    programs, statements = base.shape
    flops = _total(features, _FLOPS)
    nbytes = _total(features, _BYTES)
    seconds = log2_sum(base).astype(np.float32)[:, None]
    all_flops = flops.sum(axis=1, keepdims=True)
    after = np.log2(np.arange(statements, 0, -1, dtype=np.float32))
    return (
        np.full((programs, 1), np.log2(statements), np.float32),
        seconds,
        np.log2(all_flops + 1.0),
        np.log2(flops.max(axis=1, keepdims=True) + 1.0),
        np.maximum(base - seconds, _LEAST),
        _log2_share(flops, all_flops),
        _log2_share(nbytes, nbytes.sum(axis=1, keepdims=True)),
        after[None],
    )


def _total(features: Features, places: NDArray[np.int64]) -> _Matrix:
    """The sum of some features without their logarithms (programs, statements)."""
    plain = np.exp2(features[..., places])
    total: _Matrix = plain.sum(axis=-1) - np.float32(len(places))
    return np.maximum(total, 0.0)


def _log2_share(part: _Matrix, whole: _Matrix) -> _Matrix:
    least = np.float32(2.0) ** _LEAST
    shares: _Matrix = np.log2(np.maximum(part / np.maximum(whole, 1.0), least))
    return shares


_Values = Mapping[expr.Var | expr.Symbol, expr.Index]


def shared_lines_s(
    program: LoopProgram, machine: Machine | Card, decisions: Mapping[str, int] | None = None
) -> float:
    """Seconds that the threads of a program wait for lines which others write; none on a card.

    decisions   those that the program leaves open
    """
    if isinstance(machine, Card):
        return 0.0
    transfers = line_transfers(program, machine.threads, decisions)
    return transfers * NOMINAL.line_cycles / NOMINAL.clock_hz


def line_transfers(
    program: LoopProgram, threads: int, decisions: Mapping[str, int] | None = None
) -> int:
    """The number of transfers of lines between cores for which each thread waits."""
    if threads == 1:
        return 0
    given: _Values = {expr.Decision(name): value for name, value in (decisions or {}).items()}
    return sum(_transfers(each, threads, given) for each in statements_of(program))


def _transfers(statement: Statement, threads: int, decisions: _Values) -> int:
    """The transfers of a statement whose neighbouring threads write neighbouring parts of lines.

    The threads have equally many iterations, one after the other.
    """
    store, loops = statement.store, statement.loops
    shared = next((n for n, loop in enumerate(loops) if loop.kind is ForKind.PARALLEL), None)
    if shared is None or statement.outside(store.buffer) > shared:
        return 0
    extents = [expr.substitute(loop.extent, decisions) for loop in loops]
    start: _Values = {**decisions, **{loop.var: 0 for loop in loops}}
    jobs = extents[shared]
    first = _written_byte(store, start)
    if not isinstance(jobs, int) or first is None:
        return 0
    share = -(-jobs // threads)
    next_thread = _written_byte(store, {**start, loops[shared].var: share})
    if share == jobs or next_thread is None or not 0 < next_thread - first < LINE_BYTES:
        return 0
    runs = [extent if isinstance(extent, int) else 1 for extent in extents]
    runs[shared] = share
    others = min(threads, -(-LINE_BYTES // (next_thread - first))) - 1
    steps = [_written_byte(store, {**start, loop.var: 1}) for loop in loops]
    return others * _visits(runs, [None if step is None else step - first for step in steps])


def _visits(runs: list[int], steps: list[int | None]) -> int:
    """How often loops come to a line; iterations of inner loops that stay in a line are one visit.

    runs    their iterations, outermost first       steps   the bytes of a step; None: far
    """
    span = 1
    for n in reversed(range(len(runs))):
        step = steps[n]
        if runs[n] > 1:
            if step is None or span + abs(step) * (runs[n] - 1) > LINE_BYTES:
                lines = LINE_BYTES if step is None else min(abs(step), LINE_BYTES)
                return prod(runs[:n]) * max(1, runs[n] * lines // LINE_BYTES)
            span += abs(step) * (runs[n] - 1)
    return 1


def _written_byte(store: Store, values: _Values) -> int | None:
    """The byte that is written; None if it is not a number."""
    offset = 0
    for index, extent in zip(store.indices, store.buffer.shape, strict=True):
        position, width = expr.substitute(index, values), expr.substitute(extent, values)
        if not isinstance(position, int) or not isinstance(width, int):
            return None
        offset = offset * width + position
    return offset * store.buffer.dtype.size_bytes
