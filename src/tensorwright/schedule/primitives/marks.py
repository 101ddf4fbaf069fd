"""How the iterations of a loop run: unroll, vectorize, parallel, bind.

Let one hardware instruction do the work of the innermost loops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tensorwright.expr import Combiner
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.intrinsics import (
    INTRINSICS,
    difference_of_loops,
    difference_of_operands,
    find_meaning,
)
from tensorwright.schedule.memory_layout import BLOCKS, THREADS, ForKind
from tensorwright.schedule.primitive import (
    Checks,
    Primitive,
    attached_stages,
    need_legal_nesting,
)
from tensorwright.schedule.state import AtRoot, ScheduleState
from tensorwright.schedule.tails import need_whole_tiles

_BINDABLE = BLOCKS | THREADS
_FOLDS = frozenset((Combiner.SUM, Combiner.PROD, Combiner.MAX, Combiner.MIN))


def _check(at: Checks, name: str, loop: str, kind: ForKind) -> None:
    stage = at.loop_of(name, loop)
    at.need_serial(stage, loop)
    at.need_unpipelined(stage, loop)
    if loop in stage.replaced_loops:
        at.need_plain_loops(stage, loop)
    need_legal_nesting(at)
    if kind in _BINDABLE or loop in stage.overlapping_loops:
        need_whole_tiles(at)  # shared parts are of all threads
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
    raise at.refuse(reason, remedy, (name, loop))


@dataclass(frozen=True, slots=True)
class _Mark(Primitive):
    """One mark on one loop."""

    stage: str
    loop: str

    _kind: ClassVar[ForKind]

    def _need(self, at: Checks) -> None:
        _check(at, self.stage, self.loop, self._kind)

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

    def _need(self, at: Checks) -> None:
        _check(at, self.stage, self.loop, self.index)
        if self.index not in _BINDABLE:
            raise at.refuse(f"{self.index.value} is not an index of a GPU", "use its own step")
        for loop, kind in at.state.stage(self.stage).marks:
            if kind is self.index:
                raise at.refuse(f"{kind.value} is bound already", "", (self.stage, loop))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loop marked."""
        return state.with_stage(state.stage(self.stage).with_mark(self.loop, self.index))


@dataclass(frozen=True, slots=True)
class Tensorize(Primitive):
    """Replace the loops from one inwards by an intrinsic.

    Rewrite:  for q in 0..16: for m in 0..4: C[q] += i32(A[m]) * i32(B[q, m])
              ->   dot4_u8i8_i32(&C[0], &A[0], &B[0, 0])
    Requires: the loops from `loop` inwards are those of the intrinsic's meaning, with its extents,
              are not marked and have nothing computed in them; the stage folds as the meaning does,
              its expression is that of the meaning, and its operands have the same strides along
              the loops (constants packed by an earlier pack_constant do); a result of several axes
              is computed inside another stage, where its tiles are laid out one after another, and
              for all sizes as a whole.
    Source:   TVM's tensorize (Chen et al., OSDI 2018, section 4.3).
    """

    stage: str
    loop: str
    intrinsic: str

    @property
    def is_of_floats(self) -> bool:
        """Whether the sums are floats."""
        meaning = find_meaning(self.intrinsic)
        return meaning is not None and meaning.dtype.is_float

    def _need(self, at: Checks) -> None:
        stage = at.loop_of(self.stage, self.loop)
        meaning = find_meaning(self.intrinsic)
        if meaning is None:
            names = ", ".join(each.name for each in INTRINSICS)
            raise at.refuse(f"there is no intrinsic {self.intrinsic}", f"one of {names}")
        inner = stage.loops[stage.loops.index(self.loop) :]
        marked = next((each for each in inner if stage.kind(each) is not ForKind.SERIAL), None)
        if marked is not None:
            reason = f"loop {marked} is already marked, and the intrinsic replaces it"
            raise at.refuse(reason, "tensorize without that mark", (self.stage, marked))
        for guest in attached_stages(at.state, self.stage):
            if not isinstance(guest.placement, AtRoot) and guest.placement.loop in inner:
                reason = f"{guest.name} is computed in {guest.placement.loop}, which is replaced"
                raise at.refuse(reason, "", (self.stage, guest.placement.loop))
        # Theorem: equal folds of equal expressions over equal boxes, whose operands lie at equal
        # distances, read and write the same elements and compute the same.
        difference = difference_of_loops(meaning, at.state, stage, self.loop)
        if difference:
            raise at.refuse(difference, "split and reorder the loops first", at.here)
        guards = analyse(at.state).nests[self.stage].guards
        if guards is not True:
            raise at.refuse(f"the loops are guarded by {guards}", "", at.here)
        difference = difference_of_operands(meaning, at.state, stage, self.loop)
        if difference:
            raise at.refuse(difference, "", (self.stage, ""))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops standing for the intrinsic."""
        stage = state.stage(self.stage)
        return state.with_stage(replace(stage, intrinsic=(self.loop, self.intrinsic)))
