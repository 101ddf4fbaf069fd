"""Stage a tensor through a copy: cache_read before a reader, cache_write after a computation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorwright.expr import (
    Axis,
    Compute,
    Load,
    Placeholder,
    Var,
)
from tensorwright.schedule.execution import Scope
from tensorwright.schedule.primitive import (
    Primitive,
    need_all_elements,
    need_new_stage,
    need_plain_loops,
    need_stage,
    need_unscheduled,
    refuse,
    runs_inside_after,
)
from tensorwright.schedule.state import ScheduleState, fresh_stage, reads_of, redirect


@dataclass(frozen=True, slots=True)
class CacheRead(Primitive):
    """Let one reader read a copy of a tensor, with its dimensions in another order if wanted.

    Rewrite:  C[i] = f(A[g(i)])   ->   A_cache[j] = A[j];  C[i] = f(A_cache[g(i)])
              order [1, 0]:            A_cache[k, j] = A[j, k];  ...
    Requires: the reader reads the tensor (an input or a stage); there is no copy of that name yet;
              `order` is empty or a permutation of the dimensions (dimension n of the copy is
              dimension order[n] of the tensor); the reader has not packed the tensor and is not
              computed by an intrinsic; the tensor is not computed inside another stage, nor the
              reader after the tile of one.
    """

    tensor: str
    reader: str
    scope: Scope = Scope.LOCAL
    order: tuple[int, ...] = ()

    @property
    def copy(self) -> str:
        """The name of the copy."""
        return f"{self.tensor}_{self.reader}_cache"

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the copy may not be made."""
        reader = need_stage(self, state, self.reader)
        if state.has_stage(self.tensor):
            need_all_elements(self, state, state.stage(self.tensor))
        if self.tensor not in reads_of(reader.tensor):
            raise refuse(self, state, f"{self.reader} does not read {self.tensor}")
        if (self.tensor, self.reader) in state.packed:
            raise refuse(self, state, f"{self.reader} has packed {self.tensor}", "copy it first")
        need_plain_loops(self, state, reader)
        need_new_stage(self, state, self.copy)
        rank = len(state.source(self.tensor).shape)
        if self.order and sorted(self.order) != list(range(rank)):
            raise refuse(self, state, f"{self.order} is not an order of {rank} dimensions")
        # Theorem: the copy is made at the root, right before the nest that holds the reader; so
        # what it copies must be whole by then, and the reader must not run in an earlier nest.
        source = state.stage(self.tensor) if state.has_stage(self.tensor) else None
        for stage in (source, reader):
            if stage is not None and runs_inside_after(state, stage, or_at=stage is source):
                reason = f"{stage.name} is computed inside another stage"
                raise refuse(self, state, reason, "copy it first")

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the copy before the reader."""
        reader = state.stage(self.reader)
        source = state.source(self.tensor)
        plain = tuple(Axis(Var(f"d{n}"), extent) for n, extent in enumerate(source.shape))
        order = self.order or tuple(range(len(plain)))
        axes = tuple(plain[n] for n in order)
        body = Load(source, tuple(axis.var for axis in plain))
        stand_in = Placeholder(self.copy, tuple(a.extent for a in axes), source.dtype)
        copied = fresh_stage(Compute(self.copy, axes, body), self.scope)
        changed = redirect(reader.tensor, {self.tensor: stand_in}, order)
        reading = replace(reader, tensor=changed)
        return state.with_stages(self.reader, copied, reading)


@dataclass(frozen=True, slots=True)
class CacheWrite(Primitive):
    """Compute a tensor into a buffer of its own and copy the result out.

    Rewrite:  C[i] = e(i)   ->   C_cache[i] = e(i);  C[i] = C_cache[i]
    Requires: the stage is not scheduled; there is no stage of the copy's name yet.
    """

    stage: str
    scope: Scope = Scope.LOCAL

    @property
    def cached(self) -> str:
        """The name of the stage that computes."""
        return f"{self.stage}_cache"

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the cache may not be made."""
        stage = need_stage(self, state, self.stage)
        need_unscheduled(self, state, stage)
        need_all_elements(self, state, stage)
        need_new_stage(self, state, self.cached)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the computation in the cache and the stage copying it."""
        tensor = state.stage(self.stage).tensor
        computed = Compute(self.cached, tensor.axes, tensor.body, tensor.reduction)
        stand_in = Placeholder(self.cached, tensor.shape, tensor.dtype)
        copied = Compute(
            self.stage, tensor.axes, Load(stand_in, tuple(axis.var for axis in tensor.axes))
        )
        return state.with_stages(self.stage, fresh_stage(computed, self.scope), fresh_stage(copied))
