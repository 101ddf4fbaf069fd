"""Split one loop into several nested ones.

Fuse adjacent loops into one.

Change the order of the loops of a stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tensorwright.expr import Index, decisions_of, is_nonnegative
from tensorwright.schedule import primitive
from tensorwright.schedule.analysis import analyse
from tensorwright.schedule.state import (
    After,
    At,
    AtRoot,
    FuseRelation,
    ScheduleState,
    SplitRelation,
    Stage,
    Tail,
)
from tensorwright.schedule.tails import is_zero, need_whole_tiles


@dataclass(frozen=True, slots=True)
class Split(primitive.Primitive):
    """Split one loop into an outer and inner loops.

    Rewrite:  for i in 0..n: S   ->   for i_o in 0..ceil(n/f): for i_i in 0..f: if i_o*f + i_i < n:
              S[i := i_o*f + i_i]
              With several factors the loops are i_0, i_1, ...; factors[k] is the extent of i_(k+1).
              tail=guard  keeps the `if` (it vanishes where f divides n)
              tail=shift  starts the last tile at n - f: whole tiles, some elements computed twice
              tail=exact  promises that f divides n
    Requires: every factor >= 1; the loop carries no mark and is not pipelined;
              exact: the product of the factors divides n;
              shift: n >= f, and neither the stage nor one placed after its tile folds.
    Source:   Halide's split and its TailStrategy (Ragan-Kelley et al., PLDI 2013).
    """

    stage: str
    loop: str
    factors: tuple[Index, ...]
    tail: Tail = Tail.GUARD

    @property
    def children(self) -> tuple[str, ...]:
        """The names of the new loops, outermost first."""
        if len(self.factors) == 1:
            return (f"{self.loop}_o", f"{self.loop}_i")
        return tuple(f"{self.loop}_{n}" for n in range(len(self.factors) + 1))

    def extent(self, state: ScheduleState) -> Index:
        """The extent of the loop that is split."""
        return loop_extent(state, state.stage(self.stage), self.loop)

    def _need(self, at: primitive.Checks) -> None:
        stage = at.loop_of(self.stage, self.loop)
        if not self.factors:
            raise at.refuse("no factor is given", "give the extent of each inner loop")
        for factor in self.factors:
            if isinstance(factor, int) and factor < 1:
                raise at.refuse(f"factor {factor} is not positive", "", at.here)
        at.need_serial(stage, self.loop, "split it first")
        at.need_plain_loops(stage, self.loop)
        at.need_unpipelined(stage, self.loop)
        at.need_new_loops(stage, self.children)
        self._check_tail(at, stage)
        need_whole_tiles(at)

    def _check_tail(self, at: primitive.Checks, stage: Stage) -> None:
        # Theorem: a shifted tile computes some elements twice.  That is harmless where computing is
        # assignment of the same value; a fold in memory would start again while another tile reads
        # it, or take the same terms twice.
        if self.tail is Tail.SHIFT and stage.tensor.reduction is not None:
            reason = f"{self.stage} folds, and a shifted tile would fold elements twice"
            raise at.refuse(reason, "use tail guard, or cache_write first", at.here)
        if self.tail is Tail.GUARD:
            return
        extent = self.extent(at.state)
        total = prod(self.factors, start=1)
        if decisions_of(extent, total):
            return
        if self.tail is Tail.EXACT and not is_zero(extent % total):
            reason = f"{total} does not divide the extent {extent} of {self.loop}"
            raise at.refuse(reason, "use tail guard or shift", at.here)
        if self.tail is Tail.SHIFT and not is_nonnegative(extent - total):
            reason = f"a tile of {total} is longer than the extent {extent} of {self.loop}"
            raise at.refuse(reason, "use a smaller factor or tail guard", at.here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loop split; stages placed in it move to the innermost new loop."""
        stage = state.stage(self.stage)
        at = stage.loops.index(self.loop)
        loops = stage.loops[:at] + self.children + stage.loops[at + 1 :]
        relation = SplitRelation(self.loop, self.children, self.factors, self.tail)
        outermost, innermost = self.children[0], self.children[-1]
        changed = replace(
            stage,
            loops=loops,
            relations=(*stage.relations, relation),
            init_at=outermost if stage.init_at == self.loop else stage.init_at,
            masked_in=outermost if stage.masked_in == self.loop else stage.masked_in,
            prefetches=primitive.moved_prefetches(stage, self.loop, innermost),
        )
        return primitive.move_attached(state.with_stage(changed), self.stage, self.loop, innermost)


def loop_extent(state: ScheduleState, stage: Stage, loop: str) -> Index:
    """The extent of a loop: cheap for an axis of a reduction, which every placement folds whole,
    and for one of a stage at the root; else by analysis.
    """
    spatial = stage.tensor.axes if isinstance(stage.placement, AtRoot) else ()
    for axis in (*spatial, *stage.tensor.reduce_axes):
        if axis.name == loop:
            return axis.extent
    return analyse(state).nests[stage.name].extents[loop]


