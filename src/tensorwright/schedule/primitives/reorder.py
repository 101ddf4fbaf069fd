"""Change the order of the loops of a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    attached_stages,
    find_stranded,
    need_legal_nesting,
    need_loop,
    need_plain_loops,
    need_stage,
    refuse,
)
from tensorwright.schedule.state import After, ScheduleState, Stage
from tensorwright.schedule.tails import need_whole_tiles


@dataclass(frozen=True, slots=True)
class Reorder(Primitive):
    """Put loops into a new order; loops that are not named keep their places.

    Rewrite:  for i: for j: S   ->   for j: for i: S
    Requires: the loops are different leaf loops of one stage; no reduction loop moves outside of a
              loop that holds a stage placed after the finished tile, or of the loop in which the
              reduction starts, nor that loop outside of the stage placed after; every stage placed
              in a loop stays around its readers; no vectorised or parallel loops nest.
    """

    stage: str
    loops: tuple[str, ...]

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the order is illegal."""
        stage = need_stage(self, state, self.stage)
        for loop in self.loops:
            need_loop(self, state, stage, loop)
        if len(set(self.loops)) != len(self.loops):
            raise refuse(self, state, "a loop is named twice")
        need_plain_loops(self, state, stage)
        order = self._order(stage)
        # Theorem: the elements of a tensor are computed independently and a fold takes its terms in
        # any order, so every order of the loops computes the same; only the start of a fold, a
        # stage that waits for a finished tile and one that a loop's body reads restrict it.
        for inner in attached_stages(state, self.stage):
            if isinstance(inner.placement, After):
                outside = order[: order.index(inner.placement.loop) + 1]
                late = [loop for loop in outside if loop in stage.reduce_loops]
                if late:
                    reason = (
                        f"{inner.name} runs inside {inner.placement.loop}, before {late[0]} ends"
                    )
                    raise refuse(self, state, reason, "", (self.stage, late[0]))
        self._check_start(state, stage, order)
        changed = applied(self, state)
        need_legal_nesting(self, state, changed)
        need_whole_tiles(self, state, changed)
        stranded = find_stranded(changed)
        if stranded is not None:
            placed, reader = stranded
            reason = f"{reader.name} would read {placed.name} outside of the loop that computes it"
            raise refuse(self, state, reason)

    def _check_start(self, state: ScheduleState, stage: Stage, order: tuple[str, ...]) -> None:
        if not stage.init_at:
            return
        start = order.index(stage.init_at)
        for loop in order[:start]:
            if loop in stage.reduce_loops:
                reason = f"the reduction starts at {stage.init_at}, inside {loop}"
                raise refuse(self, state, reason, "", (self.stage, loop))
        for inner in attached_stages(state, self.stage):
            if isinstance(inner.placement, After) and inner.placement.loop in order[start:]:
                reason = f"{inner.name} waits for a tile that starts outside of it"
                raise refuse(self, state, reason, "", (self.stage, inner.placement.loop))

    def _order(self, stage: Stage) -> tuple[str, ...]:
        moved = iter(self.loops)
        return tuple(next(moved) if loop in self.loops else loop for loop in stage.loops)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops in the new order."""
        stage = state.stage(self.stage)
        return state.with_stage(replace(stage, loops=self._order(stage)))
