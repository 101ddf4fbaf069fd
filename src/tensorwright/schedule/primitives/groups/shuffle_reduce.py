"""Fold over the lanes of a warp, without memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import (
    Combiner,
    condition_sides,
    conjuncts,
    free_vars,
    substitute_condition,
)
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.execution import ForKind
from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    need_legal_nesting,
    need_loop_of,
    need_plain_loops,
    need_unpipelined,
    refuse,
)
from tensorwright.schedule.primitives.split import loop_extent
from tensorwright.schedule.state import ScheduleState
from tensorwright.schedule.tails import need_whole_tiles

_FOLDS = frozenset((Combiner.SUM, Combiner.PROD, Combiner.MAX, Combiner.MIN))
MOST_LANES = 32


@dataclass(frozen=True, slots=True)
class ShuffleReduce(Primitive):
    """Let each lane of a warp have one term of a reduction, and the lanes exchange them.

    Rewrite:  for t in 0..32: C[i] += e(i, t)
              ->  for t in 0..32 @thread.x: v = e(i, t);  v = sum of the v of 32 lanes;
                  if t == 0: C[i] = v
    Requires: the loop is the innermost of the stage and its only one of a reduction, serial, not
              pipelined; it has 2, 4, 8, 16 or 32 iterations, each of them with a term; the
              reduction is a sum, product, maximum or minimum, which has no terms to skip and no
              intrinsic; no other loop of the stage is bound to thread.x.  Float sums are
              reassociated.
    Longer reductions are split and factored first (rfactor); the partial results are computed at
    the loop, so that each lane has its own in a register.
    Source:   NVIDIA, CUDA C++ Programming Guide, warp shuffle functions.
    """

    stage: str
    loop: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the lanes may not fold."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        here = (self.stage, self.loop)
        need_plain_loops(self, state, stage, self.loop)
        need_unpipelined(self, state, stage, self.loop)
        folding = [loop for loop in stage.loops if loop in stage.reduce_loops]
        if folding != [self.loop] or stage.loops[-1] != self.loop:
            reason = f"{self.loop} is not the innermost loop and the only one of the reduction"
            raise refuse(self, state, reason, "split and rfactor first", here)
        if stage.kind(self.loop) is not ForKind.SERIAL:
            raise refuse(self, state, f"loop {self.loop} is already marked", "", here)
        if any(kind is ForKind.THREAD_X for _, kind in stage.marks):
            raise refuse(self, state, "thread.x is bound already", "", here)
        extent = loop_extent(state, stage, self.loop)
        is_power = isinstance(extent, int) and extent & (extent - 1) == 0
        if not is_power or not isinstance(extent, int) or not 2 <= extent <= MOST_LANES:
            reason = f"{extent} lanes do not exchange numbers among themselves"
            raise refuse(self, state, reason, "split by 2, 4, 8, 16 or 32", here)
        reduction = stage.tensor.reduction
        if reduction is None or reduction.combiner not in _FOLDS or stage.skips:
            raise refuse(self, state, f"{self.stage} is not a plain fold", "", here)
        analysis = analyse(state)
        nest = analysis.nests[self.stage]
        for part in conjuncts(nest.guards):
            real = substitute_condition(part, analysis.real)
            if nest.variables[self.loop] in free_vars(*condition_sides(real)):
                reason = f"lanes have no term unless {real}"
                raise refuse(self, state, reason, "split by what divides, or rfactor first", here)
        # Theorem: a fold takes its terms in any order, so it may take those of the lanes as a tree,
        # where each of them has one.
        changed = applied(self, state)
        need_legal_nesting(self, state, changed)
        need_whole_tiles(self, state, changed)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loop bound to the lanes."""
        stage = state.stage(self.stage).with_mark(self.loop, ForKind.THREAD_X)
        return state.with_stage(replace(stage, lanes=self.loop))
