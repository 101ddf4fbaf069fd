"""Let all threads of a group compute a tensor together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorwright.expr import Index
from tensorwright.schedule.execution import ForKind
from tensorwright.schedule.primitive import Primitive, attached_stages, need_stage, refuse
from tensorwright.schedule.primitives.fuse import Fuse
from tensorwright.schedule.primitives.groups.compound import Compound
from tensorwright.schedule.primitives.marks import Bind, Vectorize
from tensorwright.schedule.primitives.split import Split
from tensorwright.schedule.state import ScheduleState

_INDICES = (ForKind.THREAD_Z, ForKind.THREAD_Y, ForKind.THREAD_X)


@dataclass(frozen=True, slots=True)
class Cooperate(Compound):
    """Share out all iterations of a stage over the threads, some lanes to each at a time.

    Rewrite:  for d0: for d1: P[d0, d1] = A[..]   with threads [y, x] and vector v
              ->  for p_0: for p_1 in 0..y @thread.y: for p_2 in 0..x @thread.x:
                    for p_3 in 0..v @vectorize: P[d0, d1] = A[..]
                  where d0*n1 + d1 = ((p_0*y + p_1)*x + p_2)*v + p_3
    Requires: one to three numbers of threads, the last is that of thread.x; the stage has loops,
              folds nothing, none of its loops is marked and nothing is placed in them.
    Neighbouring threads fetch neighbouring addresses, whatever the shape of the tensor's part.
    Source:   Zheng et al.: Ansor, OSDI 2020, section 4.2 (cooperative fetching).
    """

    stage: str
    threads: tuple[Index, ...]
    vector: Index = 1

    def need(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the steps cannot be named."""
        stage = need_stage(self, state, self.stage)
        if not 1 <= len(self.threads) <= len(_INDICES):
            raise refuse(self, state, f"{len(self.threads)} numbers of threads", "one to three")
        if not stage.loops:
            raise refuse(self, state, f"{self.stage} has no loops to share out")
        if stage.tensor.reduction is not None:
            reason = f"{self.stage} folds: its threads would share out one sum"
            raise refuse(self, state, reason, "cache_read what it reads, and share out the copy")
        placed = attached_stages(state, self.stage)
        if placed:
            raise refuse(self, state, f"{placed[0].name} is computed inside {self.stage}")

    def steps(self, state: ScheduleState) -> Iterator[Primitive]:
        """Fuse, split, bind, vectorise."""
        loop = state.stage(self.stage).loops[0]
        if len(state.stage(self.stage).loops) > 1:
            fuse = Fuse(self.stage, state.stage(self.stage).loops)
            loop = fuse.fused
            yield fuse
        has_lanes = self.vector != 1
        split = Split(self.stage, loop, (*self.threads, *((self.vector,) if has_lanes else ())))
        yield split
        inner = split.children[1:]
        for index, child in zip(_INDICES[-len(self.threads) :], inner, strict=False):
            yield Bind(self.stage, child, index)
        if has_lanes:
            yield Vectorize(self.stage, inner[-1])
