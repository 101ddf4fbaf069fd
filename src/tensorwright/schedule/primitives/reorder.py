"""Change the order of the loops of a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.primitive import guests, need_loop, need_stage, refuse
from tensorwright.schedule.state import After, ScheduleState, Stage
from tensorwright.schedule.text import step_text


@dataclass(frozen=True, slots=True)
class Reorder:
    """Put loops into a new order; loops that are not named keep their places.

    Rewrite:  for i: for j: S   ->   for j: for i: S
    Requires: the loops are different leaf loops of one stage; no reduction loop moves outside of a
              loop that holds a
              stage placed after the finished tile.
    """

    stage: str
    loops: tuple[str, ...]

    def __str__(self) -> str:
        return step_text(self)

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the order is illegal."""
        stage = need_stage(self, state, self.stage)
        for loop in self.loops:
            need_loop(self, state, stage, loop)
        if len(set(self.loops)) != len(self.loops):
            raise refuse(self, state, "a loop is named twice")
        order = self._order(stage)
        # Theorem: the elements of a tensor are computed independently and a fold takes its terms in
        # any order, so
        # every order of the loops computes the same; only a stage that waits for a finished tile
        # restricts it.
        for guest in guests(state, self.stage):
            if isinstance(guest.placement, After):
                outside = order[: order.index(guest.placement.loop) + 1]
                late = [loop for loop in outside if loop in stage.reduce_loops]
                if late:
                    reason = (
                        f"{guest.name} runs inside {guest.placement.loop}, before {late[0]} ends"
                    )
                    raise refuse(self, state, reason, "", (self.stage, late[0]))

    def _order(self, stage: Stage) -> tuple[str, ...]:
        moved = iter(self.loops)
        return tuple(next(moved) if loop in self.loops else loop for loop in stage.loops)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops in the new order."""
        stage = state.stage(self.stage)
        return state.with_stage(replace(stage, loops=self._order(stage)))
