"""Compute a tensor where it is read, or a reader where its operand is finished."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import Load, Var, loads_of
from tensorwright.schedule.execution import Scope
from tensorwright.schedule.primitive import (
    Primitive,
    applied,
    is_inside,
    is_within,
    need_legal_nesting,
    need_loop_of,
    need_plain_loops,
    need_same_lengths,
    need_stage,
    refuse,
)
from tensorwright.schedule.state import After, At, AtRoot, ScheduleState, Stage
from tensorwright.schedule.tails import need_whole_tiles


@dataclass(frozen=True, slots=True)
class ComputeAt(Primitive):
    """Compute a tensor inside a loop of a reader, as far as the rest of that loop's body reads it.

    Rewrite:  for i: P[i] = ...                     ->   for i_o:
              for i_o: for i_i: C[..] = .. P[..]           for i: P[part of i_o] = ...
                                                           for i_i: C[..] = .. P[..]
    Requires: the stage is at the root and no output; the loop is not inside the stage; every reader
              runs inside the loop.
    Source:   Halide's compute_at (Ragan-Kelley et al., PLDI 2013).
    """

    stage: str
    host: str
    loop: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the stage may not move there."""
        stage = need_stage(self, state, self.stage)
        host = need_loop_of(self, state, self.host, self.loop)
        here = (self.host, self.loop)
        if self.loop in host.replaced_loops:
            need_plain_loops(self, state, host, self.loop)
        if is_within(state, self.host, self.stage):
            raise refuse(self, state, "a stage cannot be computed inside itself")
        if self.stage in state.outputs:
            raise refuse(self, state, f"{self.stage} is an output and must be whole")
        if not isinstance(stage.placement, AtRoot):
            raise refuse(self, state, f"{self.stage} already has a place", "place it once")
        # Theorem: if every reader runs inside the loop, each iteration can compute what it reads by
        # itself.
        for reader in state.readers(self.stage):
            if not is_inside(state, reader.name, self.host, self.loop):
                reason = f"{reader.name} reads {self.stage} outside of this loop"
                raise refuse(self, state, reason, "choose a loop around all readers", here)
        changed = applied(self, state)
        need_legal_nesting(self, state, changed)
        need_whole_tiles(self, state, changed)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the stage placed; its tensor becomes local to the loop."""
        stage = state.stage(self.stage)
        scope = Scope.LOCAL if stage.scope is Scope.GLOBAL else stage.scope
        return state.with_stage(replace(stage, placement=At(self.host, self.loop), scope=scope))


@dataclass(frozen=True, slots=True)
class ReverseComputeAt(Primitive):
    """Compute a reader inside a loop of its operand, after the operand's tile there is finished.

    Rewrite:  for i_o: for i_i: P[..] = ...         ->   for i_o:
              for i: C[i] = .. P[i]                        for i_i: P[..] = ...
                                                           for i in part of i_o: C[i] = .. P[i]
    Requires: the reader is at the root; the loop is not inside the reader; every axis that it
              indexes the operand with is one of its own, unchanged, the same in all reads; no
              reduction of the operand is around the loop; tiles do not overlap where the reader
              folds, nor lie beyond the end of an axis; what else the reader and the stages in its
              loops read is finished by then.
    Source:   TVM TensorIR (Feng et al., ASPLOS 2023).
    """

    stage: str
    host: str
    loop: str

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the reader may not move there."""
        stage = need_stage(self, state, self.stage)
        host = need_loop_of(self, state, self.host, self.loop)
        here = (self.host, self.loop)
        if self.loop in host.replaced_loops:
            need_plain_loops(self, state, host, self.loop)
        if is_within(state, self.host, self.stage):
            raise refuse(self, state, "a stage cannot be computed inside itself")
        if not isinstance(stage.placement, AtRoot):
            raise refuse(self, state, f"{self.stage} already has a place", "place it once")
        loads = [load for load in loads_of(stage.tensor.body) if load.source.name == self.host]
        if not loads:
            raise refuse(self, state, f"{self.stage} does not read {self.host}")
        self._check_indices(state, stage, loads)
        need_legal_nesting(self, state, applied(self, state))
        around = host.loops[: host.loops.index(self.loop) + 1]
        unfinished = [loop for loop in around if loop in host.reduce_loops]
        if unfinished:
            reason = f"{self.host} is not finished before its loop {unfinished[0]} ends"
            raise refuse(self, state, reason, "choose a loop outside of the reduction", here)
        if host.init_at and host.loops.index(host.init_at) < len(around):
            reason = f"the tile starts at {host.init_at}, outside of it"
            raise refuse(self, state, reason, "choose a loop around the start", here)
        need_whole_tiles(self, state, applied(self, state))

    def _check_indices(self, state: ScheduleState, stage: Stage, loads: list[Load]) -> None:
        # Theorem: where the reader's element [i] reads only the operand's element [i] (in some
        # order of the axes), the readers of a tile are the box with the tile's own ranges; boxes of
        # all tiles cover the reader, whose axes are as long as those of the operand.
        if len({load.indices for load in loads}) > 1:
            reason = f"{self.stage} reads {self.host} in several places"
            raise refuse(self, state, reason, "", (self.stage, ""))
        own = {axis.var for axis in stage.tensor.axes}
        for load in loads:
            axes = [index for index in load.indices if isinstance(index, Var) and index in own]
            if len(axes) != len(load.indices) or len(set(axes)) != len(axes):
                raise refuse(
                    self,
                    state,
                    f"{self.stage} reads {load}, not its own position",
                    "",
                    (self.stage, ""),
                )
            need_same_lengths(self, state, stage, load)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the reader placed; an operand that nothing else reads becomes local."""
        stage = replace(state.stage(self.stage), placement=After(self.host, self.loop))
        changed = state.with_stage(stage)
        host = changed.stage(self.host)
        readers = {reader.name for reader in changed.readers(self.host)}
        if readers == {self.stage} and self.host not in state.outputs:
            changed = changed.with_stage(replace(host, scope=Scope.LOCAL))
        return changed
