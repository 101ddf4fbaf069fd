"""Share out a reduction over blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorwright.expr import Index, ceil_div
from tensorwright.schedule.execution import ForKind
from tensorwright.schedule.primitive import Primitive, need_loop_of, refuse
from tensorwright.schedule.primitives.groups.compound import Compound
from tensorwright.schedule.primitives.marks import Bind
from tensorwright.schedule.primitives.rfactor import Rfactor
from tensorwright.schedule.primitives.split import Split, loop_extent
from tensorwright.schedule.state import AtRoot, ScheduleState, own_loops


@dataclass(frozen=True, slots=True)
class SplitReduction(Compound):
    """Let blocks fold parts of a reduction, and a second launch fold their results.

    Rewrite:  C[i] = sum over k in 0..n of e(i, k)    with p parts
              ->  for b in 0..p @block.z: C_rf[b, i] = sum over k_i of e(i, b*ceil(n/p) + k_i)
                  C[i] = sum over b of C_rf[b, i]
    Requires: the stage is at the root and not scheduled yet; the loop is one of its reduction;
              parts >= 1.  Float sums are reassociated.
    Small outputs have fewer blocks than a card has multiprocessors; the reduction has more.
    Source:   Osama et al.: Stream-K, PPoPP 2023, section 2 (split-k).
    """

    stage: str
    loop: str
    parts: Index

    @property
    def partial(self) -> str:
        """The name of the stage of partial results."""
        return f"{self.stage}_rf"

    def need(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the steps cannot be named."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        here = (self.stage, self.loop)
        if self.loop not in stage.reduce_loops:
            raise refuse(self, state, f"loop {self.loop} carries no reduction", "", here)
        if isinstance(self.parts, int) and self.parts < 1:
            raise refuse(self, state, f"{self.parts} parts are too few", "1 or more", here)
        if not isinstance(stage.placement, AtRoot):
            reason = f"{self.stage} is computed inside {stage.placement.stage}"
            raise refuse(self, state, reason, "split it before it is placed", here)
        if stage.loops != own_loops(stage.tensor):
            raise refuse(self, state, f"{self.stage} is already scheduled", "do this first", here)

    def steps(self, state: ScheduleState) -> Iterator[Primitive]:
        """Split, factor, bind."""
        stage = state.stage(self.stage)
        extent = loop_extent(state, stage, self.loop)
        split = Split(self.stage, self.loop, (ceil_div(extent, self.parts),))
        part = split.children[0]
        yield split
        yield Rfactor(self.stage, part, 0)
        yield Bind(self.partial, part, ForKind.BLOCK_Z)