@dataclass(frozen=True, slots=True)
class Fuse(primitive.Primitive):
    """Fuse nested loops into one.

    Rewrite:  for i in 0..n: for j in 0..m: S   ->   for i_j in 0..n*m: S[i := i_j // m, j := i_j %
              m]
    Requires: at least two loops, next to each other and in their order; none is marked or
              pipelined; all belong to a reduction or none does; no stage is placed inside one of
              them but the last; the start of the reduction is not between them.
    """

    stage: str
    loops: tuple[str, ...]

    @property
    def fused(self) -> str:
        """The name of the new loop."""
        return "_".join(self.loops)

    def _need(self, at: primitive.Checks) -> None:
        stage = at.stage_of(self.stage)
        if len(self.loops) < 2:
            raise at.refuse("fusing takes at least two loops")
        for loop in self.loops:
            at.need_loop(stage, loop)
            at.need_serial(stage, loop, "fuse first")
        start = stage.loops.index(self.loops[0])
        if stage.loops[start : start + len(self.loops)] != self.loops:
            order = ", ".join(stage.loops)
            raise at.refuse(f"the loops are not adjacent in {order}", "reorder them")
        reducing = [loop in stage.reduce_loops for loop in self.loops]
        if any(reducing) and not all(reducing):
            raise at.refuse("only some of the loops carry a reduction")
        for inner in primitive.attached_stages(at.state, self.stage):
            if isinstance(inner.placement, (At, After)) and inner.placement.loop in self.loops[:-1]:
                raise at.refuse(f"{inner.name} is computed between the loops")
        if stage.init_at in self.loops[1:]:
            raise at.refuse(f"the reduction starts between the loops, at {stage.init_at}")
        at.need_plain_loops(stage, self.loops[0])
        at.need_unpipelined(stage, *self.loops)
        at.need_new_loops(stage, (self.fused,))
        need_whole_tiles(at)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops fused; stages placed in the last of them move along."""
        stage = state.stage(self.stage)
        start = stage.loops.index(self.loops[0])
        loops = (*stage.loops[:start], self.fused, *stage.loops[start + len(self.loops) :])
        relation = FuseRelation(self.loops, self.fused)
        changed = replace(
            stage,
            loops=loops,
            relations=(*stage.relations, relation),
            init_at=self.fused if stage.init_at == self.loops[0] else stage.init_at,
            masked_in=self.fused if stage.masked_in in self.loops else stage.masked_in,
            prefetches=primitive.moved_prefetches(stage, self.loops[-1], self.fused),
        )
        return primitive.move_attached(
            state.with_stage(changed), self.stage, self.loops[-1], self.fused
        )


@dataclass(frozen=True, slots=True)
class Reorder(primitive.Primitive):
    """Put loops into a new order; loops that are not named keep their places.

    Rewrite:  for i: for j: S   ->   for j: for i: S
    Requires: the loops are different leaf loops of one stage; no reduction loop moves outside of a
              loop that holds a stage placed after the finished tile, or of the loop in which the
              reduction starts, nor that loop outside of the stage placed after; every stage placed
              in a loop stays around its readers; no vectorised or parallel loops nest.
    """

    stage: str
    loops: tuple[str, ...]

    def _need(self, at: primitive.Checks) -> None:
        stage = at.stage_of(self.stage)
        for loop in self.loops:
            at.need_loop(stage, loop)
        if len(set(self.loops)) != len(self.loops):
            raise at.refuse("a loop is named twice")
        at.need_plain_loops(stage)
        order = self._order(stage)
        # Theorem: the elements of a tensor are computed independently and a fold takes its terms in
        # any order, so every order of the loops computes the same; only the start of a fold, a
        # stage that waits for a finished tile and one that a loop's body reads restrict it.
        for inner in primitive.attached_stages(at.state, self.stage):
            if isinstance(inner.placement, After):
                outside = order[: order.index(inner.placement.loop) + 1]
                late = [loop for loop in outside if loop in stage.reduce_loops]
                if late:
                    reason = (
                        f"{inner.name} runs inside {inner.placement.loop}, before {late[0]} ends"
                    )
                    raise at.refuse(reason, "", (self.stage, late[0]))
        self._check_start(at, stage, order)
        primitive.need_legal_nesting(at)
        need_whole_tiles(at)
        stranded = primitive.find_stranded(at.after)
        if stranded is not None:
            placed, reader = stranded
            reason = f"{reader.name} would read {placed.name} outside of the loop that computes it"
            raise at.refuse(reason)

    def _check_start(self, at: primitive.Checks, stage: Stage, order: tuple[str, ...]) -> None:
        if not stage.init_at:
            return
        start = order.index(stage.init_at)
        for loop in order[:start]:
            if loop in stage.reduce_loops:
                reason = f"the reduction starts at {stage.init_at}, inside {loop}"
                raise at.refuse(reason, "", (self.stage, loop))
        for inner in primitive.attached_stages(at.state, self.stage):
            if isinstance(inner.placement, After) and inner.placement.loop in order[start:]:
                reason = f"{inner.name} waits for a tile that starts outside of it"
                raise at.refuse(reason, "", (self.stage, inner.placement.loop))

    def _order(self, stage: Stage) -> tuple[str, ...]:
        moved = iter(self.loops)
        return tuple(next(moved) if loop in self.loops else loop for loop in stage.loops)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the loops in the new order."""
        stage = state.stage(self.stage)
        return state.with_stage(replace(stage, loops=self._order(stage)))
