"""Split one loop into several nested ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tensorwright.expr import Index, decisions_of, is_nonnegative
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.execution import ForKind
from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    move_attached,
    moved_prefetches,
    need_loop_of,
    need_new_loops,
    need_plain_loops,
    need_unpipelined,
    refuse,
)
from tensorwright.schedule.state import AtRoot, ScheduleState, SplitRelation, Stage, Tail
from tensorwright.schedule.tails import is_zero, need_whole_tiles


@dataclass(frozen=True, slots=True)
class Split(Primitive):
    """Split one loop into an outer and inner loops.

    Rewrite:  for i in 0..n: S   ->   for i_o in 0..ceil(n/f): for i_i in 0..f: if i_o*f + i_i < n:
              S[i := i_o*f + i_i]
              With several factors the loops are i_0, i_1, ...; factors[k] is the extent of i_(k+1).
              tail=guard  keeps the `if` (it vanishes where f divides n)
              tail=shift  starts the last tile at n - f: whole tiles, some elements computed twice
              tail=exact  promises that f divides n
    Requires: every factor >= 1; the loop carries no mark and is not pipelined;
              exact: the product of the factors divides n;
              shift: n >= f, and neither the stage nor one placed after its tile folds.
    Source:   Halide's split and its TailStrategy (Ragan-Kelley et al., PLDI 2013).
    """

    stage: str
    loop: str
    factors: tuple[Index, ...]
    tail: Tail = Tail.GUARD

    @property
    def children(self) -> tuple[str, ...]:
        """The names of the new loops, outermost first."""
        if len(self.factors) == 1:
            return (f"{self.loop}_o", f"{self.loop}_i")
        return tuple(f"{self.loop}_{n}" for n in range(len(self.factors) + 1))

    def extent(self, state: ScheduleState) -> Index:
        """The extent of the loop that is split."""
        return loop_extent(state, state.stage(self.stage), self.loop)

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the split is illegal."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        here = (self.stage, self.loop)
        if not self.factors:
            raise refuse(self, state, "no factor is given", "give the extent of each inner loop")
        for factor in self.factors:
            if isinstance(factor, int) and factor < 1:
                raise refuse(self, state, f"factor {factor} is not positive", "", here)
        if stage.kind(self.loop) is not ForKind.SERIAL:
            raise refuse(self, state, f"loop {self.loop} is already marked", "split it first", here)
        need_plain_loops(self, state, stage, self.loop)
        need_unpipelined(self, state, stage, self.loop)
        need_new_loops(self, state, stage, self.children)
        self._check_tail(state, stage)
        need_whole_tiles(self, state, applied(self, state))

    def _check_tail(self, state: ScheduleState, stage: Stage) -> None:
        here = (self.stage, self.loop)
        # Theorem: a shifted tile computes some elements twice.  That is harmless where computing is
        # assignment of the same value; a fold in memory would start again while another tile reads
        # it, or take the same terms twice.
        if self.tail is Tail.SHIFT and stage.tensor.reduction is not None:
            reason = f"{self.stage} folds, and a shifted tile would fold elements twice"
            raise refuse(self, state, reason, "use tail guard, or cache_write first", here)
        if self.tail is Tail.GUARD:
            return
        extent = self.extent(state)
        total = prod(self.factors, start=1)
        if decisions_of(extent, total):
            return
        if self.tail is Tail.EXACT and not is_zero(extent % total):
            reason = f"{total} does not divide the extent {extent} of {self.loop}"
            raise refuse(self, state, reason, "use tail guard or shift", here)
        if self.tail is Tail.SHIFT and not is_nonnegative(extent - total):
            reason = f"a tile of {total} is longer than the extent {extent} of {self.loop}"
            raise refuse(self, state, reason, "use a smaller factor or tail guard", here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loop split; stages placed in it move to the innermost new loop."""
        stage = state.stage(self.stage)
        at = stage.loops.index(self.loop)
        loops = stage.loops[:at] + self.children + stage.loops[at + 1 :]
        relation = SplitRelation(self.loop, self.children, self.factors, self.tail)
        outermost, innermost = self.children[0], self.children[-1]
        changed = replace(
            stage,
            loops=loops,
            relations=(*stage.relations, relation),
            init_at=outermost if stage.init_at == self.loop else stage.init_at,
            prefetches=moved_prefetches(stage, self.loop, innermost),
        )
        return move_attached(state.with_stage(changed), self.stage, self.loop, innermost)


def loop_extent(state: ScheduleState, stage: Stage, loop: str) -> Index:
    """The extent of a loop: cheap for an axis of a reduction, which every placement folds whole,
    and for one of a stage at the root; else by analysis.
    """
    spatial = stage.tensor.axes if isinstance(stage.placement, AtRoot) else ()
    for axis in (*spatial, *stage.tensor.reduce_axes):
        if axis.name == loop:
            return axis.extent
    return analyse(state).nests[stage.name].extents[loop]
