"""Choose where a reduction starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    attached_stages,
    need_legal_nesting,
    need_loop_of,
    need_plain_loops,
    refuse,
)
from tensorwright.schedule.state import After, ScheduleState


@dataclass(frozen=True, slots=True)
class DecomposeReduction(Primitive):
    """Start the reduction of all elements of a loop's body at once, before the loops that fold.

    Rewrite:  for i: for j: { C = 0; for k: C += .. }
              ->  for i: { for j: C = 0;  for j: for k: C += .. }
    Requires: the stage folds; no reduction loop is outside of the loop; no stage is placed after a
              tile of the loop's or an inner loop's body; the loop is not bound to a block.
    Without this step the reduction starts in front of the outermost reduction loop.
    """

    stage: str
    loop: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the reduction may not start there."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        here = (self.stage, self.loop)
        need_plain_loops(self, state, stage, self.loop)
        if stage.tensor.reduction is None:
            raise refuse(self, state, f"{self.stage} folds nothing", "", here)
        # Theorem: the start is right in front of any loop that no reduction loop encloses: inside
        # of one it would throw away what the earlier iterations folded.
        around = stage.loops[: stage.loops.index(self.loop)]
        late = [loop for loop in around if loop in stage.reduce_loops]
        if late:
            raise refuse(self, state, f"the reduction has begun in {late[0]}", "choose it", here)
        inside = stage.loops[len(around) :]
        for inner in attached_stages(state, self.stage):
            if isinstance(inner.placement, After) and inner.placement.loop in inside:
                reason = f"{inner.name} waits for a tile that would start outside of it"
                raise refuse(self, state, reason, f"choose a loop inside {inside[0]}", here)
        need_legal_nesting(self, state, applied(self, state))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the start in front of the loop."""
        return state.with_stage(replace(state.stage(self.stage), init_at=self.loop))
