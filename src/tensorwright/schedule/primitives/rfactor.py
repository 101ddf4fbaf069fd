"""Make a loop of a reduction a spatial axis of partial results."""

from __future__ import annotations

from dataclasses import dataclass

from tensorwright.expr import (
    Axis,
    Compute,
    Condition,
    Index,
    Load,
    Placeholder,
    Reduction,
    Var,
    all_of,
    condition_sides,
    conjuncts,
    free_vars,
    identity_of,
    select,
    substitute_condition,
    substitute_value,
)
from tensorwright.schedule.analysis import Analysis, analyse
from tensorwright.schedule.primitive import (
    Primitive,
    attached_stages,
    need_all_elements,
    need_loop_of,
    need_new_stage,
    refuse,
)
from tensorwright.schedule.state import AtRoot, ScheduleState, fresh_stage


@dataclass(frozen=True, slots=True)
class Rfactor(Primitive):
    """Fold a reduction in two steps: partial results along one of its loops, then over these.

    Rewrite:  C[i] = sum over k_o, k_i of e(i, k)
              ->   C_rf[i, k_i] = sum over k_o of e(i, k);   C[i] = sum over k_i of C_rf[i, k_i]
    Requires: the loop carries the reduction, another reduction loop remains, and the stage is
              marked nowhere and at the root; the partial results have an axis `position`.  Both
              stages start with fresh loops.  Float sums are reassociated.
    The new axis of the partial results is the last (-1), or has another position: as the first,
    neighbours lie together that are neighbours in C.
    Source:   Suriana, Adams, Kamil: Parallel associative reductions in Halide, CGO 2017.
    """

    stage: str
    loop: str
    position: int = -1

    @property
    def partial(self) -> str:
        """The name of the stage of partial results."""
        return f"{self.stage}_rf"

    def check(self, state: ScheduleState) -> None:
        """Raise ScheduleError where the reduction may not be factored."""
        stage = need_loop_of(self, state, self.stage, self.loop)
        need_new_stage(self, state, self.partial)
        need_all_elements(self, state, stage)
        here = (self.stage, self.loop)
        if self.loop not in stage.reduce_loops:
            raise refuse(self, state, f"loop {self.loop} carries no reduction", "", here)
        if sum(loop in stage.reduce_loops for loop in stage.loops) < 2:
            reason = f"{self.loop} is the only loop of the reduction"
            raise refuse(self, state, reason, "split it first", here)
        if not -1 <= self.position <= len(stage.tensor.axes):
            reason = f"{self.partial} has no axis {self.position}"
            raise refuse(self, state, reason, "-1 for the last, 0 for the first", here)
        hints = (
            stage.marks or stage.init_at or stage.prefetches or stage.intrinsic or stage.pipeline
        )
        is_packed = any(reader == self.stage for _, reader in state.packed)
        is_placed = not isinstance(stage.placement, AtRoot) or attached_stages(state, self.stage)
        if hints or is_packed or is_placed:
            raise refuse(self, state, f"{self.stage} is already scheduled", "rfactor first", here)

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state with the stage of partial results before the stage."""
        stage = state.stage(self.stage)
        tensor = stage.tensor
        assert tensor.reduction is not None, "check() has seen a reduction"
        analysis = analyse(state)
        nest = analysis.nests[self.stage]
        values: dict[Var, Index] = {
            axis.var: analysis.realise(nest.axis_values[axis.var]) for axis in tensor.reduce_axes
        }
        names: dict[Var, Index] = {variable: Var(loop) for loop, variable in nest.variables.items()}
        loops = [loop for loop in stage.loops if loop in stage.reduce_loops]
        axes = {loop: Axis(Var(loop), nest.extents[loop]) for loop in loops}
        body = substitute_value(substitute_value(tensor.body, values), names)
        combiner = tensor.reduction.combiner
        folding = frozenset(nest.variables[loop] for loop in loops if loop in nest.variables)
        guard = _guard_of(nest.guards, analysis, folding)
        if guard is not True:
            outside = identity_of(combiner, tensor.dtype)
            body = select(substitute_condition(guard, names), body, outside)
        rest = tuple(axes[loop] for loop in loops if loop != self.loop)
        at = len(tensor.axes) if self.position == -1 else self.position
        spatial = (*tensor.axes[:at], axes[self.loop], *tensor.axes[at:])
        partial = Compute(self.partial, spatial, body, Reduction(combiner, rest))
        stand_in = Placeholder(self.partial, partial.shape, partial.dtype)
        read = Load(stand_in, tuple(axis.var for axis in spatial))
        folded = Compute(self.stage, tensor.axes, read, Reduction(combiner, (axes[self.loop],)))
        return state.with_stages(self.stage, fresh_stage(partial), fresh_stage(folded))


def _guard_of(guards: Condition, analysis: Analysis, folding: frozenset[Var]) -> Condition:
    """The guards on reduction loops alone, over real variables."""
    parts = conjuncts(guards)
    real = [substitute_condition(part, analysis.real) for part in parts]
    return all_of(*(part for part in real if free_vars(*condition_sides(part)) <= folding))
