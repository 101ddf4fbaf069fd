"""Choose whether the threads of a group share a tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.execution import Scope
from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    need_legal_nesting,
    need_stage,
    refuse,
)
from tensorwright.schedule.state import ScheduleState
from tensorwright.schedule.tails import need_whole_tiles


@dataclass(frozen=True, slots=True)
class SetScope(Primitive):
    """Let all threads of a group share a tensor, or each have its own.

    Rewrite:  for t @thread.x: { local P: P[part of t] = ..; C = .. P[..] }
              ->  shared P: for t @thread.x: { P[my share] = ..; barrier; C = .. P[..]; barrier }
    Requires: the stage is not an output; the scope is local or shared; tiles that are promised to
              be whole stay so.
    The scope is that of the tensor's memory inside a loop: a tensor that is computed whole, at the
    root, lives in main memory.  A tensor that several threads touch is shared, whatever scope is
    asked for.
    """

    stage: str
    scope: Scope

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the tensor may not live there."""
        need_stage(self, state, self.stage)
        if self.stage in state.outputs:
            raise refuse(self, state, f"{self.stage} is an output: its memory is the caller's")
        if self.scope is Scope.GLOBAL:
            reason = "what is computed inside a loop has no memory of the whole call"
            raise refuse(self, state, reason, "local or shared")
        # Theorem: the part that all threads of a group read holds the part that each of them reads,
        # so computing it gives every reader the same numbers.
        changed = applied(self, state)
        need_legal_nesting(self, state, changed)
        need_whole_tiles(self, state, changed)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the scope noted."""
        return state.with_stage(replace(state.stage(self.stage), scope=self.scope))
