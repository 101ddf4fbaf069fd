"""The time that threads wait for lines of which others write other parts (false sharing).

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

from collections.abc import Mapping
from math import prod

from tensorwright.base import LINE_BYTES
from tensorwright.expr import Decision, Index, Symbol, Var, substitute
from tensorwright.loop import LoopProgram, Store
from tensorwright.machine import NOMINAL, Card, Machine
from tensorwright.schedule import ForKind
from tensorwright.tuning.features import Statement, statements_of

_Values = Mapping[Var | Symbol, Index]


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
    given: _Values = {Decision(name): value for name, value in (decisions or {}).items()}
    return sum(_transfers(each, threads, given) for each in statements_of(program))


def _transfers(statement: Statement, threads: int, decisions: _Values) -> int:
    """The transfers of a statement whose neighbouring threads write neighbouring parts of lines.

    The threads have equally many iterations, one after the other.
    """
    store, loops = statement.store, statement.loops
    shared = next((n for n, loop in enumerate(loops) if loop.kind is ForKind.PARALLEL), None)
    if shared is None or statement.outside(store.buffer) > shared:
        return 0
    extents = [substitute(loop.extent, decisions) for loop in loops]
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
        position, width = substitute(index, values), substitute(extent, values)
        if not isinstance(position, int) or not isinstance(width, int):
            return None
        offset = offset * width + position
    return offset * store.buffer.dtype.size_bytes
