"""Choose where a reduction starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.primitive import need_loop, need_stage, refuse
from tensorwright.schedule.state import ScheduleState
from tensorwright.schedule.text import step_text


@dataclass(frozen=True, slots=True)
class DecomposeReduction:
    """Start the reduction of all elements of a loop's body at once, before the loops that fold.

    Rewrite:  for i: for j: { C = 0; for k: C += .. }   ->   for i: { for j: C = 0;  for j: for k: C
              += .. }
    Requires: the stage folds; no reduction loop is outside of the loop.
    Without this step the reduction starts in front of the outermost reduction loop.
    """

    stage: str
    loop: str

    def __str__(self) -> str:
        return step_text(self)

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the reduction may not start there."""
        stage = need_stage(self, state, self.stage)
        need_loop(self, state, stage, self.loop)
        here = (self.stage, self.loop)
        if stage.tensor.reduction is None:
            raise refuse(self, state, f"{self.stage} folds nothing", "", here)
        # Theorem: the start is right in front of any loop that no reduction loop encloses: inside
        # of one it would
        # throw away what the earlier iterations folded.
        around = stage.loops[: stage.loops.index(self.loop)]
        late = [loop for loop in around if loop in stage.reduce_loops]
        if late:
            raise refuse(self, state, f"the reduction has begun in {late[0]}", "choose it", here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the start in front of the loop."""
        return state.with_stage(replace(state.stage(self.stage), init_at=self.loop))
