"""Whether threads write to the same cache lines, each its own part of them (false sharing).

A line that two cores write goes to and fro between them.  Where the threads of a parallel loop have
neighbouring pieces of each row, narrower than a line, and go down their columns one by one, all
lines do so at every step, and what takes one thread 3 us takes two of them 15.  No feature of a
statement tells that.
Source:  Torrellas, Lam, Hennessy: False sharing and spatial locality in multiprocessor caches,
IEEE Transactions on Computers 43(6), 1994.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tensorwright.base import LINE_BYTES
from tensorwright.expr import Index, Var, free_vars, substitute
from tensorwright.loop import Allocate, For, LoopProgram, Store, walk
from tensorwright.schedule import ForKind

_FEW = 16  # elements that a thread writes at most beside those of another, and nobody notices


def threads_share_lines(program: LoopProgram, threads: int) -> bool:
    """Whether neighbouring threads of a parallel loop write pieces of the same lines, many times.

    The threads have as many iterations each, one after the other.
    """
    return threads > 1 and any(
        _shares(store, loop, threads)
        for loop in walk(program.body)
        if isinstance(loop, For) and loop.kind is ForKind.PARALLEL
        for store in _stores_to_all(loop)
    )


def _stores_to_all(loop: For) -> Iterator[Store]:
    """What a loop stores where other iterations do as well."""
    inside = [*walk(loop.body)]
    own = {part.buffer for part in inside if isinstance(part, Allocate)}
    return (part for part in inside if isinstance(part, Store) and part.buffer not in own)


def _shares(store: Store, loop: For, threads: int) -> bool:
    """Whether the elements of the first thread are followed by those of the second in one line, to
    which both return again and again: it is not filled in one go.
    """
    start: dict[Var, Index] = dict.fromkeys(
        (var for index in store.indices for var in free_vars(index)), 0
    )
    loops = [part for part in walk(loop) if isinstance(part, For) and part.var in start]
    extents = [part.extent for part in loops if isinstance(part.extent, int)]
    if len(extents) < len(loops) or loop not in loops:
        return False
    share = -(-extents[0] // threads)
    inner = [part.var for part, extent in zip(loops, extents, strict=True) if extent > 1][1:]
    if share == extents[0] or share * prod(extents[1:]) <= _FEW or not inner:
        return False
    first, second, next_one = (
        _offset(store, values)
        for values in (start, start | {loop.var: share}, start | {inner[-1]: 1})
    )
    if first is None or second is None or next_one == first + 1:
        return False
    return 0 < (second - first) * store.buffer.dtype.size_bytes < LINE_BYTES


def _offset(store: Store, values: Mapping[Var, Index]) -> int | None:
    """The element that is written; None where that is not known."""
    offset = 0
    for index, extent in zip(store.indices, store.buffer.shape, strict=True):
        position = substitute(index, values)
        if not isinstance(position, int) or not isinstance(extent, int):
            return None
        offset = offset * extent + position
    return offset
