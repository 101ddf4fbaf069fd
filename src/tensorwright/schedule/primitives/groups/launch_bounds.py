"""Ask that several groups run on a multiprocessor at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.primitive import Primitive, need_stage, refuse
from tensorwright.schedule.state import AtRoot, ScheduleState


@dataclass(frozen=True, slots=True)
class LaunchBounds(Primitive):
    """Let the compiler give each thread so few registers that some groups fit at once.

    Rewrite:  for b @block.x: for t @thread.x: S  ->  for b @block.x: for t @thread.x:
                                                        launch bounds: groups; S
    Requires: the stage is at the root, the launch is its; groups >= 1.
    Source:   NVIDIA, CUDA C++ Programming Guide, launch bounds.
    """

    stage: str
    groups: int

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where there is no launch to bound."""
        stage = need_stage(self, state, self.stage)
        # Theorem: the number of registers changes no result.
        if not isinstance(stage.placement, AtRoot):
            reason = f"{self.stage} is computed in the launch of {stage.placement.stage}"
            raise refuse(self, state, reason, "name the stage around it")
        if self.groups < 1:
            raise refuse(self, state, f"{self.groups} groups are too few", "1 or more")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the number noted."""
        return state.with_stage(replace(state.stage(self.stage), groups=self.groups))
