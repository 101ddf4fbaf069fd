"""How the iterations of a loop run: unroll, vectorize, parallel, bind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tensorwright.expr import Combiner
from tensorwright.schedule.execution import BLOCKS, THREADS, ForKind
from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    need_legal_nesting,
    need_loop_of,
    need_plain_loops,
    need_unpipelined,
    refuse,
)
from tensorwright.schedule.state import ScheduleState
from tensorwright.schedule.tails import need_whole_tiles

_BINDABLE = BLOCKS | THREADS
_FOLDS = frozenset((Combiner.SUM, Combiner.PROD, Combiner.MAX, Combiner.MIN))


def _check(step: Primitive, state: ScheduleState, name: str, loop: str, kind: ForKind) -> None:
    stage = need_loop_of(step, state, name, loop)
    if stage.kind(loop) is not ForKind.SERIAL:
        raise refuse(step, state, f"loop {loop} is already marked", "", (name, loop))
    need_unpipelined(step, state, stage, loop)
    if loop in stage.replaced_loops:
        need_plain_loops(step, state, stage, loop)
    changed = applied(step, state)
    need_legal_nesting(step, state, changed)
    if kind in _BINDABLE or loop in stage.overlapping_loops:
        need_whole_tiles(step, state, changed)  # shared parts are of all threads
    # Theorem: the iterations of a spatial loop write different elements (or the same value twice,
    # where a tile was shifted), so they may run at once; those of a reduction loop update the same
    # element: lanes may if their results are folded first, by one of `_FOLDS` over floats.
    if kind is ForKind.UNROLLED or loop not in stage.reduce_loops:
        return
    reduction, dtype = stage.tensor.reduction, stage.tensor.dtype
    if kind is ForKind.VECTOR and reduction and reduction.combiner in _FOLDS and dtype.is_float:
        return
    target = f"{stage.name}[{', '.join(axis.name for axis in stage.tensor.axes)}]"
    remedy = "choose a spatial loop, or rfactor the reduction first"
    reason = f"loop {loop} carries a reduction: every {loop} writes the same {target}"
    raise refuse(step, state, reason, remedy, (name, loop))


@dataclass(frozen=True, slots=True)
class _Mark(Primitive):
    """One mark on one loop."""

    stage: str
    loop: str

    _kind: ClassVar[ForKind]

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the loop may not run so."""
        _check(self, state, self.stage, self.loop, self._kind)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loop marked."""
        return state.with_stage(state.stage(self.stage).with_mark(self.loop, self._kind))


class Unroll(_Mark):
    """Unroll a loop completely.

    Rewrite:  for i in 0..3: S   ->   S[i := 0]; S[i := 1]; S[i := 2]
    Requires: the loop is not marked.
    """

    __slots__ = ()
    _kind = ForKind.UNROLLED


class Vectorize(_Mark):
    """Run the iterations of a loop in the lanes of vectors.

    Rewrite:  for i in 0..n: C[i] = e(i)   ->   C[0:n] = e(0:n), in pieces of the machine's width,
              the last masked
              for k in 0..n: C += e(k)     ->   C += the sum of e(0:n), the lanes folded as a tree
    Requires: the loop is not marked; no vectorised loop is around it or inside it; a reduction
              that it carries is a sum, product, maximum or minimum of floats (over the reals, sums
              and products of another order are the same).
    """

    __slots__ = ()
    _kind = ForKind.VECTOR


class Parallel(_Mark):
    """Run the iterations of a loop on several threads.

    Rewrite:  for i in 0..n: S   ->   each thread runs a contiguous part of 0..n
    Requires: the loop is not marked and carries no reduction; no parallel loop is inside it, and no
              parallel, vectorised or bound loop around it.
    """

    __slots__ = ()
    _kind = ForKind.PARALLEL


@dataclass(frozen=True, slots=True)
class Bind(Primitive):
    """Let a GPU's block or thread index be a loop.

    Rewrite:  for i in 0..n: S   ->   S[i := index], launched with n blocks (threads)
              where n threads are fewer than the group has: if index < n: S[i := index]
    Requires: the loop is not marked and carries no reduction; no other loop of the stage has the
              same index; no parallel or vectorised loop is around it; around a block are only
              blocks, and they are around all that a stage at the root does.
    Virtual threads, which compute what is far apart, are an order (block, thread, virtual thread,
    inner) and an unrolled loop; split_axis lets each thread have the parts in one local buffer.
    """

    stage: str
    loop: str
    index: ForKind

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the loop may not be bound."""
        _check(self, state, self.stage, self.loop, self.index)
        if self.index not in _BINDABLE:
            raise refuse(
                self, state, f"{self.index.value} is not an index of a GPU", "use its own step"
            )
        for loop, kind in state.stage(self.stage).marks:
            if kind is self.index:
                raise refuse(self, state, f"{kind.value} is bound already", "", (self.stage, loop))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loop marked."""
        return state.with_stage(state.stage(self.stage).with_mark(self.loop, self.index))
