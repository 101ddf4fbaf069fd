"""Fuse adjacent loops into one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.primitive import guests, need_loop, need_new_loops, need_stage, refuse
from tensorwright.schedule.state import After, At, FuseRelation, ScheduleState
from tensorwright.schedule.text import step_text


@dataclass(frozen=True, slots=True)
class Fuse:
    """Fuse nested loops into one.

    Rewrite:  for i in 0..n: for j in 0..m: S   ->   for i_j in 0..n*m: S[i := i_j // m, j := i_j %
              m]
    Requires: at least two loops, next to each other and in their order; none is marked; all belong
              to a reduction or
              none does; no stage is placed inside one of them but the last.
    """

    stage: str
    loops: tuple[str, ...]

    def __str__(self) -> str:
        return step_text(self)

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
            if stage.mark(loop) is not None:
                here = (self.stage, loop)
                raise refuse(self, state, f"loop {loop} is already marked", "fuse first", here)
        start = stage.loops.index(self.loops[0])
        if stage.loops[start : start + len(self.loops)] != self.loops:
            order = ", ".join(stage.loops)
            raise refuse(self, state, f"the loops are not adjacent in {order}", "reorder them")
        reducing = [loop in stage.reduce_loops for loop in self.loops]
        if any(reducing) and not all(reducing):
            raise refuse(self, state, "only some of the loops carry a reduction")
        for guest in guests(state, self.stage):
            if isinstance(guest.placement, (At, After)) and guest.placement.loop in self.loops[:-1]:
                raise refuse(self, state, f"{guest.name} is computed between the loops")
        need_new_loops(self, state, stage, (self.fused,))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops fused; stages placed in the last of them move along."""
        stage = state.stage(self.stage)
        start = stage.loops.index(self.loops[0])
        loops = (*stage.loops[:start], self.fused, *stage.loops[start + len(self.loops) :])
        relation = FuseRelation(self.loops, self.fused)
        changed = state.with_stage(
            replace(stage, loops=loops, relations=(*stage.relations, relation))
        )
        for guest in guests(state, self.stage):
            placement = guest.placement
            if isinstance(placement, (At, After)) and placement.loop == self.loops[-1]:
                moved = replace(placement, loop=self.fused)
                changed = changed.with_stage(replace(guest, placement=moved))
        return changed
