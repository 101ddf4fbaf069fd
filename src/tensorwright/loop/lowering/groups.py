"""Make one group of threads of all loops over threads in the nest of a root stage.

A lowered nest has a loop for each loop of a stage that is bound to a thread index: some are beside
each other, and those of one stage are inside those of another.  A card has one thread index in each
direction.  So the nest becomes

    for blocks: shared buffers; for threads: statements

in which a guard around each statement says which threads run it.  The first thread runs the
statements that were in no loop over threads.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from tensorwright.base import InternalError
from tensorwright.expr import Condition, Index, Relation, Var, all_of, ceil_div, compare, maximum
from tensorwright.loop.ir import Allocate, Buffer, Call, For, If, LaneFold, Stmt, Store, block
from tensorwright.loop.traversal import map_children, substitute_statement, walk
from tensorwright.schedule import BLOCKS, THREADS, ForKind, Scope

_ORDER = (ForKind.THREAD_Z, ForKind.THREAD_Y, ForKind.THREAD_X)


_Loops: TypeAlias = tuple[tuple[ForKind, Index], ...]
"""The loops over threads around a statement, outermost first: their indices and extents."""


def join_threads(nest: Stmt, computed_together: Set[Buffer], first: Sequence[Stmt] = ()) -> Stmt:
    """The nest of a root stage with one loop for each thread index; others stay as they are.

    computed_together  shared buffers that all threads fill, whatever loops over threads are around
    first              what each thread begins with
    Rewrite:  for k: for t in 0..8 @thread.x:            ->  shared S
                shared S: for s in 0..32 @thread.x:          for t in 0..32 @thread.x: for k:
                  S[s] = e(s)                                  S[t] = e(t)
                C[t] += S[g(t)]                                if t < 8: C[t] += S[g(t)]
    Theorem:  what is stored in such a buffer does not depend on the threads around its allocation,
              so it is enough that each element is stored by one thread.  For all other statements,
              their iterations of the loops over threads are shared out in the same way as before.
              What has to wait for another thread, is left to `place_barriers`.
    """
    blocks: list[For] = []
    while isinstance(nest, For) and nest.kind in BLOCKS:
        blocks.append(nest)
        nest = nest.body
    loops = [part for part in walk(nest) if isinstance(part, For)]
    if any(loop.kind in BLOCKS for loop in loops):
        raise InternalError(
            stage="loop", where="lowering", reason="a loop over blocks is not among the outermost"
        )
    threads = [loop for loop in loops if loop.kind in THREADS]
    if threads:
        folds = [part.lanes for part in walk(nest) if isinstance(part, LaneFold)]
        joined = _Joined(threads, computed_together, max(folds, default=1))
        nest = joined.group(nest, first)
    else:  # those of one iteration have vanished
        nest = _of_one_thread(nest)
    for loop in reversed(blocks):
        nest = replace(loop, body=nest)
    return nest


def _of_one_thread(nest: Stmt) -> Stmt:
    """A nest whose shared buffers are local, because its group has one thread."""
    allocated = [part.buffer for part in walk(nest) if isinstance(part, Allocate)]
    shared = [buffer for buffer in allocated if buffer.scope is Scope.SHARED]
    own = {buffer: replace(buffer, scope=Scope.LOCAL) for buffer in shared}
    return substitute_statement(nest, {}, own) if own else nest


def _whole(extent: Index, lanes: int) -> Index:
    """So many threads that all lanes of a fold are in one warp, whichever row they are in."""
    return extent if lanes == 1 else ceil_div(extent, lanes) * lanes


class _Joined:
    """The threads of one group; mutable: the shared buffers seen so far."""

    def __init__(self, threads: list[For], computed_together: Set[Buffer], lanes: int) -> None:
        self._together = computed_together
        self._shared: list[Buffer] = []
        self._starts: dict[Buffer, int] = {}
        self._extents: dict[ForKind, Index] = {}
        self._indices: dict[ForKind, Var] = {}
        for kind in _ORDER:
            extents = [loop.extent for loop in threads if loop.kind is kind]
            if extents:
                self._extents[kind] = reduce(maximum, extents)
                if kind is ForKind.THREAD_X:
                    self._extents[kind] = _whole(self._extents[kind], lanes)
                named = [loop.var for loop in threads if loop.kind is kind]
                self._indices[kind] = named[0]

    def group(self, nest: Stmt, first: Sequence[Stmt]) -> Stmt:
        """The shared buffers, the loops over threads, and what each thread does."""
        body = block(*first, self._of_thread(nest, ()))
        for kind in reversed(_ORDER):
            if kind in self._extents:
                body = For(self._indices[kind], self._extents[kind], kind, body)
        for buffer in reversed(self._shared):
            body = Allocate(buffer, body)
        return body

    def _of_thread(self, statement: Stmt, around: _Loops) -> Stmt:
        match statement:
            case For(var, extent, kind, body) if kind in THREADS:
                own = self._indices[kind]
                if own != var:
                    body = substitute_statement(body, {var: own})
                return self._of_thread(body, (*around, (kind, extent)))
            case Allocate(buffer, body) if buffer.scope is Scope.SHARED:
                self._shared.append(buffer)
                self._starts[buffer] = len(around) if buffer in self._together else 0
                return self._of_thread(body, around)
            case Store() | Call() | If():  # a branch is a guard of one statement
                stored = [part.buffer for part in walk(statement) if isinstance(part, Store)]
                start = max((self._starts.get(buffer, 0) for buffer in stored), default=0)
                mine = self._mine(around[start:])
                return statement if mine is True else If(mine, statement)
            case _:
                return map_children(lambda part: self._of_thread(part, around), statement)

    def _mine(self, loops: _Loops) -> Condition:
        """The condition that a thread has an iteration of these loops; or that it is the first."""
        counted = dict(loops)  # of two loops over one index, the inner one counts
        parts: list[Condition] = []
        for kind, extent in self._extents.items():
            index = self._indices[kind]
            if kind not in counted:
                parts.append(compare(Relation.EQ, index, 0))
            elif counted[kind] != extent:
                parts.append(index < counted[kind])
        return all_of(*parts)
