"""Fetch for later iterations of a loop while the present one computes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.schedule.execution import CopyMechanism, ForKind
from tensorwright.schedule.pipelining import fetched_in
from tensorwright.schedule.primitive import Primitive, need_loop_of, refuse
from tensorwright.schedule.state import PipelineRequest, ScheduleState


@dataclass(frozen=True, slots=True)
class Pipeline(Primitive):
    """Hide the latency of memory: what a loop fetches is fetched some iterations ahead.

    Rewrite:  for k: { shared S = A[k];  C += f(S) }
              ->  for k: { fetch A[k+1];  C += f(S[k%2]);  S[(k+1)%2] = what was fetched }
              registers  two stages: through registers of the threads
              cp_async   two or more: by copies that go on while threads compute, from sm_80 on
    Requires: the loop is serial and no loop of the stage is pipelined yet; in it, threads compute
              shared tensors together, without folding, from what is whole before the nest begins;
              registers take two stages, cp_async two or more and copies of elements of 4 bytes or
              more.
    The meaning is that of the loop: slots, waits and barriers are made when it is lowered.
    Source:   Huang et al.: ALCOP, MLSys 2023, for pipelines over a memory hierarchy.
    """

    stage: str
    loop: str
    stages: int = 2
    mechanism: CopyMechanism = CopyMechanism.REGISTERS

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where nothing can be fetched ahead."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        here = (self.stage, self.loop)
        if stage.kind(self.loop) is not ForKind.SERIAL:
            raise refuse(self, state, f"loop {self.loop} is not serial", "", here)
        if stage.pipeline is not None:
            raise refuse(self, state, f"loop {stage.pipeline.loop} is pipelined already", "", here)
        if self.stages < 2:
            raise refuse(self, state, f"{self.stages} stages fetch nothing ahead", "2 or more")
        if self.mechanism is CopyMechanism.REGISTERS and self.stages != 2:
            reason = "registers hold what one iteration fetches"
            raise refuse(self, state, reason, "2 stages, or cp_async")
        if not fetched_in(state, self.stage, self.loop, self.mechanism):
            reason = f"no tensor is fetched into shared memory in {self.loop}"
            remedy = "cache_read what it reads, shared, and compute the copy there"
            raise refuse(self, state, reason, remedy, here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the pipeline noted."""
        request = PipelineRequest(self.loop, self.stages, self.mechanism)
        return state.with_stage(replace(state.stage(self.stage), pipeline=request))
