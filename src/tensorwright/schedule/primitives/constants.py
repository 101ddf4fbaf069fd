"""Store a constant in the order in which it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import loads_of
from tensorwright.schedule.primitive import need_stage, refuse
from tensorwright.schedule.state import ScheduleState
from tensorwright.schedule.text import step_text


@dataclass(frozen=True, slots=True)
class PackConstant:
    """Store a constant operand in the order in which the loops of its reader read it.

    Rewrite:  for i: for j: .. W[g(i, j)] ..   ->   P[i, j] = W[g(i, j)], once, when the program is
              built;
                                                    for i: for j: .. P[i, j] ..
    Requires: the tensor is a constant, and the stage is its only reader and reads it in one place.
    """

    tensor: str
    stage: str

    def __str__(self) -> str:
        return step_text(self)

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the constant may not be packed."""
        stage = need_stage(self, state, self.stage)
        if self.tensor not in state.constants:
            reason = f"{self.tensor} is not a constant"
            raise refuse(self, state, reason, "pack only what is known when compiling")
        if any(tensor == self.tensor for tensor, _ in state.packed):
            raise refuse(self, state, f"{self.tensor} is packed already")
        places = {load for load in loads_of(stage.tensor.body) if load.source.name == self.tensor}
        if len(places) != 1:
            reason = f"{self.stage} reads {self.tensor} in {len(places)} places, not one"
            raise refuse(self, state, reason, "", (self.stage, ""))
        if len(state.readers(self.tensor)) != 1:
            raise refuse(self, state, f"{self.tensor} has other readers", "cache_read it first")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the constant packed."""
        return replace(state, packed=tuple(sorted((*state.packed, (self.tensor, self.stage)))))
