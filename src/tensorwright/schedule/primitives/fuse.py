"""Fuse adjacent loops into one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.execution import ForKind
from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    attached_stages,
    move_attached,
    moved_prefetches,
    need_loop,
    need_new_loops,
    need_plain_loops,
    need_stage,
    need_unpipelined,
    refuse,
)
from tensorwright.schedule.state import After, At, FuseRelation, ScheduleState
from tensorwright.schedule.tails import need_whole_tiles


@dataclass(frozen=True, slots=True)
class Fuse(Primitive):
    """Fuse nested loops into one.

    Rewrite:  for i in 0..n: for j in 0..m: S   ->   for i_j in 0..n*m: S[i := i_j // m, j := i_j %
              m]
    Requires: at least two loops, next to each other and in their order; none is marked or
              pipelined; all belong to a reduction or none does; no stage is placed inside one of
              them but the last; the start of the reduction is not between them.
    """

    stage: str
    loops: tuple[str, ...]

    @property
    def fused(self) -> str:
        """The name of the new loop."""
        return "_".join(self.loops)

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the fusion is illegal."""
        stage = need_stage(self, state, self.stage)
        if len(self.loops) < 2:
            raise refuse(self, state, "fusing takes at least two loops")
        for loop in self.loops:
            need_loop(self, state, stage, loop)
            if stage.kind(loop) is not ForKind.SERIAL:
                here = (self.stage, loop)
                raise refuse(self, state, f"loop {loop} is already marked", "fuse first", here)
        start = stage.loops.index(self.loops[0])
        if stage.loops[start : start + len(self.loops)] != self.loops:
            order = ", ".join(stage.loops)
            raise refuse(self, state, f"the loops are not adjacent in {order}", "reorder them")
        reducing = [loop in stage.reduce_loops for loop in self.loops]
        if any(reducing) and not all(reducing):
            raise refuse(self, state, "only some of the loops carry a reduction")
        for inner in attached_stages(state, self.stage):
            if isinstance(inner.placement, (At, After)) and inner.placement.loop in self.loops[:-1]:
                raise refuse(self, state, f"{inner.name} is computed between the loops")
        if stage.init_at in self.loops[1:]:
            raise refuse(self, state, f"the reduction starts between the loops, at {stage.init_at}")
        need_plain_loops(self, state, stage, self.loops[0])
        need_unpipelined(self, state, stage, *self.loops)
        need_new_loops(self, state, stage, (self.fused,))
        need_whole_tiles(self, state, applied(self, state))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops fused; stages placed in the last of them move along."""
        stage = state.stage(self.stage)
        start = stage.loops.index(self.loops[0])
        loops = (*stage.loops[:start], self.fused, *stage.loops[start + len(self.loops) :])
        relation = FuseRelation(self.loops, self.fused)
        changed = replace(
            stage,
            loops=loops,
            relations=(*stage.relations, relation),
            init_at=self.fused if stage.init_at == self.loops[0] else stage.init_at,
            prefetches=moved_prefetches(stage, self.loops[-1], self.fused),
        )
        return move_attached(state.with_stage(changed), self.stage, self.loops[-1], self.fused)
