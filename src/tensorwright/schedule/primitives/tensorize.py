"""Let one hardware instruction do the work of the innermost loops."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.execution import ForKind
from tensorwright.schedule.intrinsics import (
    INTRINSICS,
    difference_of_loops,
    difference_of_operands,
    find_meaning,
)
from tensorwright.schedule.primitive import Primitive, attached_stages, need_loop_of, refuse
from tensorwright.schedule.state import AtRoot, ScheduleState


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

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the loops do not do what the intrinsic does."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        here = (self.stage, self.loop)
        meaning = find_meaning(self.intrinsic)
        if meaning is None:
            names = ", ".join(each.name for each in INTRINSICS)
            raise refuse(self, state, f"there is no intrinsic {self.intrinsic}", f"one of {names}")
        inner = stage.loops[stage.loops.index(self.loop) :]
        marked = next((each for each in inner if stage.kind(each) is not ForKind.SERIAL), None)
        if marked is not None:
            reason = f"loop {marked} is already marked, and the intrinsic replaces it"
            raise refuse(self, state, reason, "tensorize without that mark", (self.stage, marked))
        for guest in attached_stages(state, self.stage):
            if not isinstance(guest.placement, AtRoot) and guest.placement.loop in inner:
                reason = f"{guest.name} is computed in {guest.placement.loop}, which is replaced"
                raise refuse(self, state, reason, "", (self.stage, guest.placement.loop))
        # Theorem: equal folds of equal expressions over equal boxes, whose operands lie at equal
        # distances, read and write the same elements and compute the same.
        difference = difference_of_loops(meaning, state, stage, self.loop)
        if difference:
            raise refuse(self, state, difference, "split and reorder the loops first", here)
        guards = analyse(state).nests[self.stage].guards
        if guards is not True:
            raise refuse(self, state, f"the loops are guarded by {guards}", "", here)
        difference = difference_of_operands(meaning, state, stage, self.loop)
        if difference:
            raise refuse(self, state, difference, "", (self.stage, ""))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops standing for the intrinsic."""
        stage = state.stage(self.stage)
        return state.with_stage(replace(stage, intrinsic=(self.loop, self.intrinsic)))
