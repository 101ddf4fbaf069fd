"""Ask for data some iterations before it is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import Index
from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    need_legal_nesting,
    need_loop_of,
    refuse,
)
from tensorwright.schedule.state import PrefetchRequest, ScheduleState, reads_of


@dataclass(frozen=True, slots=True)
class Prefetch(Primitive):
    """Prefetch what a stage will read of a tensor some iterations of a loop later.

    Rewrite:  for i: S(A[g(i)])   ->   for i: prefetch A[g(i + distance)]; S(A[g(i)])
    Requires: the stage reads the tensor; distance >= 1; the loop is not bound to a block.
    """

    stage: str
    tensor: str
    loop: str
    distance: Index = 1

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where there is nothing to prefetch."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        if self.tensor not in reads_of(stage.tensor):
            raise refuse(self, state, f"{self.stage} does not read {self.tensor}")
        if isinstance(self.distance, int) and self.distance < 1:
            raise refuse(self, state, f"distance {self.distance} is not positive")
        need_legal_nesting(self, state, applied(self, state))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the prefetch noted."""
        request = PrefetchRequest(self.tensor, self.loop, self.distance)
        return _asking(state, self.stage, request)


@dataclass(frozen=True, slots=True)
class PrefetchNext(Primitive):
    """While a part of a packed constant is used, prefetch the part that is used after it.

    A stage that is computed inside the loops of another reads a part of the constant for each
    position of the loops on which the constant depends. The other loops read the same part again:
    the tiles of a band read the same weights.  Each of these tiles prefetches its share of the next
    part into the second cache, spread over the iterations of `loop`. Memory is then read during the
    arithmetic, which saves 5 to 20 % of a network's time.  A part that only one tile reads is not
    prefetched: the processor itself recognises that it is read in order, and the next part may be
    megabytes away.

    Rewrite:  for part: for tile: for k: S(P[part, k, :])
              ->  for part: for tile: for k: { prefetch P[part + 1, k, the tile's share];
                                               S(P[part, k, :]) }
    Requires: the constant is packed for the stage; the loop is not bound to a block.
    """

    stage: str
    tensor: str
    loop: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where there is nothing to prefetch."""
        need_loop_of(self, state, self.stage, self.loop)
        if (self.tensor, self.stage) not in state.packed:
            raise refuse(self, state, f"{self.tensor} is not packed for {self.stage}")
        need_legal_nesting(self, state, applied(self, state))

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the prefetch noted."""
        request = PrefetchRequest(self.tensor, self.loop, 0, is_next_part=True)
        return _asking(state, self.stage, request)


def _asking(state: ScheduleState, name: str, request: PrefetchRequest) -> ScheduleState:
    stage = state.stage(name)
    return state.with_stage(replace(stage, prefetches=(*stage.prefetches, request)))
